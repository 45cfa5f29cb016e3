"""Errors of controls and plans of streaming queries, one exception type for each cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class BatchOvertaken(EpochgateError):
    """Another driver has run later batches than the one that this driver asks for: control, store,
    query, batch, newest decided batch.
    """

    def __str__(self) -> str:
        control, store, query, batch, newest = self.args
        return (
            f"control {control!r} in {store} has no decision for batch {batch} of query {query}, "
            f"while batch {newest} is decided. Nothing was run. Either this driver was taken for "
            "dead and replaced: stop it. Or the checkpoint location was set back by more batches "
            "than decisions are kept: use a new checkpoint location"
        )


class DecisionNotMade(EpochgateError):
    """The store did not accept a decision: control, store, batch, reason."""

    def __str__(self) -> str:
        control, store, batch, reason = self.args
        return (
            f"the decision of control {control!r} for batch {batch} could not be read from or "
            f"stored in {store}: {reason}. Nothing was run. When the store answers again, start "
            "the query again; it continues with this batch"
        )


class VersionMissing(EpochgateError):
    """The newest update is older than one that a batch ran with: control, store, batch, newest
    update, update of the batch before, values of the batch before.
    """

    def __str__(self) -> str:
        control, store, batch, newest, missing, value = self.args
        return (
            f"batch {batch} was not decided: the batch before ran with update {missing} of control "
            f"{control!r}, and the newest is {newest}. The file of that update was removed from "
            f"{store}, or the directory was restored from a backup. Nothing was run. Restore the "
            "file; or update the control with the values that are to hold, and start the query "
            f"again. The batch before ran with {value}"
        )


class ChoiceFailed(EpochgateError):
    """A coordinator did not choose the values of a batch: control, store, operator id, batch,
    reason.
    """

    def __str__(self) -> str:
        control, store, operator_id, batch, reason = self.args
        return (
            f"coordinator {operator_id!r} of control {control!r} in {store} did not choose the "
            f"values of batch {batch}. Nothing was run. Remove the cause and start the query "
            f"again; it continues with this batch, and the coordinator with its state of the batch "
            f"before. The cause: {reason}"
        )


class UpdateFailed(EpochgateError):
    """An update was not written and has no effect: control, store, reason."""

    def __str__(self) -> str:
        control, store, reason = self.args
        return f"control {control!r} in {store} was not updated: {reason}. Update it again"


class UpdateInDoubt(EpochgateError):
    """It is unknown whether an update took effect: control, store, reason."""

    def __str__(self) -> str:
        control, store, reason = self.args
        return (
            f"whether control {control!r} in {store} was updated is unknown: {reason}. Read its "
            "value (`epochgate control show`) before you update it again"
        )


class UpdatePending(EpochgateError):
    """No batch was decided with an update yet: control, version, query, seconds waited."""

    def __str__(self) -> str:
        control, version, query, waited_s = self.args
        return (
            f"no batch of query {query} was decided with version {version} of control "
            f"{control!r} within {waited_s:g} s. The update applies from the next batch on, and "
            "Spark runs no batch while there is no data. Wait longer (wait_s), or check that the "
            "query runs"
        )


class HistoryForgotten(EpochgateError):
    """The first batch of a version is no longer recorded: control, version, query, oldest recorded
    batch.
    """

    def __str__(self) -> str:
        control, version, query, oldest = self.args
        return (
            f"version {version} of control {control!r} is in force in query {query} since before "
            f"batch {oldest}, the oldest whose decision is kept"
        )


class ControlUnusable(UsageError):
    """An argument of a control is not valid: what is wrong, and what to do."""


class ValueRefused(ControlUnusable):
    """A value or name is not valid for a control."""


class QueryUnknown(ControlUnusable):
    """The query is unknown or ambiguous."""


class ControlMissing(UsageError):
    """The store has no such control: store, control, names of its controls."""

    def __str__(self) -> str:
        store, control, names = self.args
        there = f"it has {', '.join(names)}" if names else "it has none"
        if not control:
            return f"name a control of {store}: {there}"
        return (
            f"{store} has no control {control!r}; {there}. A control is made by the first batch of "
            "its query, by the start of a query whose source it prunes, or by an update of "
            "Control(..., create=True)"
        )
