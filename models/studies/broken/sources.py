"""The assignment of splits without one of its rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Ignore, Row, machines
from epochgate.models.closed.sources import Sources
from epochgate.models.split_assignment import (
    ABSENT,
    OWED,
    READING,
    SETTLED,
    TOLD,
    SplitAssignment,
)

SMALL = {**Sources.CONSTANTS, "subtasks": 1, "S": 2, "K": 2, "P": 1}


class HastyAssignment(SplitAssignment):
    """Returns what an attempt was assigned when it fails, and nothing at the reset."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in SplitAssignment.ROWS if row.trigger not in ("lost", "reset")),

        Row("lost",    READING,        ABSENT, "is_there",
            "leave, return_all", "the reader is gone"),
        Row("lost",    TOLD,           OWED,   "is_there",
            "leave, return_all", "the reader is gone"),
        Row("lost",    SETTLED,        STAY,   "not is_there and has_place",
            "leave, return_all", "the reader is gone"),
        Ignore("lost", SETTLED,                "not is_there and not has_place",
                                 "the reader was never there"),
        Row("reset",   (ABSENT, OWED), STAY,   None,
            "do_nothing",        "everything came back before"),
    )
    # fmt: on

    def return_all(self, attempt: int) -> None:
        self.take_back(0)

    def do_nothing(self, checkpoint: int) -> None:
        pass


class ReturnedAtFailure(Sources):
    """The checkpoint that is being stored holds what came back already."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL
    UNTAKEN: ClassVar[dict[str, str]] = {}

    assignment: list[SplitAssignment] = machines(HastyAssignment)


class BlindAssignment(SplitAssignment):
    """Returns everything that it remembers, whatever the checkpoint."""

    def has_newer(self, checkpoint: int) -> bool:
        return not self.uncheckpointed.empty() or not self.checkpointed.empty()

    def take_back(self, checkpoint: int) -> None:
        for split in self.checkpointed.take_all():
            self.belongs_to.pop()
            self.enumerator.returned(split)
        for split in self.uncheckpointed.take_all():
            self.enumerator.returned(split)
        self.has_unsent = False
        self.newest = 0


class ResetToAnyCheckpoint(Sources):
    """A split comes back although the restored reader has it."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    assignment: list[SplitAssignment] = machines(BlindAssignment)


class ForgetfulAssignment(SplitAssignment):
    """Takes an aborted checkpoint for one that is over."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in SplitAssignment.ROWS if row.trigger != "abort"),
        Row("abort", SETTLED, STAY, None, "forget_newest", "the checkpoint is over"),
    )
    # fmt: on

    def forget_newest(self) -> None:
        self.checkpointed.clear()
        self.belongs_to.clear()
        self.newest = 0


class ForgottenAtAbort(Sources):
    """A split that only an aborted checkpoint held is never read."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    assignment: list[SplitAssignment] = machines(ForgetfulAssignment)


class GullibleAssignment(SplitAssignment):
    """Listens to any attempt."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in SplitAssignment.ROWS if row.trigger != "request"),

        Row("request",    (ABSENT, OWED, READING), STAY, None,
            "pass_request_on", "the reader could read another split"),
        Ignore("request", TOLD,                          None,
                               "there are no more splits"),
    )
    # fmt: on


class LateRequestServed(Sources):
    """The enumerator hears of an attempt that is gone."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    assignment: list[SplitAssignment] = machines(GullibleAssignment)


class SilentAssignment(SplitAssignment):
    """Lets a successor wait for the end that its predecessor was told of."""

    def tell_all(self) -> None:
        for p in range(self.system.places):
            if self.has_joined[p] and self.attempt[p] == 0:
                self.readers.tell_no_more(self.attempt[p])


class SuccessorNotTold(Sources):
    """A restarted reader never ends, whether checkpoints are taken or not."""

    CONSTANTS: ClassVar[dict[str, int]] = {**Sources.CONSTANTS, "subtasks": 1, "S": 2, "K": 0}

    assignment: list[SplitAssignment] = machines(SilentAssignment)
