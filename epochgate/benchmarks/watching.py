"""A coordinator that notes when each subtask was last heard of, for benchmarks of recovery.

What an operator says, and when, is the operator's; leaves to the benchmarks what is made to fail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from epochgate.errors import EpochgateError
from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)

WAIT_S = 60.0
OPERATOR = "watched"


class NotRecovered(EpochgateError):
    """A subtask did not come back in time, or there was nothing to kill."""


class Watcher(OperatorCoordinator):
    """Notes the moment of the last event from each subtask."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self._changed = threading.Condition()
        self._heard_s: dict[int, float] = {}

    def start(self) -> None:
        """Nothing to begin."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Nothing to keep."""
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Nothing to take back."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Nothing to send."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """Note the moment."""
        with self._changed:
            self._heard_s[subtask] = time.perf_counter()
            self._changed.notify_all()

    def wait_for(
        self, subtasks: Collection[int], since_s: float, timeout_s: float = WAIT_S
    ) -> float:
        """Return when the last of `subtasks` was heard of after `since_s`. Raises NotRecovered."""

        def missing() -> list[int]:
            return [s for s in subtasks if self._heard_s.get(s, 0.0) <= since_s]

        with self._changed:
            if not self._changed.wait_for(lambda: not missing(), timeout_s):
                raise NotRecovered(
                    f"{len(missing())} of {len(subtasks)} subtasks did not come back within "
                    f"{timeout_s:g} s, the first of them {missing()[0]}"
                )
            return max(self._heard_s[s] for s in subtasks)


W = TypeVar("W", bound=Watcher)


class WatcherProvider(CoordinatorProvider, Generic[W]):
    """Makes the watcher, and keeps it for the benchmark."""

    operator_id = OPERATOR
    watcher: W

    def __init__(self, made: Callable[[CoordinatorContext], W]) -> None:
        self._made = made

    def create(self, context: CoordinatorContext) -> W:
        """Make it."""
        self.watcher = self._made(context)
        return self.watcher
