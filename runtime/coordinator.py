"""The coordinator API: what a user writes for the driver's side of an operator, and what it is
given to work with.

Source: Apache Flink's OperatorCoordinator, its Context, Provider and SubtaskGateway (section 5 of
docs/protocol.md). All calls of a coordinator are made on the event queue's thread, one at a time;
what it does in them must not block. Per subtask the order is: ready, failed, then reset of the
subtask or of everything, then ready again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from epochgate.runtime.send_future import SendFuture


class SubtaskGateway(Protocol):
    """Sends events to one execution attempt of a subtask; useless once that has failed."""

    @property
    def subtask(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    def send_event(self, event: Any) -> SendFuture:
        """Send a plain value (none, bool, int, float, str, bytes, and lists and dicts of these).

        An event sent before the coordinator completes its checkpoint is part of the subtask's state
        in that checkpoint, an event sent later is not. Any thread; events of one thread keep their
        order.
        """
        ...


class CoordinatorContext(Protocol):
    """What a coordinator may use."""

    @property
    def operator_id(self) -> str: ...
    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        ...

    def fail_job(self, cause: BaseException | str) -> None:
        """Take the whole job back to its last completed checkpoint; the first call counts until
        then. Any thread.
        """
        ...

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` on the queue's thread, in its turn; how a thread of the coordinator comes
        back. Any thread.
        """
        ...

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` on the queue's thread after `delay_s` seconds; queue thread only."""
        ...

    def run_async(
        self, work: Callable[[], Any], then: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run blocking `work` elsewhere, then call `then(result, error)` on the queue's thread."""
        ...


class OperatorCoordinator(ABC):
    """The driver's side of an operator. Only the abstract methods must be written."""

    @abstractmethod
    def start(self) -> None:
        """Called once, after a restore if there is one, before anything else. Raising fails the
        job.
        """

    @abstractmethod
    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Take a snapshot and complete `result` with it; the moment of completing is the moment of
        the checkpoint.

        It may be completed later and from any thread, and must be completed: otherwise the
        checkpoint times out.
        """

    @abstractmethod
    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back to `state`, or with None to the beginning: all subtasks do too, and none is
        ready.
        """

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """An operator has sent `event`, a plain value."""
        raise TypeError(
            f"{type(self).__name__} got an event from subtask {subtask} but handles none; "
            f"override handle_event_from_operator"
        )

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """`attempt` of `subtask` can be sent events from now on."""

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """What was sent to `attempt` since the last checkpoint is lost; wait for the reset to learn
        which that is.
        """

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """The subtask goes back to `checkpoint_id` (0: to the beginning): take back what it was
        told after.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable; this notice may be missed, and is then subsumed by a later
        one.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be."""

    def close(self) -> None:
        """The job is over; release everything."""


class CoordinatorProvider(ABC):
    """Makes the coordinator of one operator."""

    @property
    @abstractmethod
    def operator_id(self) -> str:
        """The name that ties coordinator, operator and their state together; unique in a job."""

    @abstractmethod
    def create(self, context: CoordinatorContext) -> OperatorCoordinator: ...
