"""A job whose outcome shows each fault: numbers go to the tasks as events, and come out committed.

The coordinator sends 1, 2, 3, ... to each subtask. Its operator refuses a gap or a repetition, and
hands the range since the last completed checkpoint to the committer.
"""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import msgpack

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    Operator,
    OperatorContext,
    Program,
    Work,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.testing import Script, ScriptedCoordinator, ScriptedProvider

TICK_S = 0.005
LINGERS_MAX_S = 30.0


class NumberCoordinator(ScriptedCoordinator):
    def __init__(
        self, context: CoordinatorContext, script: Script, last: int, is_held: threading.Event
    ) -> None:
        super().__init__(context, script)
        self.last, self.is_held = last, is_held

    def start(self) -> None:
        super().start()
        self.send_next()

    def send_next(self) -> None:
        for subtask in self.gateways:
            number = len(self.sent[subtask]) + 1
            # The last number waits while it is held, so that the job cannot end before the test.
            if number <= self.last and not (self.is_held.is_set() and number == self.last):
                self.send(subtask, number)
        if not self.is_closed:
            self.context.post_later(TICK_S, self.send_next)


class NumberProvider(ScriptedProvider):
    def __init__(
        self,
        last: int,
        script: Script | None = None,
        coordinator: type[NumberCoordinator] = NumberCoordinator,
    ) -> None:
        self.last, self.is_held = last, threading.Event()
        super().__init__(
            "numbers",
            script,
            lambda context, script: coordinator(context, script, last, self.is_held),
        )


class NumberOperator(Operator):
    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.number = 0 if state is None else msgpack.unpackb(state)
        self.committed = self.number
        self.offered: dict[int, int] = {}

    def handle_event(self, event: Any) -> None:
        if event != self.number + 1:
            raise AssertionError(f"{event} came after {self.number}")
        self.number = event

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.offered[checkpoint_id] = self.number
        return [[self.committed + 1, self.number]]

    def snapshot(self, checkpoint_id: int) -> bytes:
        data: bytes = msgpack.packb(self.number)
        return data

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.committed = self.offered[checkpoint_id]


class NumberProgram(Program):
    def __init__(self, last: int) -> None:
        self.operator = NumberOperator()
        self.last = last

    @property
    def operators(self) -> dict[str, Operator]:
        return {"numbers": self.operator}

    def work(self) -> Work:
        return Work.ENDED if self.operator.number == self.last else Work.IDLE

    def metrics(self) -> dict[str, int | float]:
        return {"number": self.operator.number}


class BusyProgram(NumberProgram):
    """Works without end, in pieces that last long or not at all, and hears nothing meanwhile."""

    def __init__(self, piece_s: float) -> None:
        super().__init__(0)
        self.piece_s = piece_s

    def work(self) -> Work:
        until_s = time.monotonic() + self.piece_s
        while time.monotonic() < until_s:
            pass
        return Work.DONE


class LingeringOperator(NumberOperator):
    """Leaves a note when it is closed, and is not through with it before the note is taken away."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def close(self) -> None:
        if self.context.subtask == 0:
            self.note.touch()
            until_s = time.monotonic() + LINGERS_MAX_S
            while self.note.exists() and time.monotonic() < until_s:
                time.sleep(TICK_S)


class LingeringProgram(NumberProgram):
    """Takes its time to leave, as a program does that closes connections."""

    def __init__(self, last: int, note: Path) -> None:
        super().__init__(last)
        self.operator = LingeringOperator(note)


class FailingProgram(NumberProgram):
    """Raises at its first piece of work."""

    def __init__(self, error: Exception) -> None:
        super().__init__(0)
        self.error = error

    def work(self) -> Work:
        raise self.error


class StumblingProgram(NumberProgram):
    """Raises in its first attempts once there is a note; may leave something in its process."""

    def __init__(self, last: int, note: Path, litter: str = "", times: int = 1) -> None:
        super().__init__(last)
        self.note, self.litter, self.times = note, litter, times

    def work(self) -> Work:
        context = self.operator.context
        if self.note.exists() and context.attempt < self.times:
            if self.litter == "thread":
                threading.Thread(target=time.sleep, args=(LINGERS_MAX_S,), daemon=True).start()
            elif self.litter == "socket":
                socket.create_server(("127.0.0.1", 0)).detach()
            raise RuntimeError(f"attempt {context.attempt} cannot go on")
        context.wake_after(TICK_S)
        return super().work()


class SendingProgram(NumberProgram):
    """Sends `event` to its coordinator, and tells `figure` of itself."""

    def __init__(self, event: Any, figure: Any = 0) -> None:
        super().__init__(5)
        self._event, self._figure = event, figure

    def work(self) -> Work:
        self.operator.context.send_to_coordinator(self._event)
        return Work.IDLE

    def metrics(self) -> dict[str, int | float]:
        return {"figure": self._figure}


class RangeCommitter(Committer):
    """Keeps the ranges of each checkpoint; committing one again changes nothing."""

    def __init__(self) -> None:
        self.committed: dict[int, Committables] = {}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        again = self.committed.setdefault(checkpoint_id, committables)
        assert again == committables, f"checkpoint {checkpoint_id} was committed with other ranges"

    def problems(self, parallelism: int, last: int) -> list[str]:
        """Return what is not exactly once."""
        expected = dict.fromkeys(range(parallelism), 1)
        problems = []
        for checkpoint_id in sorted(self.committed):
            for subtask, ranges in self.committed[checkpoint_id].items():
                for first, to in ranges:
                    if first != expected[subtask]:
                        wrong = f"{first} instead of {expected[subtask]}"
                        problems.append(f"subtask {subtask}, checkpoint {checkpoint_id}: {wrong}")
                    expected[subtask] = to + 1
        short = {s: n - 1 for s, n in expected.items() if n != last + 1}
        return problems + ([f"the last numbers are {short} instead of {last}"] if short else [])


def number_configuration(
    provider: CoordinatorProvider, parallelism: int = 4, **changes: Any
) -> JobConfiguration:
    settings: dict[str, Any] = {
        "checkpoint_interval_s": 0.15,
        "tolerable_checkpoint_failures": 1000,
        "restart_strategy": FixedDelay(1000, 0.0),
        **changes,
    }
    return JobConfiguration("numbers", parallelism, (provider,), **settings)
