"""Sources of one's own: an enumerator on the driver that hands out splits, readers in the tasks.

What a user writes is a `Source` with its `SplitEnumerator` (`SplitQueueEnumerator` will often do)
and its `SourceReader`; a `SourceProvider` puts it into the job's configuration, a `SourceOperator`
into its program. Each record is read once with respect to checkpoints, whatever fails: a split
travels as an event of the coordinator, and the position in it is the reader's state.

Names are imported when they are first used: a worker needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.lazy import lazily

if TYPE_CHECKING:
    from epochgate.runtime.source.alignment import AlignmentMisconfigured, WatermarkAlignment
    from epochgate.runtime.source.assignment import SplitAssignmentTracker
    from epochgate.runtime.source.coordinator import SourceCoordinator, SourceProvider
    from epochgate.runtime.source.enumerator import (
        ReaderInfo,
        SplitEnumerator,
        SplitEnumeratorContext,
    )
    from epochgate.runtime.source.errors import (
        AlignmentAmongAttempts,
        AssignmentsForgotten,
        AttemptNotNamed,
        EnumeratorReplaced,
        ReaderNotRegistered,
        SourceNotRunning,
        SourceStateRefused,
        SplitAssignedTwice,
        SplitsAfterNoMore,
        UnknownSubtask,
    )
    from epochgate.runtime.source.operator import SourceOperator
    from epochgate.runtime.source.queue_enumerator import SplitQueueEnumerator
    from epochgate.runtime.source.source import Fetched, ReaderContext, Source, SourceReader
    from epochgate.runtime.source.split import SourceSplit

__getattr__ = lazily(
    __name__,
    {
        "alignment": (
            "AlignmentMisconfigured",
            "WatermarkAlignment",
        ),
        "assignment": ("SplitAssignmentTracker",),
        "coordinator": (
            "SourceCoordinator",
            "SourceProvider",
        ),
        "enumerator": (
            "ReaderInfo",
            "SplitEnumerator",
            "SplitEnumeratorContext",
        ),
        "errors": (
            "AlignmentAmongAttempts",
            "AssignmentsForgotten",
            "AttemptNotNamed",
            "EnumeratorReplaced",
            "ReaderNotRegistered",
            "SourceNotRunning",
            "SourceStateRefused",
            "SplitAssignedTwice",
            "SplitsAfterNoMore",
            "UnknownSubtask",
        ),
        "operator": ("SourceOperator",),
        "queue_enumerator": ("SplitQueueEnumerator",),
        "source": (
            "Fetched",
            "ReaderContext",
            "Source",
            "SourceReader",
        ),
        "split": ("SourceSplit",),
    },
)

__all__ = [
    "AlignmentAmongAttempts",
    "AlignmentMisconfigured",
    "AssignmentsForgotten",
    "AttemptNotNamed",
    "EnumeratorReplaced",
    "Fetched",
    "ReaderContext",
    "ReaderInfo",
    "ReaderNotRegistered",
    "Source",
    "SourceCoordinator",
    "SourceNotRunning",
    "SourceOperator",
    "SourceProvider",
    "SourceReader",
    "SourceSplit",
    "SourceStateRefused",
    "SplitAssignedTwice",
    "SplitAssignmentTracker",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitQueueEnumerator",
    "SplitsAfterNoMore",
    "UnknownSubtask",
    "WatermarkAlignment",
]
