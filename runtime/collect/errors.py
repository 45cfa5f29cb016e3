"""Errors of collected rows, one type for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.errors import EpochgateError, UsageError

if TYPE_CHECKING:
    from epochgate.runtime.api.reports import JobResult


class CollectMisconfigured(UsageError):
    """A limit of a collect sink cannot be meant."""


class NothingToCollect(UsageError):
    """The job has no collect sink with this operator id."""


class AlreadyCollected(UsageError):
    """A client collects these rows already; each row is handed over once."""


class BufferFull(UsageError):
    """A program has gone on adding rows although the operator had no room for them."""


class RowTooLarge(UsageError):
    """One row alone is more than travels in a message."""


class StateUnreadable(UsageError):
    """A checkpoint holds rows in a form that this version does not know."""


class RowsIncomplete(EpochgateError):
    """The job has ended before its rows did; `result` says how.

    The rows handed over before this error were each handed over exactly once (with
    `uncheckpointed`, at least once).
    """

    def __init__(self, result: JobResult) -> None:
        super().__init__(
            f"the job has {'been ' if result.state == 'canceled' else ''}{result.state} before all "
            f"its rows were there: {result.reason}. A start with the same checkpoint store goes on "
            f"from checkpoint {result.last_checkpoint_id}"
        )
        self.result = result
