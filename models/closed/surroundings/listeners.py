"""The users' coordinators of a job with concurrent attempts, its store, its timers and its record.

The coordinators keep account of what they are told, and claim its order; the store claims that one
attempt of each subtask hands over its part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.attempt import FAILED
from epochgate.models.closed.surroundings.unasked import Unasked
from epochgate.models.execution_vertex import ATTEMPTED

if TYPE_CHECKING:
    from epochgate.models.closed.concurrent import ConcurrentAttempts


class Coordinator(Unasked):
    """A user's coordinator, and what it knows of each place: port `user` of its holder.

    In a state of its own as little as the claims need: they are in what it is told.
    """

    INDEX = ("coordinator",)
    STATES = ("up",)
    INITIAL = "up"

    system: ConcurrentAttempts
    coordinator: int

    is_ready: list[bool] = Array(Bool(), "subtasks")
    number: list[int] = Array(Int("attempts"), "subtasks")
    """The last attempt at each place that was ready, and 1."""
    is_reset_due: list[bool] = Array(Bool(), "vertices")
    asked_for: int = Int("checkpoints")
    sent: int = Int("events")

    take_snapshot: Trigger
    fail_everything: Trigger

    # fmt: off
    ROWS = (
        Row("take_snapshot",   "up", STAY, "is_asked",
            "answer",                  "it completes its future"),
        Row("fail_everything", "up", STAY, "may_fail",
            "spend_failure, fail_job", "it finds that its state is wrong"),
    )
    # fmt: on

    def is_asked(self) -> bool:
        return self.asked_for > 0

    def may_fail(self) -> bool:
        return self.system.budget.has_failures() and self.system.lifecycle.state == "running"

    def spend_failure(self) -> None:
        self.system.budget.failures += 1

    def answer(self) -> None:
        state = self.system.keeper[self.coordinator].state_in(self.asked_for)
        self.system.snapshot[self.coordinator].succeed(self.asked_for, state)
        self.asked_for = 0

    def fail_job(self) -> None:
        self.system.holder[self.coordinator].fail_job("its state is wrong", False)

    def start(self) -> None:
        self.system.holder[self.coordinator].started()

    def unfit(self) -> None:
        """The coordinator fails the job only while the job runs, so it is never unfit to start."""

    def rebuild(self, checkpoint: int) -> None:
        """No coordinator fails to start or to be restored, so none is rebuilt."""

    def rebuild_from_batch_snapshot(self) -> None:
        """The job was given no snapshot without a checkpoint."""

    def close(self) -> None:
        pass

    def reset_to(self, checkpoint: int) -> None:
        for s in range(self.system.subtasks):
            assert not self.is_ready[s], "everything goes back once all attempts are gone"
        for v in range(self.system.vertices):
            self.is_reset_due[v] = False
        self.system.holder[self.coordinator].restored()

    def reset_to_batch_snapshot(self) -> None:
        """The job was given no snapshot without a checkpoint."""

    def checkpoint(self, checkpoint: int) -> None:
        self.asked_for = checkpoint

    def complete(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int) -> None:
        self.asked_for = 0

    def ready(self, subtask: int, attempt: int) -> None:
        vertex = subtask // self.system.concurrent
        assert not self.is_reset_due[vertex], (
            "the subtask is reset once, when its last attempt is gone, and before the next"
        )
        for i in range(self.system.concurrent):
            assert self.number[vertex * self.system.concurrent + i] != attempt + 1, (
                "each attempt of a subtask has its own number"
            )
        self.is_ready[subtask] = True
        self.number[subtask] = attempt + 1

    def failed(self, subtask: int, attempt: int, reason: int) -> None:
        vertex = subtask // self.system.concurrent
        self.is_ready[subtask] = False
        self.is_reset_due[vertex] = not self.system.lives(vertex)
        self.system.record[vertex].is_due = (
            self.system.vertex[vertex].state == ATTEMPTED
            and self.system.attempt[subtask].state == FAILED
            and self.system.attempt[subtask].number == attempt
        )

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        vertex = subtask // self.system.concurrent
        for i in range(self.system.concurrent):
            assert not self.is_ready[vertex * self.system.concurrent + i], (
                "no subtask is reset while an attempt of it is there"
            )
        assert self.is_reset_due[vertex], (
            "the subtask is reset once, when its last attempt is gone, and before the next"
        )
        self.is_reset_due[vertex] = False

    def event(self, subtask: int, attempt: int, event: int) -> None:
        assert self.is_ready[subtask], "an operator's event comes from an attempt that is there"
        assert self.number[subtask] == attempt + 1, (
            "an operator's event comes from the attempt that is there"
        )
        assert event == attempt + 1, "an operator's event is taken for its own attempt's"


class Sends(Environment):
    """The events that one coordinator sends through the last gateway that it was given for a place:
    port `sender` of the gateway.
    """

    INDEX = ("coordinator", "subtask")
    STATES = ("sending",)
    INITIAL = "sending"

    system: ConcurrentAttempts
    coordinator: int
    subtask: int

    send: Trigger
    send_late: Trigger

    # fmt: off
    ROWS = (
        Row("send",      "sending", STAY, "may_send",
            "send_event",    "a coordinator sends; the attempt may be gone"),
        Row("send_late", "sending", STAY, "may_send and is_place_reused",
            "send_to_first", "the event is for the first attempt of a place that has another now"),
    )
    # fmt: on

    def may_send(self) -> bool:
        return (
            self.system.user[self.coordinator].sent < self.system.events
            and self.system.user[self.coordinator].number[self.subtask] > 0
        )

    def is_place_reused(self) -> bool:
        """The first attempt of a subtask is always at its first place."""
        return (
            self.subtask % self.system.concurrent == 0
            and self.system.user[self.coordinator].number[self.subtask] > 1
        )

    def send_to_first(self) -> None:
        self.system.user[self.coordinator].sent += 1
        self.system.gateway[self.coordinator, self.subtask].send(0, 0)

    def send_event(self) -> None:
        self.system.user[self.coordinator].sent += 1
        attempt = self.system.user[self.coordinator].number[self.subtask] - 1
        self.system.gateway[self.coordinator, self.subtask].send(attempt, attempt)

    def event(self, identity: int, number: int, event: int) -> None:
        self.system.wires[self.subtask].event(identity, self.coordinator, number, event)

    def confirmed(self, count: int) -> None:
        pass

    def lost(self, count: int, reason: int) -> None:
        pass

    def held(self, event: int) -> None:
        pass

    def turned_away(self, event: int) -> None:
        pass


class Shore(Environment):
    """Store, requester and the job's record: what one attempt of each subtask has handed over."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ConcurrentAttempts

    has_part: list[bool] = Array(Bool(), "vertices")
    is_saving: bool = Bool()

    finish_save: Trigger

    # fmt: off
    ROWS = (
        Row("finish_save", "ready", STAY, "has_whole", "report_stored", "it is durable"),
    )
    # fmt: on

    def has_whole(self) -> bool:
        return self.is_saving

    def report_stored(self) -> None:
        self.is_saving = False
        self.system.checkpoint.stored(self.system.checkpoint.number)

    def started(self, checkpoint: int) -> None:
        for v in range(self.system.vertices):
            self.has_part[v] = False

    def keep(self, checkpoint: int, subtask: int, snapshot: int) -> None:
        assert not self.has_part[subtask // self.system.concurrent], (
            "one attempt of each subtask hands over its results"
        )
        self.has_part[subtask // self.system.concurrent] = True

    def save(self, checkpoint: int) -> None:
        for v in range(self.system.vertices):
            assert self.has_part[v], "one attempt of each subtask hands over its results"
        self.is_saving = True

    def completed(self, checkpoint: int) -> None:
        pass

    def aborted(self, checkpoint: int, reason: int) -> None:
        pass

    def unknown(self, checkpoint: int, reason: int) -> None:
        pass

    def refused(self) -> None:
        pass

    def chosen(self, checkpoint: int) -> None:
        assert checkpoint == self.system.checkpoint.number, "requests know their checkpoint"


class Record(Environment):
    """The keeper of the job's record: port `record` of a vertex."""

    INDEX = ("vertex",)

    system: ConcurrentAttempts
    vertex: int

    is_due: bool = Bool()
    """An attempt was outlived, which is to be told in this step; never so between two steps."""

    def outlived(self, place: int, attempt: int, reason: int) -> None:
        assert self.system.lives(self.vertex), "another attempt of the subtask goes on"
        assert place // self.system.concurrent == self.vertex, "it was at a place of the subtask"
        newest = self.system.attempt[place].number
        assert attempt == newest or not self.is_due, "it is the attempt that has failed"
        assert attempt <= newest, "it was at this place before the one that is there"
        self.is_due = False


class Delays(Environment):
    """The restart strategy's timers: port `driver` of the lifecycle."""

    STATES = ("ready",)
    INITIAL = "ready"

    system: ConcurrentAttempts

    due: list[int] = Array(Int("attempts"), "subtasks")
    """For each place the attempt to be followed by another, and 1; 0 for none."""
    restarts: int = Int("restarts")
    """The restart of all that waits for its back-off; 0 for none."""

    back_off: Trigger

    # fmt: off
    ROWS = (
        Row("back_off", "ready", STAY, "is_backing_off", "report", "the delay is over"),
    )
    # fmt: on

    def is_backing_off(self) -> bool:
        return self.restarts > 0

    def report(self) -> None:
        self.system.lifecycle.backed_off(self.restarts)
        self.restarts = 0

    def restart_one(self, subtask: int, attempt: int, reason: int) -> None:
        self.due[subtask] = attempt + 1

    def restart_all(self, restarts: int, reason: int) -> None:
        self.restarts = restarts

    def finish(self, subtask: int, identity: int) -> None:
        self.system.notices.finish(subtask, identity)

    def ending(self, reason: int) -> None:
        pass

    def decided(self, outcome: int, checkpoint: int) -> None:
        pass

    def ended(self) -> None:
        pass


class Delay(Environment):
    """The delay before the restart of one place; it may be over too late."""

    INDEX = ("subtask",)
    STATES = ("timing",)
    INITIAL = "timing"

    system: ConcurrentAttempts
    subtask: int

    elapse: Trigger

    # fmt: off
    ROWS = (
        Row("elapse", "timing", STAY, "is_due", "restart", "the delay is over"),
    )
    # fmt: on

    def is_due(self) -> bool:
        return self.system.delays.due[self.subtask] > 0

    def restart(self) -> None:
        attempt = self.system.delays.due[self.subtask] - 1
        self.system.delays.due[self.subtask] = 0
        self.system.attempt[self.subtask].restart(attempt)
