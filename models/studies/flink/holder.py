"""Flink's main thread and what runs on it: the queue of posted calls, the holder of the coordinator,
and the coordinator's part of each checkpoint.

What other threads want is posted and runs in its turn. What the scheduler does while one of these
runs, above all resetting a subtask, is inline, and so overtakes all that is posted.

Source: Apache Flink's OperatorCoordinatorHolder. One coordinator is enough: holders do not see each
other, and others only delay barriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Array, Bool, Ignore, Int, Machine, Row, Trigger

if TYPE_CHECKING:
    from epochgate.models.studies.flink.system import Flink

ABSENT, ASKED, COMPLETED, WAITING, DONE, FAILED = (
    "absent",
    "asked",
    "completed",
    "waiting",
    "done",
    "failed",
)
TRIGGER, FUTURE, COMPLETE, ABORTED, ABORT_TRIGGERING, ACKNOWLEDGE = 0, 1, 2, 3, 4, 5
SEND, SETTLED, LOST, TASK_FAILED, RESTART, READY = 6, 7, 8, 9, 10, 11
FAIL_ALL, RESTART_ALL = 12, 13
KINDS = 14


class MainThread(Machine):
    """The queue of posted calls: each is its kind plus KINDS times its argument.

    It is kept in an array, oldest first, because it can be longer than a channel of a model.
    """

    STATES = ("serving",)
    INITIAL = "serving"

    system: Flink

    posted: list[int] = Array(Int("call"), "calls")
    length: int = Int("calls")

    run: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("run", "serving", STAY, "has_call", "run_oldest", "the oldest posted call runs"),
    )
    # fmt: on

    def has_call(self) -> bool:
        return self.length > 0

    def post(self, kind: int, argument: int) -> None:
        self.posted[self.length] = kind + KINDS * argument
        self.length += 1

    def post_send(self, subtask: int, attempt: int, event: int) -> None:
        self.post(SEND, (subtask * self.system.A + attempt) * self.system.E + event)

    def post_settled(self, subtask: int, attempt: int, event: int) -> None:
        self.post(SETTLED, (subtask * self.system.A + attempt) * self.system.E + event)

    def post_lost(self, subtask: int, attempt: int, event: int) -> None:
        self.post(LOST, (subtask * self.system.A + attempt) * self.system.E + event)

    def post_acknowledge(self, subtask: int, checkpoint: int) -> None:
        self.post(ACKNOWLEDGE, subtask * self.system.K + checkpoint)

    def run_oldest(self) -> None:
        call = self.posted[0]
        for i in range(self.system.calls - 1):
            self.posted[i] = self.posted[i + 1]
        self.posted[self.system.calls - 1] = 0
        self.length -= 1
        kind = call % KINDS
        argument = call // KINDS
        if kind <= ACKNOWLEDGE:
            self.run_of_checkpoint(kind, argument)
        elif kind <= LOST:
            self.run_of_event(kind, argument)
        elif kind == TASK_FAILED:
            self.system.task[argument].hear_failed()
        elif kind == RESTART:
            self.system.task[argument].restart()
        elif kind == READY:
            self.system.task[argument].ready()
        else:
            self.run_of_all(kind)

    def run_of_all(self, kind: int) -> None:
        """Nothing fails or restarts all subtasks here."""

    def run_of_checkpoint(self, kind: int, argument: int) -> None:
        if kind == TRIGGER:
            self.system.holder.trigger_checkpoint(argument)
        elif kind == FUTURE:
            self.system.snapshot[argument].handle()
        elif kind <= ABORTED:
            self.system.holder.hear_outcome(argument)
        elif kind == ABORT_TRIGGERING:
            self.system.holder.abort_triggering()
        else:
            self.system.holder.acknowledge(argument // self.system.K, argument % self.system.K)

    def run_of_event(self, kind: int, argument: int) -> None:
        event = argument % self.system.E
        attempt = argument // self.system.E % self.system.A
        subtask = argument // self.system.E // self.system.A
        if kind == SEND:
            self.system.gateway[subtask, attempt].send(event)
        elif kind == SETTLED:
            self.system.gateway[subtask, attempt].settle(event, False)
        else:
            self.system.task[subtask].hear_lost(attempt, event)
            self.system.gateway[subtask, attempt].settle(event, True)


class Holder(Machine):
    """The map from subtasks to gateways, and what is called on all of them in its order."""

    system: Flink

    current: list[int] = Array(Int("attempts"), "N")
    """The attempt whose gateway the map holds."""
    has_outcome: list[bool] = Array(Bool(), "K")
    """The notice of the checkpoint's end has been handled, well or not."""
    is_told: list[bool] = Array(Bool(), "K")
    """The coordinator has been told of it."""

    def trigger_checkpoint(self, checkpoint: int) -> None:
        for s in range(self.system.N):
            attempt = self.current[s]
            self.system.gateway[s, attempt].mark(checkpoint)
        self.system.snapshot[checkpoint].ask()

    def hear_outcome(self, checkpoint: int) -> None:
        """Reopen all gateways and tell the coordinator; a gateway that has not seen the checkpoint
        throws, which skips the rest.
        """
        self.has_outcome[checkpoint] = True
        has_thrown = False
        for s in range(self.system.N):
            attempt = self.current[s]
            if not self.system.gateway[s, attempt].has_seen(checkpoint):
                has_thrown = True
            if not has_thrown:
                self.system.gateway[s, attempt].reopen(checkpoint)
        if not has_thrown:
            self.is_told[checkpoint] = True

    def abort_triggering(self) -> None:
        """Reopen each gateway for its newest mark: the call does not say which checkpoint."""
        for s in range(self.system.N):
            attempt = self.current[s]
            self.system.gateway[s, attempt].reopen_newest()

    def acknowledge(self, subtask: int, checkpoint: int) -> None:
        if self.system.task[subtask].is_believed_to_run():
            attempt = self.current[subtask]
            assert self.system.gateway[subtask, attempt].has_seen(checkpoint), (
                "a subtask acknowledges what its gateway has seen"
            )
            self.system.gateway[subtask, attempt].reopen(checkpoint)

    def replace(self, subtask: int, attempt: int) -> None:
        self.current[subtask] = attempt


