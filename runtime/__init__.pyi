"""The names of `epochgate.runtime`, and where they are defined."""

from epochgate.runtime.api.commit_topology import (
    CommittableBatch as CommittableBatch,
    CommittableOperator as CommittableOperator,
    CommitTopology as CommitTopology,
    TopologyRefused as TopologyRefused,
)
from epochgate.runtime.api.committer import (
    CombiningCommitter as CombiningCommitter,
    CommitImpossible as CommitImpossible,
    Committables as Committables,
    Committer as Committer,
    FailedForKnownReason as FailedForKnownReason,
    RetryLater as RetryLater,
    UpdateAndRetryLater as UpdateAndRetryLater,
)
from epochgate.runtime.api.configuration import (
    JobConfiguration as JobConfiguration,
    JobMisconfigured as JobMisconfigured,
)
from epochgate.runtime.api.coordinator import (
    BATCH_CHECKPOINT as BATCH_CHECKPOINT,
    NO_CHECKPOINT as NO_CHECKPOINT,
    CheckpointAccess as CheckpointAccess,
    CoordinatorContext as CoordinatorContext,
    CoordinatorProvider as CoordinatorProvider,
    OperatorCoordinator as OperatorCoordinator,
    RequestNotHandled as RequestNotHandled,
    RunningCoroutine as RunningCoroutine,
    SubtaskGateway as SubtaskGateway,
)
from epochgate.runtime.api.coordinator_metrics import (
    CoordinatorMetrics as CoordinatorMetrics,
    MetricNameTaken as MetricNameTaken,
)
from epochgate.runtime.api.coordinator_store import CoordinatorStore as CoordinatorStore
from epochgate.runtime.api.dropped_state import StateWithoutOperator as StateWithoutOperator
from epochgate.runtime.api.job_events import (
    AttemptOutlived as AttemptOutlived,
    CheckpointEnded as CheckpointEnded,
    CommitFailed as CommitFailed,
    Committed as Committed,
    JobEnded as JobEnded,
    JobEvent as JobEvent,
    JobListener as JobListener,
    JobRestarts as JobRestarts,
    JobStarted as JobStarted,
    SavepointWritten as SavepointWritten,
    SubtaskFailed as SubtaskFailed,
    SubtaskRestarted as SubtaskRestarted,
    SubtasksUp as SubtasksUp,
    Warned as Warned,
)
from epochgate.runtime.api.malformed_event import MalformedEvent as MalformedEvent
from epochgate.runtime.api.operator import (
    FatalTaskError as FatalTaskError,
    Operator as Operator,
    OperatorContext as OperatorContext,
    Program as Program,
    Work as Work,
)
from epochgate.runtime.api.plain_values import ValueNotPlain as ValueNotPlain
from epochgate.runtime.api.reports import JobReport as JobReport, JobResult as JobResult
from epochgate.runtime.api.rescaling import NotRescalable as NotRescalable
from epochgate.runtime.api.restart_strategies import (
    ExponentialDelay as ExponentialDelay,
    FailureRate as FailureRate,
    FixedDelay as FixedDelay,
    InvalidRestartStrategy as InvalidRestartStrategy,
    NoRestart as NoRestart,
    RestartStrategy as RestartStrategy,
)
from epochgate.runtime.api.send_future import EventLost as EventLost, SendFuture as SendFuture
from epochgate.runtime.api.sink import (
    AheadOfCheckpoint as AheadOfCheckpoint,
    BehindCheckpoint as BehindCheckpoint,
    Sink as Sink,
    SinkStart as SinkStart,
    SinkWriter as SinkWriter,
)
from epochgate.runtime.api.sink_operator import SinkOperator as SinkOperator
from epochgate.runtime.api.sinks_of_one_job import (
    CommitterOfSinks as CommitterOfSinks,
    UnknownSink as UnknownSink,
)
from epochgate.runtime.api.state_parts import (
    PartsDamaged as PartsDamaged,
    pack_parts as pack_parts,
    unpack_parts as unpack_parts,
)
from epochgate.runtime.api.state_versions import (
    StateNotUpgraded as StateNotUpgraded,
    StateTooNew as StateTooNew,
)
from epochgate.runtime.api.task_committer import (
    CommitRequest as CommitRequest,
    CommittableSummary as CommittableSummary,
    TaskCommitter as TaskCommitter,
)
from epochgate.runtime.api.transport import TaskInbox as TaskInbox, Transport as Transport
from epochgate.runtime.api.user_code import CannotLoad as CannotLoad
from epochgate.runtime.observing.log import JsonLines as JsonLines
from epochgate.runtime.shell.batch_snapshots import (
    BatchSnapshotFailed as BatchSnapshotFailed,
    BatchSnapshotRefused as BatchSnapshotRefused,
)
from epochgate.runtime.shell.checkpoints import CheckpointAborted as CheckpointAborted
from epochgate.runtime.shell.client_requests import (
    CoordinatorUnavailable as CoordinatorUnavailable,
    JobOver as JobOver,
    UnknownOperator as UnknownOperator,
)
from epochgate.runtime.shell.concurrent_attempts import (
    NoCheckpointAmongAttempts as NoCheckpointAmongAttempts,
)
from epochgate.runtime.shell.fenced_context import CoordinatorReplaced as CoordinatorReplaced
from epochgate.runtime.shell.job_master import JobMaster as JobMaster
from epochgate.runtime.shell.queue_thread import JobLoop as JobLoop
from epochgate.runtime.shell.recreate_on_reset import (
    CoordinatorNotClosed as CoordinatorNotClosed,
    RecreateOnReset as RecreateOnReset,
)
from epochgate.runtime.shell.send_window import GatewayFull as GatewayFull
from epochgate.runtime.store import (
    CheckpointStore as CheckpointStore,
    DirectoryCheckpointStore as DirectoryCheckpointStore,
    InMemoryCheckpointStore as InMemoryCheckpointStore,
    ObjectCheckpointStore as ObjectCheckpointStore,
)
