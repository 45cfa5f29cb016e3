"""Scenarios of the machines of other systems than the job: each effect is told by its own name."""

from __future__ import annotations

from typing import Any

from epochgate.fsm import System
from epochgate.fsm.ports import Effect
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.committing_job import CommittingJob
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.job import Job
from epochgate.models.query_batch import QueryBatches
from epochgate.models.recreation import Recreations
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.task import TaskSystem
from tests.conformance.standins import HolderAlone
from tests.scenarios.machines_world import MachinesWorld


class AloneWorld(MachinesWorld):
    """One system; commands fire triggers by name."""

    def _told(self, effect: Effect) -> str:
        index = f"[{','.join(map(str, effect.index))}]" if effect.index else ""
        said = " ".join(
            f"{name}={_text(value)}"
            for name, value in zip(effect.parameters, effect.arguments, strict=True)
        )
        sender = f"{self._names[effect.machine]}{index}"
        return f"{sender} to {effect.port}: {effect.message} {said}".rstrip()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def alone(system: type[System]) -> type[AloneWorld]:
    """A world of this system."""
    return type(f"{system.__name__}World", (AloneWorld,), {"SYSTEM": system})


class HolderAloneWorld(AloneWorld):
    """One coordinator's machines among surroundings that hear of everything and do nothing."""

    SYSTEM = HolderAlone

    def _new(self) -> Any:
        system = super()._new()
        system.held_before = lambda _: 0
        return system


ALONE: dict[str, type[AloneWorld]] = {
    "alone": HolderAloneWorld,
    "concurrent": alone(ConcurrentJob),
    "decisions": alone(BatchDecisions),
    "effects": alone(Job),
    "plans": alone(BatchPlans),
    "query": alone(QueryBatches),
    "recreation": alone(Recreations),
    "splits": alone(SplitAssignments),
    "steps": alone(CommittingJob),
    "task": alone(TaskSystem),
}
"""The word that makes a world -> the world."""
