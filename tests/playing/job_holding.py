"""The stage on which the events of steps are held in the queue of the job, and of the model, until
all are processed at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from epochgate.fsm.checker.schedule import MachineStage
from epochgate.fsm.closed import ClosedSystem
from epochgate.runtime.testing.playing import Diverged
from tests.playing.stage import GatedStage
from tests.playing.swarm import kind


class HoldingStage(GatedStage):
    """Begins steps whose events wait until `process`; those in `alone` begin while none waits, and
    are processed at once. The world holds its queue while it `is_waiting`, and lets it run in
    `settle`.
    """

    def __init__(
        self,
        system: ClosedSystem,
        world: Any,
        alone: Collection[str],
        machines: MachineStage | None = None,
    ) -> None:
        super().__init__(system, world)
        self.machines = machines or self.machines
        self._played, self._model, self._alone = world, system, alone
        self._instances = dict(zip(self.steps, system.step_instances(), strict=True))
        self.waiting: list[str] = []

    def possible(self) -> list[str]:
        if not self.waiting:
            return super().possible()
        return [
            step
            for step in self.machines.possible()
            if kind(step) not in self._alone and self._is_there(step)
        ]

    def _is_there(self, step: str) -> bool:
        act, index = self._acts[step]
        return bool(act.is_there(self.world, *index))

    def begin(self, step: str) -> None:
        """Let the surroundings act, here and there."""
        known, machine = self._instances[step]
        getattr(machine, known.trigger)()
        self._model.settle(only_effects=True)
        self._played.is_waiting = True
        act, index = self._acts[step]
        act.do(self.world, *index)
        self.waiting.append(step)
        if kind(step) in self._alone:
            self.process()

    def process(self) -> None:
        """Let all be processed that waits. Raises ClaimBroken and Diverged."""
        self._model.settle()
        self._played.is_waiting = False
        self._played.settle()
        for different in self.differences():
            raise Diverged(f"after {', '.join(self.waiting)}: {different}")
        self.machines.expect_claims()
        self.waiting.clear()
