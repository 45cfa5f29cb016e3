"""The machines that run and the closed systems that check them, by the names that the command line
and the diagrams use.
"""

from __future__ import annotations

from epochgate.fsm import Machine, System
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.batch import BatchJob
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt, HangingWork
from epochgate.models.closed.committing import CommittingAgain, CommittingInSteps
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.readers import ConcurrentSources
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import RecordedAfterwards, StreamingQuery
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.closed.updating import UpdatedControl
from epochgate.models.committing_job import CommittingJob
from epochgate.models.compaction import Compactions
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.control_update import ControlUpdates
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.job import Job
from epochgate.models.placement import Placements
from epochgate.models.query_batch import QueryBatches
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.recreation import Recreations
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.task import TaskSystem

RUNNING: tuple[type[System], ...] = (
    Job,
    TaskSystem,
    BatchSnapshots,
    Recreations,
    SplitAssignments,
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
)
"""The systems that run; a job with concurrent attempts runs `ConcurrentJob` in the place of `Job`, and
one whose commits take several steps `CommittingJob`.
"""

MACHINES: dict[str, type[Machine]] = {
    **{name: machine for system in RUNNING for name, machine in system.MACHINES.items()},
    "vertex": ConcurrentJob.MACHINES["vertex"],
    **{
        name: CommittingJob.MACHINES[name]
        for name in ("stage_before", "subtask_committer", "committable_collector", "stage_behind")
    },
}

SYSTEMS: dict[str, type[ClosedSystem]] = {
    "commit": CommitJob,
    "hanging": HangingWork,
    "in_doubt": CommitsInDoubt,
    "committing": CommittingInSteps,
    "recommitting": CommittingAgain,
    "batch": BatchJob,
    "compacting": CompactingJob,
    "placing": PlacedTask,
    "residing": ResidentTask,
    "pipelining": PipelineTasks,
    "setting": ChangedSetting,
    "flooding": FloodedTask,
    "streaming": StreamingQuery,
    "recording": RecordedAfterwards,
    "steering": SteeredQuery,
    "choosing": ChosenQuery,
    "planning": PlannedQuery,
    "updating": UpdatedControl,
    "recreation": RecreatedJob,
    "sources": Sources,
    "readers": ConcurrentSources,
    "concurrent": ConcurrentAttempts,
    "epochgate": ClosedJob,
    "endings": EndingJob,
    "talking": TalkingJob,
    "asked": AskedJob,
    "resuming": ResumingJob,
    "pressed": PressedJob,
    "live": LiveJob,
}
"""In the order in which `epochgate check` explores them."""

CONSTANTS: dict[str, str] = {
    "subtasks": "subtasks of the job",
    "vertices": "subtasks of the job",
    "concurrent": "attempts of a subtask that may run at the same time",
    "coordinators": "coordinators of the job",
    "tolerable_failures": "checkpoints that may fail one after the other",
    "task_committers": "1: each task has a committer",
    "operators_before": "1: there are operators in front of the tasks' committers",
    "operators_behind": "1: there are operators in front of the global committer",
    "commit_retries": "how often a commit, and work after one, is tried again",
    "hangs": "1: the work after a commit may hang for ever",
    "given_up": "commits that a person gives up while no driver runs",
    "after_commit": "1: there is work after each commit",
    "periodic": "1: checkpoints are also taken by the interval",
    "wanted": "checkpoints that are taken",
    "events": "events from each coordinator to each subtask",
    "items": "committables of each subtask",
    "large": "the event that is larger than the bound",
    "bytes_large": "bytes of that event",
    "network": "messages of a task that the network holds",
    "unconfirmed_bytes_max": "bytes of events to one attempt that may be unconfirmed",
    "waiting_bytes_max": "bytes from one task that may wait for the driver",
    "waiting_messages_max": "messages from one task that may wait for the driver",
    "said": "events from each operator to its coordinator",
    "asks": "requests of clients to each coordinator",
    "attempts": "attempts of a subtask over all, or of a process",
    "starts": "processes of each subtask over all",
    "places": "attempts of a subtask that may be there at the same time",
    "phases": "how far the job goes: 4 is to its end",
    "overtaking": "1: processes connect in any order",
    "repeats": "1: an acknowledgement may arrive twice",
    "timeouts_cost": "1: a checkpoint that expires counts as a failure",
    "renumbered": "1: used numbers are given again, so that the job goes on for ever",
    "slow_starts": "1: the start of a coordinator may take long, or fail",
    "broken_restores": "restores of each coordinator that raise",
    "slow_commits": "1: a commit may take long",
    "up_length": "messages from a reader that may be under way",
    "F": "failures that may happen",
    "K": "checkpoints that are taken, or committed",
    "E": "events or calls",
    "R": "requests, resets, or runs",
    "S": "splits",
    "records": "batches of records that each source has",
    "G": "resets of the whole source",
    "compaction_retries": "how often a target that has changed is looked at again",
    "drivers": "drivers of a query, at the same time",
    "batches": "batches of a query",
    "versions": "updates of a control",
    "tasks": "tasks of a batch, or of Spark's for a subtask",
    "retained": "the newest decisions, plans, or versions, that count",
    "entry_retries": "how often a decision or a plan without an answer is tried again",
    "updaters": "processes that update a control",
    "updates": "updates of a control",
    "update_retries": "how often an update without an answer is tried again",
    "kept": "the newest checkpoints, which are not merged",
    "W": "checkpoints that the job may withdraw",
    "P": "assignments that no reader has asked for",
    "hosts": "hosts on which a task may run",
    "locations": "checkpoint locations: the query's own, and one that it is copied or moved to",
    "queries": "ids of the query: another one where its checkpoint location is emptied",
    "acts": "1: people copy, move, empty or set back a checkpoint location, or drop a table",
    "carried": "1: a batch takes effect with its number; 0: the number is recorded afterwards",
    "accepts": "what the options accept: 2 an emptied location, 3 a late start",
    "objections": "1: the check of a control refuses values that two updates make together",
    "batch_retries": "how often a commit of a batch looks at its target again",
}
"""What each constant of these systems means."""
