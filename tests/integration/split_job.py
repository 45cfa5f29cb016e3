"""A source whose splits are given out by a coordinator, one at a time, to the reader that asks.

After Apache Flink's OperatorEventSendingCheckpointITCase: what it demands, in our own words and on
our own API. A split that gets lost on its way leaves its reader waiting, since a reader asks for
one only when it has read the one before. In the end each element was listed by one reader, once.

The module travels to the tasks by value; what is here for the driver is not used there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgpack

from epochgate.runtime import CoordinatorContext, Operator, OperatorContext, Program, Work
from epochgate.testing import Script, ScriptedCoordinator, ScriptedProvider
from tests.integration.ledger import Ledger

READER = "reader"
NO_MORE = "no more"


class SplitCoordinator(ScriptedCoordinator):
    """Sends each subtask its own share of the splits, so that none reads those of another while
    that one starts again.

    It gives nothing away before a checkpoint is complete: until all subtasks run there is none, and
    a loss that comes before is met by none.
    """

    def __init__(self, context: CoordinatorContext, script: Script, splits: int) -> None:
        super().__init__(context, script)
        shares = range(context.parallelism)
        self._shares = [range(subtask, splits, len(shares)) for subtask in shares]
        self._has_begun = False
        self._waiting: list[int] = []

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        super().execution_attempt_failed(subtask, attempt, reason)
        self._waiting = [other for other in self._waiting if other != subtask]

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        if self._has_begun:
            self._give(subtask)
        else:
            self._waiting.append(subtask)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._has_begun = True
        waiting, self._waiting = self._waiting, []
        for subtask in waiting:
            self._give(subtask)

    def _give(self, subtask: int) -> None:
        share, given = self._shares[subtask], len(self.sent[subtask])
        if given < len(share):
            self.send(subtask, share[given])
        else:
            self.gateways[subtask].send_event(NO_MORE)


def split_provider(splits: int) -> ScriptedProvider:
    return ScriptedProvider(READER, None, partial(SplitCoordinator, splits=splits))


class SplitReader(Operator):
    """Lists the elements of its splits, and writes down what happens to it."""

    def __init__(self, ledger: Ledger, split_size: int) -> None:
        self._ledger, self._split_size = ledger, split_size
        self.values: list[int] = []
        self.rest: list[int] = []
        """The elements of the present split that it has not read."""
        self.is_ended = False
        self._has_asked = False

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        if state is not None:
            self.values, self.rest, self.is_ended = msgpack.unpackb(state)
        self._write = self._ledger.open(context.operator_id, context.subtask, context.attempt)
        self._write(["began", self.values])

    def handle_event(self, event: Any) -> None:
        self._has_asked = False
        if event == NO_MORE:
            self.is_ended = True
        else:
            first = event * self._split_size
            self.rest += range(first, first + self._split_size)

    def read_one(self) -> Work:
        """Read an element, or ask for a split when there is none."""
        if self.rest:
            self.values.append(self.rest.pop(0))
            self._write(["handled", self.values[-1]])
            return Work.DONE
        if self.is_ended:
            return Work.ENDED
        if not self._has_asked:
            self._has_asked = True
            self.context.send_to_coordinator("more")
        return Work.IDLE

    def snapshot(self, checkpoint_id: int) -> bytes:
        self._write(["snapshot", checkpoint_id])
        return bytes(msgpack.packb([self.values, self.rest, self.is_ended]))


class SplitProgram(Program):
    """One reader, which takes `pace_s` for an element; the first of all subtasks that comes to the
    element `poison` raises there.
    """

    def __init__(
        self, ledger: Ledger, split_size: int, poison: int | None, *, pace_s: float = 0.0
    ) -> None:
        self._reader = SplitReader(ledger, split_size)
        self._ledger, self._poison, self._pace_s = ledger, poison, pace_s

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {READER: self._reader}

    def work(self) -> Work:
        if self._reader.rest[:1] == [self._poison] and not self._ledger.is_told("poisoned"):
            self._ledger.tell("poisoned")
            raise RuntimeError("by order of the test")
        if self._pace_s and self._reader.rest:
            time.sleep(self._pace_s)
        return self._reader.read_one()
