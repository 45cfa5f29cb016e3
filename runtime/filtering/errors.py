"""Errors of filtering data, one type for each cause."""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class FilteringDataChanged(EpochgateError):
    """After a failure, other data was reported than before, and splits were left out by that."""


class FilteringMisconfigured(UsageError):
    """The parts of a filtering do not fit together."""


class AlreadyReported(UsageError):
    """A value was added after the subtask had reported what it has."""
