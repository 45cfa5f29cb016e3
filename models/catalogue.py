"""The lists of all machines and of all closed systems, by the names that the command line and the
diagrams use.
"""

from __future__ import annotations

from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.acknowledged import Acknowledged
from epochgate.models.batch_job import BatchJob
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.closed_concurrent import ConcurrentAttempts
from epochgate.models.closed_job import ClosedJob, EndingJob, LiveJob, ResumingJob, TalkingJob
from epochgate.models.commit import Commit
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.flink.system import Flink
from epochgate.models.job import Job
from epochgate.models.overlapping import Overlapping
from epochgate.models.recreated_job import RecreatedJob
from epochgate.models.recreation import Recreations
from epochgate.models.reference import Reference
from epochgate.models.replay import Replay
from epochgate.models.task import TaskSystem
from epochgate.models.valve import Valve

MACHINES: dict[str, type[Machine]] = {
    **Job.MACHINES,
    **TaskSystem.MACHINES,
    **BatchSnapshots.MACHINES,
    **Recreations.MACHINES,
    "vertex": ConcurrentJob.MACHINES["vertex"],
}

SYSTEMS: dict[str, type[ClosedSystem]] = {
    "reference": Reference,
    "valve": Valve,
    "acknowledged": Acknowledged,
    "flink": Flink,
    "commit": Commit,
    "replay": Replay,
    "batch": BatchJob,
    "recreation": RecreatedJob,
    "concurrent": ConcurrentAttempts,
    "overlapping": Overlapping,
    "epochgate": ClosedJob,
    "endings": EndingJob,
    "talking": TalkingJob,
    "resuming": ResumingJob,
    "live": LiveJob,
}
