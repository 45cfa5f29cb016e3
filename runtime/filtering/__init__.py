"""Dynamic filtering: what one operator collects leaves out splits of another operator's source.

The build side, a `FilteringDataOperator` in each subtask, collects the values that matter; its
coordinator, a `DynamicFilteringProvider`'s, merges what all subtasks report and gives it once to
the coordinators that listen; a source's enumerator, for instance a `FilteredQueueEnumerator`, then
gives out only the splits that can hold such values::

    build 0   add 3, add 7, report ---.
    build 1   add 7, report ----------+-> coordinator -> {3, 7} -> enumerator: splits 3 and 7

Source: Apache Flink's DynamicFilteringDataCollectorOperatorCoordinator and
DynamicFilteringDataListener. Unlike there, checkpoints are completed, and hold what was reported.

Names are imported when they are first used: a worker needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.lazy import lazily

if TYPE_CHECKING:
    from epochgate.runtime.filtering.coordinator import DynamicFilteringProvider
    from epochgate.runtime.filtering.data import FilteringData
    from epochgate.runtime.filtering.enumerator import FilteredQueueEnumerator
    from epochgate.runtime.filtering.errors import (
        AlreadyReported,
        FilteringDataChanged,
        FilteringMisconfigured,
    )
    from epochgate.runtime.filtering.operator import FilteringDataOperator

__getattr__ = lazily(
    __name__,
    {
        "coordinator": ("DynamicFilteringProvider",),
        "data": ("FilteringData",),
        "enumerator": ("FilteredQueueEnumerator",),
        "errors": ("AlreadyReported", "FilteringDataChanged", "FilteringMisconfigured"),
        "operator": ("FilteringDataOperator",),
    },
)

__all__ = [
    "AlreadyReported",
    "DynamicFilteringProvider",
    "FilteredQueueEnumerator",
    "FilteringData",
    "FilteringDataChanged",
    "FilteringDataOperator",
    "FilteringMisconfigured",
]
