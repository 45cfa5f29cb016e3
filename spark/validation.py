"""The check of many traces on a Spark cluster: one task checks the trace of a process as a whole.

A trace is replayed from its beginning to its end, so it is the unit of work. Traces are spread over
the tasks by their size, and each byte is read once. What driver and tasks have said to each other
is compared in one process, by `validated`, and not here. On the driver; the paths must lead to the
same files on all machines.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from epochgate.runtime.tracing.segments import chains, found
from epochgate.runtime.tracing.validation import Validation, checked_alone
from epochgate.spark.bootstrap import with_package
from epochgate.spark.shipping import CARRIED, CARRIED_FOLDER, ship

TASKS_PER_SLOT: Final = 4
"""So that a slot whose traces are short takes over from others."""


def validated_on_spark(
    spark: Any, paths: Iterable[str | os.PathLike[str]], *, is_whole: bool = False
) -> Validation:
    """Check all traces at these paths, each alone; arguments as for `validated`.

    Raises NoTraces, and what Spark raises.
    """
    context = spark.sparkContext
    traces = chains(os.path.abspath(path) for path in found(paths))
    parts = spread_by_size(traces, context.defaultParallelism * TASKS_PER_SLOT)
    settings = {
        "archive": ship(context),
        "carried": CARRIED,
        "carried_folder": CARRIED_FOLDER,
        "is_whole": is_whole,
    }
    check = with_package(settings, "epochgate.spark.validation:check_partition")
    numbered = [[(place, traces[place]) for place in part] for part in parts]
    rows = context.parallelize(numbered, len(numbered)).mapPartitionsWithIndex(check)
    return Validation([verdict for _, verdict in sorted(rows.collect(), key=lambda row: row[0])])


def check_partition(
    settings: Mapping[str, Any], partition: int, rows: Iterator[Any]
) -> Iterator[Any]:
    """Check the traces of one partition: their places and verdicts."""
    for part in rows:
        for place, files in part:
            yield place, checked_alone(files, is_whole=settings["is_whole"]).verdict


def spread_by_size(traces: list[list[str]], parts_max: int) -> list[list[int]]:
    """The places of the traces in parts of about equal size, the largest trace first."""
    sizes = [sum(map(os.path.getsize, files)) for files in traces]
    parts: list[list[int]] = [[] for _ in range(min(parts_max, len(traces)))]
    heap = [(0, number) for number in range(len(parts))]
    for place in sorted(range(len(traces)), key=lambda place: -sizes[place]):
        size, number = heapq.heappop(heap)
        parts[number].append(place)
        heapq.heappush(heap, (size + sizes[place], number))
    return parts
