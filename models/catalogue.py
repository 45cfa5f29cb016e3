"""The machines that run, by the names that the diagrams use."""

from __future__ import annotations

from epochgate.fsm import Machine, System
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
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

RUNNING: tuple[type[System], ...] = (
    Job,
    TaskSystem,
    BatchSnapshots,
    Recreations,
    SplitAssignments,
    Discoveries,
    SplitsRead,
    RecordsInFlight,
    SettingChanges,
    SendWindows,
    ReceiveWindows,
    Compactions,
    QueryBatches,
    BatchDecisions,
    ControlUpdates,
    BatchPlans,
    Placements,
    Residents,
    TableOwners,
)
"""The systems that run."""

VARIANTS: tuple[type[System], ...] = (ConcurrentJob, CommittingJob)
"""What runs in the place of `Job`: in a job with concurrent attempts, and in one whose commits take
several steps.
"""

MACHINES: dict[str, type[Machine]] = {
    name: next(s.MACHINES[name] for s in (*RUNNING, *VARIANTS) if name in s.MACHINES)
    for system in (*RUNNING, *VARIANTS)
    for name in system.MACHINES
}
"""All machines by name, each as the first of the systems has it."""
