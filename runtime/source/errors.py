"""Errors of a source of a user's own, one exception type per cause.

Those that trying again cannot mend also derive from `FatalTaskError`: they end the job instead of
restarting it.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.api.operator import FatalTaskError


class SourceStateRefused(FatalTaskError, EpochgateError):
    """A checkpoint holds a state of the source that this version cannot read."""


class AssignmentsForgotten(EpochgateError):
    """A snapshot without a checkpoint was asked for after a checkpoint was completed."""


class AlignmentAmongAttempts(UsageError):
    """Watermark alignment was asked for in a job with concurrent attempts."""


class AttemptNotNamed(FatalTaskError, EpochgateError):
    """A source event in a job with concurrent attempts is for, or from, a subtask as such."""


class SplitAssignedTwice(FatalTaskError, EpochgateError):
    """A reader was given a split that it is reading already."""


class SplitsAfterNoMore(EpochgateError):
    """A split was assigned to a reader that had been told that no more will come."""


class UnknownSubtask(EpochgateError):
    """The enumerator named a subtask that the job does not have."""


class ReaderNotRegistered(EpochgateError):
    """The enumerator or a message counts on a reader that is not there."""


class EnumeratorReplaced(EpochgateError):
    """An enumerator that was closed goes on assigning splits or sending events."""


class SourceNotRunning(EpochgateError):
    """The source's coordinator was called before its start or after its end."""
