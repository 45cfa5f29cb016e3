from epochgate.spark.ingest.after_commit import IngestCommit as IngestCommit
from epochgate.spark.ingest.backlog import Backlog as Backlog, backlog_at as backlog_at
from epochgate.spark.ingest.found_files import FoundFile as FoundFile, files_at as files_at
from epochgate.spark.ingest.options import IngestOptions as IngestOptions
from epochgate.spark.ingest.run import (
    IngestFailed as IngestFailed,
    IngestHandle as IngestHandle,
    IngestResult as IngestResult,
    ingest as ingest,
    start_ingest as start_ingest,
)
