"""The plan of a batch: its splits, the filter by which they were pruned, and those that were.

Decides how a plan is written, and that a plan without a filter, as earlier releases wrote all, has
none. Leaves to the machine `batch_plan` when there is a plan. Pure values; any process.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime.entries.stores import open_entries
from epochgate.runtime.source.batches.plans import PLANS, plans_of
from epochgate.runtime.source.split import SourceSplit, pack_splits, unpack, unpack_splits


@dataclass(frozen=True)
class SplitFilter:
    """A filter in force: which rows a batch has, and by which values.

    version: the update of the control that the values have, 0 before the first one. where: the
    condition, empty where the source judges splits by the values alone. values: by name.
    """

    version: int
    where: str
    values: dict[str, Any]

    def to_entry(self) -> dict[str, Any]:
        """As it is written into a plan."""
        return {"version": self.version, "where": self.where, "values": self.values}


@dataclass(frozen=True)
class PlannedBatch:
    """The plan of one batch of a stream.

    batch: its number, counted from 1. splits: those that the batch reads. filter: that by which
    splits were pruned, and rows are left out; none for a source without a filter. pruned: the ids
    of splits that no batch reads.
    """

    batch: int
    splits: list[SourceSplit]
    filter: SplitFilter | None = None
    pruned: list[str] = field(default_factory=list)
    stream: str = ""

    @classmethod
    def from_entry(cls, entry: dict[str, Any], stream: str = "") -> PlannedBatch:
        """Raises ValueError, KeyError for an entry that is no plan."""
        found = entry.get("filter")
        return cls(
            entry["batch"],
            unpack_splits(base64.b64decode(entry["splits"])),
            None if found is None else SplitFilter(**found),
            entry.get("pruned", []),
            stream,
        )

    def to_entry(self, version: int, state: bytes) -> dict[str, Any]:
        """As it is written, with the enumerator's state behind it and the version of that. Raises
        ValueNotPlain.
        """
        entry = {
            "batch": self.batch,
            "splits": base64.b64encode(pack_splits(self.splits)).decode(),
            "version": version,
            "state": base64.b64encode(state).decode(),
        }
        if self.filter is not None:
            entry |= {"filter": self.filter.to_entry(), "pruned": self.pruned}
        return entry


def state_in(entry: dict[str, Any]) -> tuple[int, Any]:
    """The version of the enumerator's state in a plan, and the state.

    Raises ValueError, KeyError.
    """
    return entry["version"], unpack(base64.b64decode(entry["state"]))


def plans(state: str) -> list[PlannedBatch]:
    """Return the newest hundred plans of each stream in a directory or URL, the option `state` of
    the source: by stream, oldest first. Raises OSError, and ValueError for a damaged plan.
    """
    entries = open_entries(state)
    parts = [key.split("/") for key in entries.list("")]
    streams = sorted({part[0] for part in parts if len(part) > 2 and part[1] == PLANS})
    return [
        PlannedBatch.from_entry(of.get(number), stream)
        for stream in streams
        for of in [plans_of(entries, stream)]
        for number in of.numbers()
    ]
