"""The pruning of the splits of a streaming source: the options `filter` and `control`.

| option | what it says |
|---|---|
| filter | of files: the condition that a row has to fulfil |
| control, controlStore, controlInitial | the control whose values the condition names |

Decides what goes together, that a filter is the newest values of its control, and that the initial
values are recorded in the control's store when the first batch is planned: without them, other
processes could not update a control that decides for no query. Which splits are pruned is left to
the condition, or to the user's `Source.may_match`. `Control.source_options` makes the options. Runs
where Spark asks for offsets, and in tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from epochgate.runtime.entries.encoding import from_bytes, to_bytes
from epochgate.runtime.entries.stores import open_entries
from epochgate.runtime.source import Source, SourceSplit
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.runtime.steering.accepting import record_initial
from epochgate.runtime.steering.values import Value
from epochgate.runtime.steering.versions import Versions
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.condition import parse_condition
from epochgate.spark.files.row_filter import RowFilter
from epochgate.spark.files.split import SourceLayout
from epochgate.spark.ingest.file_source import to_file_split
from epochgate.spark.streaming.errors import OptionsWrong

FILTER: Final = "filter"
CONTROL, STORE, INITIAL = "control", "controlStore", "controlInitial"
KNOWN: Final = (FILTER, CONTROL, STORE, INITIAL)
FOOTERS: Final = 16
"""Parquet footers that are read side by side."""


@dataclass(frozen=True)
class SourceFilter:
    """The meaning of the options; `is_named`: of a source that is a class of the user's."""

    where: str
    control: str
    store: str
    initial: Value = field(default_factory=dict)
    is_named: bool = False

    def newest(self, stream: str) -> Callable[[], SplitFilter]:
        """Return the function that gives the filter of a stream that is in force now, of a store
        that is opened once. It raises OSError, ValueError, ConditionWrong.
        """
        if not self.control:
            constant = SplitFilter(0, self.where, {})
            return lambda: constant
        entries = open_entries(self.store)
        versions = Versions(entries, self.control)
        # Once for each start; a source that may only read the store is pruned all the same.
        with contextlib.suppress(OSError):
            record_initial(entries, self.control, stream, self.initial)

        def look() -> SplitFilter:
            version, values = versions.newest()
            found = {**self.initial, **values}
            if not self.is_named:
                condition = parse_condition(self.where)
                condition.bound(found)
                found = {name: found[name] for name in sorted(condition.names)}
            return SplitFilter(version, self.where, found)

        return look


def source_options(where: str, control: str, store: str, initial: Value) -> dict[str, str]:
    """The options of a source that a control prunes."""
    options = {CONTROL: control, STORE: store, INITIAL: to_bytes(initial).decode()}
    return options | ({FILTER: where} if where else {})


def parse_filter(given: Mapping[str, str], *, is_named: bool) -> SourceFilter | None:
    """The filter of a source; none without the options. Raises OptionsWrong, ConditionWrong."""
    where, control, store = (given.get(name, "") for name in (FILTER, CONTROL, STORE))
    if not where and not control:
        return None
    if bool(control) != bool(store):
        raise OptionsWrong(
            f"{CONTROL}={control!r} and {STORE}={store!r} go together: the name of a control, and "
            "the directory or URL that has it; control.source_options(...) gives both"
        )
    if is_named and where:
        raise OptionsWrong(
            f"{FILTER}={where!r} is for files, whose columns are known; a Source of your own "
            "judges its splits in may_match(split, values): leave the option out, and name a "
            "control"
        )
    if not is_named:
        if not where:
            raise OptionsWrong(
                f"control {control!r} prunes no files without a condition: "
                'control.source_options("region IN :regions")'
            )
        if (names := parse_condition(where).names) and not control:
            raise OptionsWrong(
                f"{FILTER}={where!r} names {', '.join(sorted(names))}, and no control has their "
                f"values: .options(**control.source_options({where!r}))"
            )
    initial = from_bytes(given[INITIAL].encode()) if INITIAL in given else {}
    return SourceFilter(where, control, store, initial, is_named)


def insist_on_judging(source: Source, named: str) -> None:
    """Raise OptionsWrong for a source of the user's that prunes nothing."""
    if type(source).may_match is Source.may_match:
        raise OptionsWrong(
            f"{named} has a control and does not look at its values: override "
            f"{type(source).__name__}.may_match(split, values), or leave the option {CONTROL} out"
        )


class FilePruning:
    """The choice of shares of files that may have rows that match, by the condition of their plan;
    `access`: to the files.
    """

    def __init__(self, access: FileAccess | None = None) -> None:
        self._access = access or FileAccess()

    def matching(self, splits: Sequence[SourceSplit], by: SplitFilter) -> list[bool]:
        """Return of each whether it may; the footers of Parquet files are read side by side. Raises
        ConditionWrong, PartitionValueInvalid, ObjectStoreError.
        """
        rows = row_filter(by)

        def may_match(split: SourceSplit) -> bool:
            layout = SourceLayout.from_bytes(split.value[1])
            return rows.may_match(to_file_split(split), layout, self._access)

        with ThreadPoolExecutor(FOOTERS) as pool:
            return list(pool.map(may_match, splits))


def row_filter(by: SplitFilter) -> RowFilter:
    """The comparisons of a filter with its values. Raises ConditionWrong."""
    return RowFilter(by.where, parse_condition(by.where).bound(by.values))


def matching_rows(by: SplitFilter | None) -> Callable[[pa.RecordBatch], pa.RecordBatch] | None:
    """Return the function that leaves out the rows of a file that a filter excludes; none where no
    row is judged.
    """
    return row_filter(by).matching if by is not None and by.where else None


def judged(source: Source) -> Callable[[Sequence[SourceSplit], SplitFilter], Iterable[bool]]:
    """By the user's source, from the values alone, one after the other."""

    def matching(splits: Sequence[SourceSplit], by: SplitFilter) -> Iterable[bool]:
        return [bool(source.may_match(split, by.values)) for split in splits]

    return matching
