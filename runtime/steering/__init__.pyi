"""The names of `epochgate.runtime.steering`, and where they are defined."""

from epochgate.runtime.entries.errors import (
    EntryDamaged as EntryDamaged,
    StoreUnusable as StoreUnusable,
)
from epochgate.runtime.steering.coordinated import Coordinated as Coordinated
from epochgate.runtime.steering.coordinator import (
    STATE_BYTES_MAX as STATE_BYTES_MAX,
    BatchCoordinator as BatchCoordinator,
    CoordinatorState as CoordinatorState,
    NextBatch as NextBatch,
)
from epochgate.runtime.steering.coordinator_context import NotInAQuery as NotInAQuery
from epochgate.runtime.steering.deciding import Deciding as Deciding, Decision as Decision
from epochgate.runtime.steering.errors import (
    BatchOvertaken as BatchOvertaken,
    ChoiceFailed as ChoiceFailed,
    ControlMissing as ControlMissing,
    ControlUnusable as ControlUnusable,
    DecisionNotMade as DecisionNotMade,
    HistoryForgotten as HistoryForgotten,
    QueryUnknown as QueryUnknown,
    UpdateFailed as UpdateFailed,
    UpdateInDoubt as UpdateInDoubt,
    UpdatePending as UpdatePending,
    ValueRefused as ValueRefused,
    VersionMissing as VersionMissing,
)
from epochgate.runtime.steering.history import (
    Update as Update,
    decisions as decisions,
    effective_from as effective_from,
    updates as updates,
)
from epochgate.runtime.steering.values import VALUE_BYTES_MAX as VALUE_BYTES_MAX
from epochgate.runtime.steering.versions import Updating as Updating, Versions as Versions
