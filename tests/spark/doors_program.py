"""A number job whose operator, program and committer do what a test says at one of their doors.

What is to happen travels to the tasks as a `Fault`, and happens once: the first that comes to the
door makes the file `once`, so that attempts behind it go on.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochgate.runtime import Committables, Operator, OperatorContext, Work
from tests.spark.numbers_program import TICK_S, NumberOperator, NumberProgram, RangeCommitter

HANG = "hang"


@dataclass(frozen=True)
class Fault:
    """At `door`, `what` happens once: an exception class is raised, `HANG` hangs, and `Value` is
    returned.
    """

    door: str
    what: Any
    once: Path
    first: Fault | None = None
    """What happens before, at a door of its own."""

    def happens(self, door: str) -> Any:
        """Raise or hang if it is due here; otherwise a `Value` to be returned, or none."""
        if self.first is not None:
            self.first.happens(door)
        if door != self.door or not self._is_first():
            return None
        if self.what == HANG:
            while self.once.exists() and not self.go.exists():
                time.sleep(TICK_S)
        if isinstance(self.what, type):
            raise self.what("by order of the test")
        return self.what

    @property
    def go(self) -> Path:
        """The file that lets go of what hangs, as the removal of the folder does, so that no thread
        of a test is left.
        """
        return self.once.parent / "go"

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Value:
    """The value that a door returns instead of the right one."""

    value: Any


class DoorOperator(NumberOperator):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.fault.happens("operator.open")

    def handle_event(self, event: Any) -> None:
        self.fault.happens("operator.handle_event")
        super().handle_event(event)
        self.context.send_to_coordinator(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        returned = self.fault.happens("operator.prepare_commit")
        rows = super().prepare_commit(checkpoint_id)
        return returned.value if returned else rows

    def snapshot(self, checkpoint_id: int) -> bytes:
        returned = self.fault.happens("operator.snapshot")
        return returned.value if returned else super().snapshot(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.fault.happens("operator.notify_checkpoint_complete")
        super().notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        self.fault.happens("operator.close")


class DoorProgram(NumberProgram):
    def __init__(self, last: int, fault: Fault) -> None:
        super().__init__(last)
        fault.happens("program.factory")
        self.fault, self.operator = fault, DoorOperator(fault)

    @property
    def operators(self) -> dict[str, Operator]:
        returned = self.fault.happens("program.operators")
        return returned.value if returned else super().operators

    def work(self) -> Work:
        returned = self.fault.happens("program.work")
        return returned.value if returned else super().work()

    def metrics(self) -> dict[str, int | float]:
        returned = self.fault.happens("program.metrics")
        return returned.value if returned else super().metrics()


class DoorCommitter(RangeCommitter):
    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def check(self, committables: Committables) -> None:
        self.fault.happens("committer.check")

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.fault.happens("committer.commit")
        super().commit(checkpoint_id, committables)

    def close(self) -> None:
        self.fault.happens("committer.close")
        super().close()
