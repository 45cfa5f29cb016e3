"""The machines that run, each under one name, and the system in which it runs."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.fsm import Machine, System
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.discovering import FoundFiles
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.owning import OwnedTable
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import StreamingQuery
from epochgate.models.closed.updating import UpdatedControl
from epochgate.models.committing_job import CommittingJob
from epochgate.models.compaction import Compactions
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.control_update import ControlUpdates
from epochgate.models.discovery import Discoveries
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.job import Job
from epochgate.models.placement import Placements
from epochgate.models.query_batch import QueryBatches
from epochgate.models.read_splits import SplitsRead
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.recreation import Recreations
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.table_owner import TableOwners
from epochgate.models.task import TaskSystem

SYSTEMS_THAT_RUN: tuple[type[System], ...] = (
    Job,
    TaskSystem,
    BatchSnapshots,
    Recreations,
    ConcurrentJob,
    CommittingJob,
    SplitAssignments,
    Discoveries,
    SplitsRead,
    Compactions,
    QueryBatches,
    BatchDecisions,
    ControlUpdates,
    BatchPlans,
    Placements,
    Residents,
    RecordsInFlight,
    SettingChanges,
    SendWindows,
    ReceiveWindows,
    TableOwners,
)

SURROUNDINGS: dict[type[System], type[System]] = {
    SplitAssignments: Sources,
    Discoveries: FoundFiles,
    SplitsRead: FiledSource,
    Compactions: CompactingJob,
    QueryBatches: StreamingQuery,
    BatchDecisions: SteeredQuery,
    ControlUpdates: UpdatedControl,
    BatchPlans: PlannedQuery,
    Placements: PlacedTask,
    Residents: ResidentTask,
    RecordsInFlight: PipelineTasks,
    SettingChanges: ChangedSetting,
    SendWindows: FloodedTask,
    ReceiveWindows: FloodedTask,
    TableOwners: OwnedTable,
}
"""System -> the closed one that fires its triggers, where its own machines fire none."""


@dataclass(frozen=True)
class Home:
    """The system in which a machine runs, and the machine's attribute there."""

    system: type[System]
    attribute: str

    @property
    def machine(self) -> type[Machine]:
        return self.system.MACHINES[self.attribute]

    @property
    def surroundings(self) -> type[System]:
        """The system in which the machine is held to what others fire."""
        return SURROUNDINGS.get(self.system, self.system)


def _homes() -> dict[str, Home]:
    found: dict[str, Home] = {}
    for system in SYSTEMS_THAT_RUN:
        for attribute, machine in system.MACHINES.items():
            if all(home.machine is not machine for home in found.values()):
                is_taken = attribute in found
                name = f"{system.__name__}.{attribute}" if is_taken else attribute
                found[name] = Home(system, attribute)
    return found


HOMES: dict[str, Home] = _homes()
"""Name -> home. A variant of a machine is named after its system too: `ConcurrentJob.attempt`."""
