"""Letters: operators send them with receipts, a coordinator files them. Shipped to Spark's workers
as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import msgpack

from epochgate.runtime import Operator, OperatorContext, Program, SendFuture, Work
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.testing import ScriptedCoordinator, ScriptedProvider


class SlowArchive(ScriptedCoordinator):
    """Files each letter later, elsewhere."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> Future[Any]:
        filed: Future[Any] = Future()
        file = super().handle_event_from_operator

        def then(_: Any, error: BaseException | None) -> None:
            file(subtask, attempt, event)
            filed.set_result(None)

        self.context.run_async(lambda: None, then)
        return filed


def archive(is_slow: bool) -> ScriptedProvider:
    """A coordinator that keeps every letter, as what it has heard."""
    return ScriptedProvider("archive", None, SlowArchive if is_slow else ScriptedCoordinator)


class Writer(Operator):
    """Writes letters, keeps those without a receipt, and sends these again after a restore; at most
    `window` may be without one at a time.
    """

    def __init__(self, letters: int, window: int) -> None:
        self.letters, self.window = letters, window

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        saved = json.loads(state or b'{"written": 0, "unreceipted": [], "receipted": []}')
        self.written: int = saved["written"]
        self.receipted: list[str] = saved["receipted"]
        self.unreceipted: list[str] = []
        for letter in saved["unreceipted"]:
            self._send(letter)

    def write(self) -> bool:
        if self.written == self.letters or len(self.unreceipted) >= self.window:
            return False
        self.written += 1
        self._send(f"{self.context.subtask}-{self.written}")
        return True

    def _send(self, letter: str) -> None:
        self.unreceipted.append(letter)
        self.context.send_with_receipt(letter).add_done_callback(self._receipt)

    def _receipt(self, sent: SendFuture) -> None:
        self.unreceipted.remove(sent.event)
        self.receipted.append(sent.event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        parts = ("written", "unreceipted", "receipted")
        return json.dumps({part: getattr(self, part) for part in parts}).encode()


class WritingProgram(Program):
    def __init__(self, letters: int, window: int = 5) -> None:
        self.writer = Writer(letters, window)

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"archive": self.writer}

    def work(self) -> Work:
        if self.writer.write():
            return Work.DONE
        is_done = self.writer.written == self.writer.letters and not self.writer.unreceipted
        return Work.ENDED if is_done else Work.IDLE


def letters_filed(checkpoint: CompletedCheckpoint) -> set[str]:
    _, heard = msgpack.unpackb(checkpoint.coordinators["archive"] or b"")
    return {letter for letters in heard for letter in letters}


def letters_with_receipt(states: Mapping[str, bytes]) -> set[str]:
    return set(json.loads(states["archive"])["receipted"])
