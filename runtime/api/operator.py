"""The operator API: what a user writes for the worker's side, inside one Spark task.

A `Program` is what one subtask runs: a few operators, which take part in checkpoints and may have a
coordinator of the same operator id, and `work`, one bounded piece of processing. Everything is
called on the task's only thread: events, barriers and notices come in between two pieces of work,
in the order in which the driver sent them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from epochgate.runtime.api.send_future import SendFuture


class Work(Enum):
    """What a piece of work came to."""

    DONE = "done"
    """Something was processed, and there may be more."""
    IDLE = "idle"
    """Nothing to do until an event arrives, or a wake-up is due that `OperatorContext.wake_after`
    has asked for.
    """
    ENDED = "ended"
    """Nothing will ever come again; the next checkpoint is this subtask's last."""


def no_receipts(event: Any) -> SendFuture:
    """Refuse: the maker of this context gives no receipts."""
    raise FatalTaskError(f"no receipt is given here for {event!r}")


def no_wake_up(seconds: float) -> None:
    """Refuse: the maker of this context has no timers."""
    raise FatalTaskError(f"no wake-up is given here after {seconds} s")


@dataclass(frozen=True)
class OperatorContext:
    """Where an operator runs, and how it speaks to the coordinator of the same operator id.

    `send_to_coordinator` sends a plain value. `send_with_receipt` does so too and returns a future,
    which completes between two pieces of work, once the coordinator has handled the event: what is
    done when the operator takes a snapshot is in the coordinator's snapshot of the same checkpoint.
    What is not done may or may not be; keep it in the operator's state and send it again after a
    restore. Source: FLINK-16986; see `epochgate.runtime.api.receipts`.

    `wake_after(seconds)` lets the program work again once that time has passed, although no event
    comes: `work` asks for it, returns IDLE, and leaves the thread to barriers and events meanwhile.
    Of several wake-ups the earliest counts; work may also be called before, so look at the time.
    No checkpoint holds a wake-up: an attempt asks for its own, in `open` or at its first work.
    Raises ValueError for a time that is not to come. `now_s()` are the seconds of the clock that
    wake-ups go by, in a simulated job those of the simulation.
    """

    operator_id: str
    subtask: int
    attempt: int
    parallelism: int
    run_id: str
    send_to_coordinator: Callable[[Any], None]
    send_with_receipt: Callable[[Any], SendFuture] = no_receipts
    wake_after: Callable[[float], None] = no_wake_up
    now_s: Callable[[], float] = time.monotonic


class Operator(ABC):
    """A part of a program that has state. What a method raises fails its attempt, and a
    FatalTaskError the job. Source: Flink's StreamOperator and OperatorEventHandler.
    """

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Begin from `state`, what `snapshot` of an attempt before has returned, or from nothing;
        called once, before anything else.
        """
        self.context = context

    @abstractmethod
    def snapshot(self, checkpoint_id: int) -> bytes:
        """The state, as bytes, in which exactly the events and work so far are reflected; its
        return acknowledges the barrier. Of a large one, `pack_parts` lets a checkpoint write what
        has changed alone.
        """

    @property
    def state_version(self) -> int:
        """Which form of its state `snapshot` returns, from 1: write `state_version = 2` in the
        class when the form changes.
        """
        return 1

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """The state of an older version in the form of `state_version`; `open` gets what this
        returns. Called before `open`.

        Refuses every version unless it is overridden: raises StateNotUpgraded.
        """
        from epochgate.runtime.api.state_versions import StateNotUpgraded

        raise StateNotUpgraded(f"operator {type(self).__name__}", version, self.state_version)

    def handle_event(self, event: Any) -> None:
        """The coordinator has sent `event`, a plain value; it is confirmed once this has returned.

        Raising fails the attempt. Raises TypeError unless it is overridden.
        """
        raise TypeError(
            f"{type(self).__name__} got an event from its coordinator but does not handle events; "
            f"override handle_event"
        )

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Plain values that the committer gets once the checkpoint is complete; called before
        `snapshot`.

        What was handed over for a checkpoint that is then aborted must be handed over again for the
        next.
        """
        return []

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable; on the wire this comes before the next barrier. An attempt
        that begins from a checkpoint gets no notice of that one.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be: no later attempt or start restores it. Nothing is said of a
        checkpoint if the store cannot tell whether it exists.
        """

    def metrics(self) -> Mapping[str, int | float]:
        """This operator's counters since the attempt began, by name; shown with those of the
        program, as `OPERATOR_ID.NAME`.
        """
        return {}

    def close(self) -> None:
        """Release everything; also called when the attempt fails or is canceled."""


class Program(ABC):
    """What one subtask runs."""

    @property
    @abstractmethod
    def operators(self) -> Mapping[str, Operator]:
        """The operators by their ids, in the order in which they take snapshots."""

    @abstractmethod
    def work(self) -> Work:
        """Do one bounded piece of work, an Arrow record batch for instance; events and barriers
        wait meanwhile. Raising fails the attempt, FatalTaskError the job, and so does returning
        anything else.
        """

    def metrics(self) -> dict[str, int | float]:
        """Counters since the attempt began by name, shown by the driver as `JobReport.metrics`:
        as of every second, each checkpoint and the end.
        """
        return {}


def metrics_of(program: Program) -> dict[str, int | float]:
    """The counters of a program and of its operators."""
    counters = dict(program.metrics())
    for operator_id, operator in program.operators.items():
        for name, value in operator.metrics().items():
            counters[f"{operator_id}.{name}"] = value
    return counters


class FatalTaskError(Exception):
    """Raised in a task or by a coordinator for what trying again cannot mend: the job fails instead
    of restarting.
    """