class Snapshot(Machine):
    """The coordinator's part of one checkpoint: its future, the handler, and the wait for sends."""

    INDEX = ("checkpoint",)
    STATES = (ABSENT, ASKED, COMPLETED, WAITING, DONE, FAILED)
    INITIAL = ABSENT
    TERMINAL = (DONE, FAILED)

    system: Flink
    checkpoint: int

    ask: Trigger
    future: Trigger
    refuse: Trigger
    handle: Trigger
    hear: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask",     ABSENT,    ASKED,     None,
            None,                    "the coordinator is asked, behind the marks"),

        Row("future",  ASKED,     COMPLETED, None,
            "take_snapshot",         "its future completes, at any time later"),
        Row("refuse",  ASKED,     FAILED,    "may_refuse",
            "spend, fail",           "its future fails"),

        Row("handle",  COMPLETED, WAITING,   "is_marked and has_in_flight",
            "close_all, take_sends", "sends of before the snapshot are undecided"),
        Row("handle",  COMPLETED, DONE,      "is_marked and not has_in_flight",
            "close_all, report",     "all gateways are closed, and nothing is undecided"),
        Row("handle",  COMPLETED, FAILED,    "not is_marked",
            "check_none, fail",      "the checkpoint was over before"),

        Row("hear",    WAITING,   DONE,      "not is_lost and not has_more",
            "report",                "all sends have arrived"),
        Row("hear",    WAITING,   STAY,      "not is_lost and has_more",
            None,                    "there are more"),
        Row("hear",    WAITING,   FAILED,    "is_lost",
            "fail",                  "a send has failed, and may have arrived"),
        Ignore("hear", FAILED,               None,
                                     "it has failed already"),
    )
    # fmt: on

    def may_refuse(self) -> bool:
        return self.system.faults.refusals < self.system.refusals

    def spend(self) -> None:
        self.system.faults.refusals += 1

    def is_marked(self) -> bool:
        """Return whether every gateway in the map can be closed."""
        return all(self.is_marked_at(s) for s in range(self.system.N))

    def is_marked_at(self, subtask: int) -> bool:
        return self.system.gateway[subtask, self.system.holder.current[subtask]].is_marked(
            self.checkpoint
        )

    def has_in_flight(self) -> bool:
        return any(self.has_tracked(s) for s in range(self.system.N))

    def has_tracked(self, subtask: int) -> bool:
        return any(self.system.gateway[subtask, a].has_tracked() for a in range(self.system.A))

    def is_lost(self, is_lost: bool) -> bool:
        return is_lost

    def has_more(self) -> bool:
        return any(self.awaits(s) for s in range(self.system.N))

    def awaits(self, subtask: int) -> bool:
        return any(
            self.system.gateway[subtask, a].is_awaited_by(self.checkpoint)
            for a in range(self.system.A)
        )

    def take_snapshot(self) -> None:
        for s in range(self.system.N):
            self.system.sender[s].snapshot[self.checkpoint] = self.system.sender[s].sent
        self.system.main.post(FUTURE, self.checkpoint)

    def close_all(self) -> None:
        for s in range(self.system.N):
            attempt = self.system.holder.current[s]
            self.system.gateway[s, attempt].close(self.checkpoint)

    def take_sends(self) -> None:
        for s in range(self.system.N):
            for a in range(self.system.A):
                self.system.gateway[s, a].take_tracked(self.checkpoint)

    def check_none(self) -> None:
        assert not any(self.is_marked_at(s) for s in range(self.system.N)), (
            "D3: some gateways close and others do not, which ends the process"
        )

    def report(self) -> None:
        self.system.pending[self.checkpoint].coordinators_done()

    def fail(self) -> None:
        self.system.pending[self.checkpoint].coordinators_failed()
