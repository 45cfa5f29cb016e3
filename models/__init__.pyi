"""The names of `epochgate.models`, and where they are defined."""

from epochgate.models.attempt import Attempt as Attempt
from epochgate.models.batch_decision import (
    BatchDecision as BatchDecision,
    BatchDecisions as BatchDecisions,
)
from epochgate.models.batch_plan import BatchPlan as BatchPlan, BatchPlans as BatchPlans
from epochgate.models.batch_snapshot import (
    BatchSnapshot as BatchSnapshot,
    BatchSnapshots as BatchSnapshots,
)
from epochgate.models.catalogue import (
    MACHINES as MACHINES,
    RUNNING as RUNNING,
    VARIANTS as VARIANTS,
)
from epochgate.models.checkpoint import Checkpoint as Checkpoint
from epochgate.models.committer import GlobalCommitter as GlobalCommitter
from epochgate.models.compaction import Compaction as Compaction, Compactions as Compactions
from epochgate.models.control_update import (
    ControlUpdate as ControlUpdate,
    ControlUpdates as ControlUpdates,
)
from epochgate.models.discovery import Discoveries as Discoveries, Discovery as Discovery
from epochgate.models.gateway import Gateway as Gateway
from epochgate.models.holder import Holder as Holder
from epochgate.models.in_flight import InFlight as InFlight, RecordsInFlight as RecordsInFlight
from epochgate.models.job import Job as Job
from epochgate.models.lifecycle import JobLifecycle as JobLifecycle
from epochgate.models.placement import Placement as Placement, Placements as Placements
from epochgate.models.post_commit import PostCommit as PostCommit
from epochgate.models.query_batch import QueryBatch as QueryBatch, QueryBatches as QueryBatches
from epochgate.models.read_splits import (
    FileRemoval as FileRemoval,
    ReadSplits as ReadSplits,
    SplitsRead as SplitsRead,
)
from epochgate.models.receive_window import (
    ReceiveWindow as ReceiveWindow,
    ReceiveWindows as ReceiveWindows,
)
from epochgate.models.recreation import Recreation as Recreation, Recreations as Recreations
from epochgate.models.request import CheckpointRequest as CheckpointRequest
from epochgate.models.resident import Resident as Resident, Residents as Residents
from epochgate.models.send_window import SendWindow as SendWindow, SendWindows as SendWindows
from epochgate.models.setting_change import (
    SettingChange as SettingChange,
    SettingChanges as SettingChanges,
)
from epochgate.models.snapshot import CoordinatorSnapshot as CoordinatorSnapshot
from epochgate.models.split_assignment import (
    SplitAssignment as SplitAssignment,
    SplitAssignments as SplitAssignments,
)
from epochgate.models.table_owner import TableOwner as TableOwner, TableOwners as TableOwners
from epochgate.models.task import Task as Task, TaskSystem as TaskSystem
