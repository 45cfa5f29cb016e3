"""The names of `epochgate.spark.streaming`, and where they are defined."""

from epochgate.runtime.source.batches.planned import (
    PlannedBatch as PlannedBatch,
    SplitFilter as SplitFilter,
    plans as plans,
)
from epochgate.runtime.steering.coordinator import (
    BatchCoordinator as BatchCoordinator,
    NextBatch as NextBatch,
)
from epochgate.runtime.steering.deciding import Decision as Decision
from epochgate.runtime.steering.history import Update as Update
from epochgate.spark.files.condition import ConditionWrong as ConditionWrong
from epochgate.spark.streaming.control import Control as Control
from epochgate.spark.streaming.errors import (
    BatchesAhead as BatchesAhead,
    BatchesMissing as BatchesMissing,
    BatchRefused as BatchRefused,
    ColumnsDiffer as ColumnsDiffer,
    CountedElsewhere as CountedElsewhere,
    LocationDiffers as LocationDiffers,
    LocationEmptied as LocationEmptied,
    LocationMoved as LocationMoved,
    LocationTemporary as LocationTemporary,
    NoQuery as NoQuery,
    OffsetsChanged as OffsetsChanged,
    OnceUnusable as OnceUnusable,
    OptionsWrong as OptionsWrong,
    TargetOfAnotherQuery as TargetOfAnotherQuery,
    TransactionLost as TransactionLost,
    TransactionMissing as TransactionMissing,
    TransactionTaken as TransactionTaken,
    TransactionUnused as TransactionUnused,
)
from epochgate.spark.streaming.guarding import once as once
from epochgate.spark.streaming.ledgers import (
    DeltaLedger as DeltaLedger,
    DeltaTransaction as DeltaTransaction,
    DirectoryLedger as DirectoryLedger,
    IcebergLedger as IcebergLedger,
    Ledger as Ledger,
    ObjectLedger as ObjectLedger,
    PostgresLedger as PostgresLedger,
)
from epochgate.spark.streaming.left_out import bad_files as bad_files
from epochgate.spark.streaming.registration import register as register
from epochgate.spark.streaming.sink import Sink as Sink
