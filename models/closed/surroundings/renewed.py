"""The machines of a driver that runs, which each driver begins with as they are declared."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, Row, Trigger
from epochgate.models.checkpoint import NONE
from epochgate.models.committable_collector import CommittableCollector
from epochgate.models.committable_stage import StageBefore, StageBehind
from epochgate.models.committer import GlobalCommitter
from epochgate.models.committing_job import (
    CommittingAttempt,
    CommittingCheckpoint,
    CommittingLifecycle,
)
from epochgate.models.lifecycle import CREATED
from epochgate.models.request import CheckpointRequest
from epochgate.models.subtask_committer import AWAY, SubtaskCommitter

IDLE = "idle"
AGAIN = "the next driver knows nothing of this one"


class Attempts(CommittingAttempt):
    """The attempts of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CommittingAttempt.ROWS,
        Row("replaced", ANY, CREATED, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.number = 0
        self.identity = 0
        self.waiting = 0
        self.newest = 0
        self.has_ended = False
        self.has_restart_due = False


class Lifecycle(CommittingLifecycle):
    """The lifecycle of one driver's job."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CommittingLifecycle.ROWS,
        Row("replaced", ANY, CREATED, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.leaving = 0
        self.running = 0
        self.ended = 0
        self.restarts = 0
        self.has_backed_off = False
        self.is_stop_wanted = False
        self.is_last_stored = False


class CheckpointUnderWay(CommittingCheckpoint):
    """The checkpoint of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CommittingCheckpoint.ROWS,
        Row("replaced", ANY, NONE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.number = 0
        self.completed = 0
        self.failures = 0
        self.forget_parts()


class Requests(CheckpointRequest):
    """The requests to one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CheckpointRequest.ROWS,
        Row("replaced", ANY, IDLE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.has_more = False


class Committer(GlobalCommitter):
    """The global committer of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *GlobalCommitter.ROWS,
        Row("replaced", ANY, IDLE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.covered.clear()
        self.waiting.clear()
        self.asked = 0
        self.tries = 0


class OperatorsBefore(StageBefore):
    """The operators in front of the tasks, of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *StageBefore.ROWS,
        Row("replaced", ANY, IDLE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.waiting.clear()
        self.tries = 0


class OperatorsBehind(StageBehind):
    """The operators in front of the global committer, of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *StageBehind.ROWS,
        Row("replaced", ANY, IDLE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.waiting.clear()
        self.tries = 0


class TaskCommitter(SubtaskCommitter):
    """The committer of one subtask, of one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *SubtaskCommitter.ROWS,
        Row("replaced", ANY, AWAY, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.waiting.clear()
        self.passed.clear()
        self.sealed.clear()
        self.tried = 0
        self.tries = 0


class Collector(CommittableCollector):
    """The values that the subtasks have passed on to one driver."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *CommittableCollector.ROWS,
        Row("replaced", ANY, IDLE, None, "forget", AGAIN),
    )
    # fmt: on

    def forget(self) -> None:
        self.expected.clear()
        for s in range(self.system.subtasks):
            self.received[s] = 0
