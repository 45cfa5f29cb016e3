"""One commit of a batch, carried out: the machine says which step is next, and this does it.

Decides nothing: a step ends in a trigger of the machine; an answer that is not known, or another
writer that came before, is `unsure`; one that exceeds its limit is `expire`; any other error is
`broken`, and raised at the end. Runs where Spark calls `commit`, a worker process beside the
driver, or a function of `foreachBatch`; the steps on a thread of their own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar

from epochgate.errors import InvariantBroken
from epochgate.fsm import Handle, Handles
from epochgate.models.query_batch import QueryBatch, QueryBatches
from epochgate.runtime import RetryLater
from epochgate.runtime.limited import CallLate, Limit, LimitedCalls, watched

COMMIT_TIMEOUT_S: Final = 3600.0
T = TypeVar("T")
PAUSE_S = 0.05
PAUSE_MAX_S = 2.0


def commit_limit(timeout_s: float) -> Limit:
    """Return the limit of each step of a commit, and of what is looked up before the first one."""
    return Limit("commit_timeout_s, or the option commitTimeout", timeout_s)


class CommitTarget(Protocol):
    """The place where a batch takes effect. Each step may raise RetryLater, where its outcome is
    not known or others came before, or another error.
    """

    def look(self) -> tuple[int, int, int]:
        """Look at the target. Return how many batches there are; KNOWN, MOVED or EMPTIED; and 1 if
        the batch was noted with other offsets.
        """

    def note(self) -> None:
        """Say durably what comes next, if what was noted is as it was read."""

    def apply(self) -> bool:
        """Let the batch take effect; whether the effect carries its number."""

    def record(self) -> None:
        """Record that it has."""

    def sweep(self) -> None:
        """Remove what is staged of this batch and of those before."""

    def refusal(self, reason: int) -> Exception:
        """Return the exception that tells of a refusal."""


class BatchCommit:
    """Carries the steps out: the handler of the machine's port.

    `timeout_s`: for each step. `calls_user`: the step `apply` is a function of the user's. It runs
    on the thread of the caller, to which Spark's properties belong, and has no limit, as Spark
    gives it none: a batch takes as long as its data takes. `pause`: for tests.
    """

    def __init__(
        self,
        target: CommitTarget,
        pause: Callable[[float], None] = time.sleep,
        timeout_s: float = COMMIT_TIMEOUT_S,
        *,
        calls_user: bool = False,
    ) -> None:
        self._target, self._pause, self._calls_user = target, pause, calls_user
        self._limit = commit_limit(timeout_s)
        self._calls = LimitedCalls("epochgate-batch-commit")
        self._system = Handles(QueryBatches)
        self._system.bind("query_batch", "target", self)
        self._error: Exception | None = None
        self._outcome: Exception | None = InvariantBroken("the commit has no end")

    def commit(self, batch: int, accepts: int, held: int = 0) -> None:
        """To the end. Raises a refusal, or what the last step has raised."""
        self._system.query_batch.commit(batch, accepts, held)
        self._system.settle()
        if self._outcome is not None:
            raise self._outcome

    def abort(self) -> None:
        """Take Spark's call where a batch has failed, or a commit has raised."""
        self._system.query_batch.abort()
        self._system.settle()

    # port `target`

    def look(self, batch: int, tries: int) -> None:
        if tries:
            self._pause(min(PAUSE_S * 2**tries, PAUSE_MAX_S))
        with self._step() as machine:
            machine.looked(*self._limited("look", batch, self._target.look))

    def note(self, batch: int) -> None:
        with self._step() as machine:
            self._limited("note", batch, self._target.note)
            machine.noted()

    def apply(self, batch: int) -> None:
        with self._step() as machine:
            machine.applied(1 if self._applied(batch) else 0)

    def _applied(self, batch: int) -> bool:
        if not self._calls_user:
            return self._limited("apply", batch, self._target.apply)
        with watched(f"the function of batch {batch}"):
            return self._target.apply()

    def record(self, batch: int) -> None:
        with self._step() as machine:
            self._limited("record", batch, self._target.record)
            machine.recorded()

    def sweep(self, batch: int) -> None:
        with self._step() as machine:
            self._limited("sweep", batch, self._target.sweep)
            machine.swept()

    def _limited(self, step: str, batch: int, function: Callable[[], T]) -> T:
        what = f"the step {step!r} of the commit of batch {batch}"
        return self._calls.call(what, self._limit, function)

    def done(self, batch: int) -> None:
        self._outcome = None

    def refused(self, batch: int, reason: int) -> None:
        self._outcome = self._target.refusal(reason)

    def failed(self, batch: int) -> None:
        self._outcome = self._error

    @contextlib.contextmanager
    def _step(self) -> Iterator[Handle[QueryBatch]]:
        machine = self._system.query_batch
        try:
            yield machine
        except RetryLater as error:
            self._error = error
            machine.unsure()
        except CallLate as error:
            self._error = error
            machine.expire()
        except Exception as error:  # noqa: BLE001  # it is raised once the machine has ended
            self._error = error
            machine.broken()
