"""The names of `epochgate.runtime.collect`, and where they are defined."""

from epochgate.runtime.collect.coordinator import (
    CollectSinkProvider as CollectSinkProvider,
    collect as collect,
)
from epochgate.runtime.collect.errors import (
    AlreadyCollected as AlreadyCollected,
    BufferFull as BufferFull,
    CollectMisconfigured as CollectMisconfigured,
    NothingToCollect as NothingToCollect,
    RowsIncomplete as RowsIncomplete,
    RowTooLarge as RowTooLarge,
    StateUnreadable as StateUnreadable,
)
from epochgate.runtime.collect.operator import CollectSinkOperator as CollectSinkOperator
from epochgate.runtime.collect.rows import CollectedRows as CollectedRows
