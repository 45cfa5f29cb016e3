"""The operator API: the user's code inside one Spark task.

A `Program` is the code of one subtask. It has operators, which take part in checkpoints and may
have a coordinator with the same operator id, and a method `work` that does one bounded piece of
work. All methods are called on the task's only thread. Between two calls of `work` the task handles
events, barriers and notifications, in the order in which the driver sent them.
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
    """The result of one call of `Program.work`."""

    DONE = "done"
    """Something was processed; call `work` again."""
    IDLE = "idle"
    """Nothing to do until an event arrives or a wake-up of `OperatorContext.wake_after` is due."""
    ENDED = "ended"
    """The end of the input; the next checkpoint is the last one of this subtask."""


def no_receipts(event: Any) -> SendFuture:
    """Raise FatalTaskError: this context gives no receipts."""
    raise FatalTaskError(f"no receipt is given here for {event!r}")


def no_wake_up(seconds: float) -> None:
    """Raise FatalTaskError: this context has no timers."""
    raise FatalTaskError(f"no wake-up is given here after {seconds} s")


@dataclass(frozen=True)
class OperatorContext:
    """An operator's place in the job, its connection to the coordinator with the same operator id,
    and its timers.

    `send_to_coordinator(value)` sends a plain value. `send_with_receipt(value)` also returns a
    future, which completes between two calls of `work`, after the coordinator has handled the
    event. If the future is done when the operator takes a snapshot, the event is in the
    coordinator's snapshot of the same checkpoint. Otherwise the event may or may not be in it: keep
    the event in the operator's state, and send it again after a restore. Source: FLINK-16986; see
    `epochgate.runtime.api.receipts`.

    `wake_after(seconds)` makes the task call `work` again after that time, even without an event.
    Call it in `work` and return IDLE; the thread is then free for barriers and events. The earliest
    of several wake-ups counts, and `work` may be called before it, so compare with `now_s()`. A
    wake-up is not part of a checkpoint: a restored attempt requests its own, in `open` or in its
    first `work`. Raises ValueError if `seconds` is not positive. `now_s()` returns the seconds of
    the clock of wake-ups; in a simulated job, the simulated clock.
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


class _NotOpened:
    """Stands for the context until `Operator.open` has set it."""

    def __get__(self, operator: object, kind: type) -> OperatorContext:
        raise AttributeError(
            f"{kind.__name__} has no `context`: call super().open(context, state) in its `open`"
        )


class Operator(ABC):
    """A part of a program with state of its own. An exception of a method fails the attempt; a
    FatalTaskError fails the job. Source: Flink's StreamOperator and OperatorEventHandler.
    """

    context = _NotOpened()
    state_version: int = 1
    """The version of the state's form, from 1. Write `state_version = 2` in the class when the form
    changes.
    """

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Restore `state`, the result of an earlier attempt's `snapshot`; None means no state.

        Called once, before any other method.
        """
        self.context = context

    @abstractmethod
    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the state as bytes: the effect of exactly the events and the work so far.

        Returning acknowledges the barrier. Use `pack_parts` for a large state, so that a checkpoint
        writes only the parts that have changed.
        """

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """Return the state, which has an older version, in the form of `state_version`.

        Called before `open`, which gets the result. Raises StateNotUpgraded unless it is
        overridden.
        """
        from epochgate.runtime.api.state_versions import StateNotUpgraded

        raise StateNotUpgraded(f"operator {type(self).__name__}", version, self.state_version)

    def handle_event(self, event: Any) -> None:
        """Handle an event of the coordinator, a plain value.

        The event is confirmed when the method returns. An exception fails the attempt. Raises
        TypeError unless it is overridden.
        """
        raise TypeError(
            f"{type(self).__name__} got an event from its coordinator but does not handle events; "
            f"override handle_event"
        )

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Return committables, plain values for the committer when the checkpoint is complete.

        Called before `snapshot`. If the checkpoint is aborted, return its committables again for
        the next one. Source: Flink's CommittingSinkWriter.
        """
        return []

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is durable, before the next barrier. A restored attempt is
        not notified of the checkpoint that it restored.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Called when the checkpoint is aborted: no later attempt or start will restore it. Not
        called if the store cannot tell whether it holds the checkpoint.
        """

    def metrics(self) -> Mapping[str, int | float]:
        """Return counters since the attempt began, by name. They are shown with those of the
        program as `OPERATOR_ID.NAME`.
        """
        return {}

    def close(self) -> None:
        """Release all resources; also called when the attempt fails or is canceled."""


class Program(ABC):
    """The code of one subtask: its operators, and the work that it does."""

    @property
    @abstractmethod
    def operators(self) -> Mapping[str, Operator]:
        """The operators by their ids, in the order in which they take snapshots."""

    @abstractmethod
    def work(self) -> Work:
        """Do one bounded piece of work, such as one Arrow record batch, and return a `Work`.

        Events and barriers wait meanwhile. An exception fails the attempt. FatalTaskError, or a
        result that is no `Work`, fails the job.
        """

    def metrics(self) -> dict[str, int | float]:
        """Return counters since the attempt began, by name. The driver shows them in
        `JobReport.metrics`, updated each second, at each checkpoint and at the end.
        """
        return {}


def operators_of(program: Program) -> dict[str, Operator]:
    """Return the operators of a program. Raises FatalTaskError for what is no mapping of them."""
    held: Any = program.operators
    if not isinstance(held, Mapping) or not all(isinstance(one, Operator) for one in held.values()):
        raise FatalTaskError(
            f"operators of {_named(program)} returned {held!r}, and must return a dict of operator "
            "ids and operators"
        )
    return dict(held)


def metrics_of(program: Program) -> dict[str, int | float]:
    """Return the counters of a program and of its operators. Raises FatalTaskError unless each
    returns a mapping.
    """
    counters = dict(_figures(program))
    for operator_id, operator in program.operators.items():
        for name, value in _figures(operator).items():
            counters[f"{operator_id}.{name}"] = value
    return counters


def _figures(one: Program | Operator) -> Mapping[str, int | float]:
    figures: Any = one.metrics()
    if not isinstance(figures, Mapping):
        raise FatalTaskError(
            f"metrics of {_named(one)} returned {figures!r}, and must return a dict of names and "
            "numbers, an empty one for none"
        )
    return figures


def _named(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


class FatalTaskError(Exception):
    """A permanent error of user code: the job fails instead of restarting.

    Raise it in a task or in a coordinator for an error that a retry cannot fix.
    """
