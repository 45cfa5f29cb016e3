"""The names of `epochgate.runtime.filtering`, and where they are defined."""

from epochgate.runtime.filtering.coordinator import (
    DynamicFilteringProvider as DynamicFilteringProvider,
)
from epochgate.runtime.filtering.data import FilteringData as FilteringData
from epochgate.runtime.filtering.enumerator import (
    FilteredQueueEnumerator as FilteredQueueEnumerator,
)
from epochgate.runtime.filtering.errors import (
    AlreadyReported as AlreadyReported,
    FilteringDataChanged as FilteringDataChanged,
    FilteringMisconfigured as FilteringMisconfigured,
)
from epochgate.runtime.filtering.operator import FilteringDataOperator as FilteringDataOperator
