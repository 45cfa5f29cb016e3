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

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
