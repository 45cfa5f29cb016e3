"""The errors of plans."""

from __future__ import annotations

from epochgate.errors import EpochgateError


class PlanOvertaken(EpochgateError):
    """Another driver has planned later batches than the one that this driver asks for: place of
    the plans, batch, newest planned batch.
    """

    def __str__(self) -> str:
        place, batch, newest = self.args
        return (
            f"batch {batch} has no plan in {place}, and batch {newest} has. Nothing was planned. "
            "Either this driver was taken for dead and replaced: stop it. Or the checkpoint "
            "location is a copy, or was set back by more batches than plans are kept: use an empty "
            "checkpoint location"
        )


class PlanForgotten(EpochgateError):
    """The plan of a batch no longer exists: place of the plans, batch."""

    def __str__(self) -> str:
        place, batch = self.args
        return (
            f"the plan of batch {batch} is not in {place} any more: the checkpoint location was "
            "set back by more batches than plans are kept, or the option `state` has changed. Set "
            "`state` to its previous value, or use an empty checkpoint location"
        )


class PlanNotMade(EpochgateError):
    """A batch could not be planned, or its plan could not be read: place, batch, reason."""

    def __str__(self) -> str:
        place, batch, reason = self.args
        return (
            f"batch {batch} could not be planned in {place}: {reason}. No split was assigned. "
            "Remove the cause and start the query again; it continues with this batch"
        )
