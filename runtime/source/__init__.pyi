"""The names of `epochgate.runtime.source`, and where they are defined."""

from epochgate.runtime.source.alignment import (
    AlignmentMisconfigured as AlignmentMisconfigured,
    WatermarkAlignment as WatermarkAlignment,
)
from epochgate.runtime.source.coordinator import (
    SourceCoordinator as SourceCoordinator,
    SourceProvider as SourceProvider,
)
from epochgate.runtime.source.enumerator import (
    ReaderInfo as ReaderInfo,
    SplitEnumerator as SplitEnumerator,
    SplitEnumeratorContext as SplitEnumeratorContext,
)
from epochgate.runtime.source.errors import (
    AlignmentAmongAttempts as AlignmentAmongAttempts,
    AssignmentsForgotten as AssignmentsForgotten,
    AttemptNotNamed as AttemptNotNamed,
    EnumeratorReplaced as EnumeratorReplaced,
    ReaderNotRegistered as ReaderNotRegistered,
    SourceNotRunning as SourceNotRunning,
    SourceStateRefused as SourceStateRefused,
    SplitAssignedTwice as SplitAssignedTwice,
    SplitsAfterNoMore as SplitsAfterNoMore,
    UnknownSubtask as UnknownSubtask,
)
from epochgate.runtime.source.operator import SourceOperator as SourceOperator
from epochgate.runtime.source.queue_enumerator import SplitQueueEnumerator as SplitQueueEnumerator
from epochgate.runtime.source.source import (
    Fetched as Fetched,
    ReaderContext as ReaderContext,
    Source as Source,
    SourceReader as SourceReader,
)
from epochgate.runtime.source.split import SourceSplit as SourceSplit
