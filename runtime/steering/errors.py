"""What can go wrong while a query is steered, one exception type for each cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class BatchOvertaken(EpochgateError):
    """A driver asks for the value of a batch that others have run and left behind: control, store,
    query, batch, the newest batch that is decided.
    """

    def __str__(self) -> str:
        control, store, query, batch, newest = self.args
        return (
            f"batch {batch} of query {query} is not decided by control {control!r} in {store}, and "
            f"batch {newest} is: nothing was run. Either this driver was taken for dead and "
            "another has gone on: let it end. Or the checkpoint location was set back further "
            "than decisions are kept: give the query another checkpoint location"
        )


class DecisionNotMade(EpochgateError):
    """The store did not take a decision: control, store, batch, reason."""

    def __str__(self) -> str:
        control, store, batch, reason = self.args
        return (
            f"what control {control!r} decides for batch {batch} could not be kept in {store}: "
            f"{reason}. Nothing was run; once the store can be written again, start the query "
            "again, and it goes on with this batch"
        )


class PlanOvertaken(EpochgateError):
    """A driver asks for a batch that others have run and left behind: where its plans are, batch,
    the newest batch that is planned.
    """

    def __str__(self) -> str:
        place, batch, newest = self.args
        return (
            f"batch {batch} has no plan in {place}, and batch {newest} has: nothing was planned. "
            "Either this driver was taken for dead and another has gone on: let it end. Or the "
            "checkpoint location was set back further than plans are kept, or is a copy: give the "
            "query an empty checkpoint location"
        )


class PlanForgotten(EpochgateError):
    """What a batch consists of is not known any more: where its plans are, batch."""

    def __str__(self) -> str:
        place, batch = self.args
        return (
            f"the plan of batch {batch} is not in {place} any more: the checkpoint location was "
            "set back further than plans are kept, or the option `state` names another place than "
            "it did. Name the place of before, or give the query an empty checkpoint location"
        )


class PlanNotMade(EpochgateError):
    """A batch could not be planned, or its plan not be read: where, batch, reason."""

    def __str__(self) -> str:
        place, batch, reason = self.args
        return (
            f"batch {batch} could not be planned in {place}: {reason}. Nothing was given out; "
            "once that is mended, start the query again, and it goes on with this batch"
        )


class UpdateFailed(EpochgateError):
    """An update was not written, and does not count: control, store, reason."""

    def __str__(self) -> str:
        control, store, reason = self.args
        return f"control {control!r} in {store} was not updated: {reason}. Update it again"


class UpdateInDoubt(EpochgateError):
    """Whether an update counts is unknown: control, store, reason."""

    def __str__(self) -> str:
        control, store, reason = self.args
        return (
            f"whether control {control!r} in {store} was updated is unknown: {reason}. Look at "
            "its value before you update it again"
        )


class UpdatePending(EpochgateError):
    """No batch has run with an update yet: control, version, query, seconds that were waited."""

    def __str__(self) -> str:
        control, version, query, waited_s = self.args
        return (
            f"no batch of query {query} was decided with version {version} of control "
            f"{control!r} within {waited_s:g} s: it counts from the next batch on, and Spark plans "
            "none while there is no data. Wait longer (wait_s), or see whether the query runs"
        )


class HistoryForgotten(EpochgateError):
    """Since when a version is in force cannot be told any more: control, version, query, the oldest
    batch that is kept.
    """

    def __str__(self) -> str:
        control, version, query, oldest = self.args
        return (
            f"version {version} of control {control!r} is in force in query {query} since before "
            f"batch {oldest}, the oldest whose decision is kept"
        )


class ControlUnusable(UsageError):
    """A control cannot be made or used as it is asked: what is wrong, and what to do."""


class ValueRefused(ControlUnusable):
    """A value that a control cannot have."""


class QueryUnknown(ControlUnusable):
    """Which query a batch belongs to, or is asked for, cannot be told."""


class ControlMissing(UsageError):
    """A control was asked for that is not in its store: store, control, those that are."""

    def __str__(self) -> str:
        store, control, names = self.args
        there = f"it has {', '.join(names)}" if names else "it has none"
        return f"{store} has no control {control!r}; {there}"
