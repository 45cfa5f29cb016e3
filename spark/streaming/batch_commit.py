"""One commit of a batch, carried out: the machine says which step is next, and this does it.

Decides nothing: a step ends in a trigger of the machine; an answer that is not known, or another
writer that came before, is `unsure`; any other error is `broken`, and raised at the end. Runs where
Spark calls `commit`, a worker process beside the driver, or a function of `foreachBatch`; on one
thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from epochgate.errors import InvariantBroken
from epochgate.models.query_batch import QueryBatch, QueryBatches
from epochgate.runtime import RetryLater

PAUSE_S = 0.05
PAUSE_MAX_S = 2.0


class BatchPlace(Protocol):
    """Where a batch takes effect. Each step may raise RetryLater, where its outcome is not known or
    others came before, or another error.
    """

    def look(self) -> tuple[int, int, int]:
        """How many batches there are; KNOWN, MOVED or EMPTIED; and 1 if the batch was noted with
        other offsets.
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
        """What a refusal is told as."""


class BatchCommit:
    """Carries the steps out: the handler of the machine's port. `pause`: for tests."""

    def __init__(self, place: BatchPlace, pause: Callable[[float], None] = time.sleep) -> None:
        self._place, self._pause = place, pause
        self._system = QueryBatches()
        self._system.bind("query_batch", "target", self)
        self._error: Exception | None = None
        self._outcome: Exception | None = InvariantBroken("the commit has no end")

    def commit(self, batch: int, accepts: int) -> None:
        """To the end. Raises a refusal, or what the last step has raised."""
        self._system.query_batch.commit(batch, accepts)
        self._system.settle()
        if self._outcome is not None:
            raise self._outcome

    def abort(self) -> None:
        """What Spark calls where a batch has failed, or a commit has raised."""
        self._system.query_batch.abort()
        self._system.settle()

    # port `target`

    def look(self, batch: int, tries: int) -> None:
        if tries:
            self._pause(min(PAUSE_S * 2**tries, PAUSE_MAX_S))
        with self._step() as machine:
            machine.looked(*self._place.look())

    def note(self, batch: int) -> None:
        with self._step() as machine:
            self._place.note()
            machine.noted()

    def apply(self, batch: int) -> None:
        with self._step() as machine:
            machine.applied(1 if self._place.apply() else 0)

    def record(self, batch: int) -> None:
        with self._step() as machine:
            self._place.record()
            machine.recorded()

    def sweep(self, batch: int) -> None:
        with self._step() as machine:
            self._place.sweep()
            machine.swept()

    def done(self, batch: int) -> None:
        self._outcome = None

    def refused(self, batch: int, reason: int) -> None:
        self._outcome = self._place.refusal(reason)

    def failed(self, batch: int) -> None:
        self._outcome = self._error

    @contextlib.contextmanager
    def _step(self) -> Iterator[QueryBatch]:
        machine = self._system.query_batch
        try:
            yield machine
        except RetryLater as error:
            self._error = error
            machine.unsure()
        except Exception as error:  # noqa: BLE001  # it is raised once the machine has ended
            self._error = error
            machine.broken()
