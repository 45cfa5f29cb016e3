"""One coordinator of a control, from its creation to its close, and what is asked of it.

Decides that a state which cannot be stored is refused: it is of bytes, bounded, and there in time.
Leaves to `coordinated` when the coordinator is asked, and which values it may choose. Runs where
Spark calls the function of `foreachBatch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.state_versions import upgraded
from epochgate.runtime.steering.coordinator import (
    STATE_BYTES_MAX,
    BatchCoordinator,
    CoordinatorState,
    NextBatch,
)
from epochgate.runtime.steering.coordinator_context import BatchContext
from epochgate.runtime.steering.errors import ControlUnusable, ValueRefused

STATE_S: Final = 60.0
"""How long a coordinator may take to complete its checkpoint."""


class Chooser:
    """The coordinator that a provider makes; each method may raise what its code raises."""

    def __init__(self, provider: CoordinatorProvider, query: str, process: str) -> None:
        """Raises ControlUnusable for a coordinator that cannot choose."""
        self._provider = provider
        self.context = BatchContext(provider.operator_id, query, process)
        coordinator = provider.create(self.context)
        if not isinstance(coordinator, BatchCoordinator):
            raise ControlUnusable(
                f"{type(coordinator).__name__} cannot choose the values of a batch; derive it "
                "from BatchCoordinator and write its method `choose`"
            )
        self._coordinator = coordinator

    def start(self, batch: int, state: CoordinatorState | None) -> None:
        """Begin with the state behind a batch, or with none. Raises ControlUnusable for the state
        of another.
        """
        if state is not None:
            self._coordinator.reset_to_checkpoint(batch + 1, self._own(state))
        self._coordinator.start()

    def _own(self, state: CoordinatorState) -> bytes:
        own = self._provider
        if state.operator_id != own.operator_id:
            raise ControlUnusable(
                f"the batch before was decided by coordinator {state.operator_id!r}, whose state "
                f"this one, {own.operator_id!r}, cannot restore. Give a renamed coordinator its "
                "previous operator_id. To begin without the state, give the control another name"
            )
        whose = f"the state of coordinator {own.operator_id!r}"
        versions = state.version, own.state_version
        return upgraded(whose, *versions, state.data, own.upgrade_state)

    def complete(self, checkpoint_id: int) -> None:
        """The batch of this checkpoint has run."""
        self._coordinator.notify_checkpoint_complete(checkpoint_id)

    def choose(self, next_batch: NextBatch) -> dict[str, Any]:
        """The values that it changes. Raises TypeError."""
        self.context.run_posted()
        changed = self._coordinator.choose(next_batch)
        if not isinstance(changed, Mapping):
            raise TypeError(f"`choose` returned {changed!r}, and must return values by name")
        return dict(changed)

    def state(self, checkpoint_id: int) -> CoordinatorState:
        """Its state behind the choice. Raises TypeError, TimeoutError, ValueRefused."""
        result: Future[bytes] = Future()
        self._coordinator.checkpoint(checkpoint_id, result)
        self.context.run_posted()
        try:
            data = result.result(timeout=STATE_S)
        except TimeoutError as error:
            raise TimeoutError(f"its checkpoint took longer than {STATE_S:g} s") from error
        if not isinstance(data, bytes):
            raise TypeError(f"its state is {data!r}, and must be bytes")
        if len(data) > STATE_BYTES_MAX:
            raise ValueRefused(
                f"its state has {len(data):,} bytes, and may have {STATE_BYTES_MAX:,}: it is "
                "stored with each batch. Keep what is larger in a file of its own, and its name "
                "in the state"
            )
        return CoordinatorState(self._provider.operator_id, self._provider.state_version, data)

    def close(self) -> None:
        """Release what it has."""
        self._coordinator.close()
