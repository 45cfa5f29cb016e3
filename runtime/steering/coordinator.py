"""The coordinator of a control, whose values a user's code chooses batch by batch: as for a
resident job, but asked before each batch, and its checkpoint is the batch.

Decides which parts of a resident job's coordinator there are: creation, start, restore, snapshot,
notice of completion, and close. A query has no subtasks, so there are neither gateways nor events,
and requests are updates of the control. All calls are made on the thread on which Spark runs the
batch, one at a time; they may block, which delays the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochgate.runtime.api.coordinator import OperatorCoordinator
from epochgate.runtime.steering.values import Value

STATE_BYTES_MAX: Final = 1 << 20
"""Of a coordinator's state: it is stored with each batch, and a hundred are kept."""


@dataclass(frozen=True)
class NextBatch:
    """A batch whose values are to be chosen.

    batch: its number, as Spark counts. values: what it would run with without the coordinator: the
    initial values with all updates. returned: what the function returned for the batch before, if
    that ran in this process, or else None.
    """

    batch: int
    values: Value
    returned: Any


@dataclass(frozen=True)
class CoordinatorState:
    """The state of a coordinator behind the choice for a batch, with the operator id and the
    `state_version` of its provider.
    """

    operator_id: str
    version: int
    data: bytes


class BatchCoordinator(OperatorCoordinator):
    """A coordinator that chooses the values of each batch of a streaming query.

    The order of calls is that of a resident job: `reset_to_checkpoint` if there is a state, then
    `start`; then for each batch `choose` and `checkpoint`. The checkpoint id of batch N is N + 1,
    since ids count from 1. `notify_checkpoint_complete` is called before the next batch is chosen:
    Spark plans a batch after it has logged the end of the one before. An exception fails the query,
    and nothing runs; the next start creates another coordinator from the state of the newest batch.
    """

    @abstractmethod
    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        """Return the values that differ from `next_batch.values`, by name; empty for none.

        Called once for each batch that is decided. A choice that was not stored, because the driver
        died, the store failed, or another driver was first, never takes effect: a coordinator that
        made it is closed, and another restores the state of the batch before. What was stored is
        never asked for again.
        """
