"""The services of a query for the coordinator of its control: a part of those of a resident job.

Decides that work which a coordinator hands over is done on the thread of the batch: posted calls
before the next choice and before the state is taken, asynchronous work at once. What needs a loop
or checkpoints of its own is refused, because nothing runs between two batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from epochgate.errors import UsageError
from epochgate.runtime.api.coordinator import CheckpointAccess, RunningCoroutine
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.api.user_code import load


class NotInAQuery(UsageError):
    """A coordinator of a control used what only a resident job has: its operator id, what it used,
    and what to do.
    """

    def __str__(self) -> str:
        operator_id, used, instead = self.args
        return (
            f"coordinator {operator_id!r} used context.{used}, which a streaming query does not "
            f"have: its coordinator is called only when a batch is decided. {instead}"
        )


class BatchContext:
    """Implements `CoordinatorContext` for the coordinator of a control."""

    parallelism = 1
    concurrent_attempts_max = 1

    def __init__(self, operator_id: str, query: str, process: str) -> None:
        self.operator_id, self.job_id, self.run_id = operator_id, query, process
        self.coordinator_store, self.metrics = CoordinatorStore(), CoordinatorMetrics()
        self._posted: deque[Callable[[], None]] = deque()
        self._cause: BaseException | str | None = None

    def load(self, name: str) -> Any:
        """Import an object by its name. Raises CannotLoad."""
        return load(name)

    def fail_job(self, cause: BaseException | str) -> None:
        """Fail the batch that is being decided, or else the next one. Thread-safe."""
        self._cause = self._cause or cause

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run a call before the next choice, or before the state is taken. Thread-safe."""
        self._posted.append(lambda: call(*arguments))

    def run_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any, BaseException | None], None],
        *,
        lane: str = "",
    ) -> None:
        """Do the work, and then the rest, on this thread: a choice may block."""
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # what the work raises is the coordinator's to judge
            let_pass(error)
            then(None, error)
        else:
            then(result, None)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> NoReturn:
        """Raises NotInAQuery."""
        self._refuse("post_later", "Compare the time in `choose`")

    def run_coroutine(
        self,
        coroutine: Coroutine[Any, Any, Any],
        then: Callable[[Any, BaseException | None], None],
    ) -> RunningCoroutine:
        """Raises NotInAQuery."""
        coroutine.close()
        self._refuse("run_coroutine", "Run it in `choose`, by asyncio.run")

    @property
    def checkpoints(self) -> CheckpointAccess:
        """Raises NotInAQuery."""
        self._refuse("checkpoints", "Each batch is a checkpoint")

    def run_posted(self) -> None:
        """Do what was posted. Raises what that raises, and the cause of `fail_job`."""
        while self._posted:
            self._posted.popleft()()
        if isinstance(self._cause, BaseException):
            raise self._cause
        if self._cause is not None:
            raise FailedByCoordinator(self._cause)

    def _refuse(self, used: str, instead: str) -> NoReturn:
        raise NotInAQuery(self.operator_id, used, instead)


class FailedByCoordinator(Exception):
    """A coordinator called `fail_job` with a text."""
