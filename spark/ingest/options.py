"""The options of an ingestion; checked as far as values alone can tell."""

from __future__ import annotations

import hashlib
import math
import os
import re
from dataclasses import dataclass
from typing import get_args
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.runtime.api.restart_strategies import parse_restart_strategy
from epochgate.spark.exposure import Wire
from epochgate.spark.files import TransformFunction
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.enumeration import SPLIT_BYTES_TARGET
from epochgate.spark.files.evolution import SchemaEvolution
from epochgate.spark.files.finding import absolute_source
from epochgate.spark.files.frames import Takes, takes_of
from epochgate.spark.files.modified import parse_modified
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.files.rejected import OnBadRow
from epochgate.spark.files.source_columns import SourceColumns, parse_added
from epochgate.spark.files.split import Format
from epochgate.spark.files.text import UTF_8, usable_encoding
from epochgate.spark.ingest.hints.notify import expect_notify
from epochgate.spark.ingest.removing import why_not_removed
from epochgate.spark.ingest.targets import DELTA, ICEBERG, PARQUET, Target, parse_target
from epochgate.spark.ingest.transform_function import require_callable
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.parquet_sink.staging import ROLL_BYTES
from epochgate.spark.tables.merge import Merge, MergeUnusable

RESTART = "rate:20,1m,200ms"
BATCH_ROWS = 65_536
FOLLOW_EVERY_S = 1.0
LIST_EVERY_S = 300.0
FORGET_AFTER_S = 30 * 24 * 3600.0
SOURCE_SHOWN_MAX = 60
PORT_MAX = 65_535


class IngestMisconfigured(UsageError):
    """An option of an ingestion cannot be meant."""


@dataclass(frozen=True)
class IngestOptions:
    """One ingestion of the files of `source` into `target`.

    source: a directory, a file or a glob pattern. source, target, checkpoint_directory: a path, or
    a URL of an object store (s3://, gs://, abfss://); file:// URLs are paths. source: also a URL of
    what fsspec reads (hdfs://, sftp://). target: also "delta:PATH", a Delta table,
    "iceberg:CATALOG.NAMESPACE.TABLE", or "postgres:DSN#TABLE". checkpoint_directory: none for one
    beside the target, unless that is a database.
    transform: from a RecordBatch, Table or frame of pandas or polars to one, to several batches, or
    None for no rows. transform_takes: which of these it is given: "arrow", "table", "pandas" or
    "polars"; none to go by the annotation of its first parameter.
    follow: go on looking for new files until stopped. format: none to go by the files' extensions.
    encoding: of CSV and JSON lines files. delimiter, quote, header, null, escape: of CSV files, see
    `Dialect`. row_tag: the element of XML that is a row. sheet: of a workbook, by name or number
    from 1. columns: those to read, none for all. schema: in Spark's DDL or as a pyarrow.Schema,
    none to infer it. schema_hints: the same for some columns, where those of the others are
    inferred. add_columns: columns that say where a row comes from, such as
    "source_file=file.path" (`epochgate.spark.files.source_columns`). schema_evolution: "none",
    "add" for new columns, "widen" for wider types as well, not into Delta. partition_by: columns
    whose values are in the names of directories below each checkpoint, not together with a schema
    that changes; of a new table, its partitions, and for Iceberg transforms such as "day(at)".
    file_bytes: a file of the target ends once it is as large, or with its checkpoint. commit_in:
    "tasks" to have each task commit its part of a checkpoint first, in parallel, before the
    driver's step; not into Iceberg. merge_on: rows replace those of the target that have the same
    values in these columns, in Delta, Iceberg and PostgreSQL; merge_order: of several such rows the
    greatest by these columns counts; merge_delete: a condition of rows that delete (`Merge`).
    on_bad_row: of a row that does not fit: "fail", which makes its file bad, or "reject" to keep it
    in the table `rejected_path`, or "rescue" to keep its values that do not fit as text in a column
    `_rescued`. on_bad_file: "fail", or "skip" to leave it out and record it in the file
    `bad_files_path`. on_changed_file: of a file whose content is another than it was: "fail",
    "skip" to leave the new content out and record it, "new" to take all of it as another file's;
    none for the same as on_bad_file. settle_s: seconds that a file must have been unmodified
    before it is taken, and ten times as many where its last line has
    no end; by default 5 when following, else 0; objects of s3:// and gs:// are complete when they
    are there.
    notify: what tells of new files between two listings of all of them: "sqs:QUEUE_URL", a queue
    that the events of the source's bucket go to; "inotify", of a local directory; "names", where
    each new object has a greater key than those before (`epochgate.spark.ingest.hints`).
    list_every_s: from one listing to the next; by default 1, and 300 with notify.
    new_only: pass over the files that are there when the job begins. committed_files: "delete" or
    "move:DIR" for files whose rows are committed, committed_files_age_s seconds after that; none
    to keep them.
    modified_after, modified_before: texts of times; other files are not taken (`ModifiedBetween`).
    forget_after_s: a file that has been gone from the source for so long is forgotten, and would be
    taken again if it came back. restart: as `parse_restart_strategy` reads it. rows_per_second: of
    the whole job, none for as many as it can. heartbeat_timeout_s: a worker that is silent for so
    long is replaced. port: on which the driver listens for its tasks, 0 for a free one.
    wire: "private" to encrypt what driver and tasks say to each other on the loopback address too,
    "insecure" to do it nowhere and to run although the job's key can be read on the network.
    metrics_port: on which figures are served for Prometheus, 0 for a free one, none for none.
    metrics_host: the address of the driver's machine on which they are served, 0.0.0.0 for all; by
    default 127.0.0.1, which other machines cannot reach. ui_port, ui_host: the same of the job's
    own pages, which `epochgate ui` shows as well. otlp: the URL of a collector of OpenTelemetry,
    which the same figures are sent to.
    journal: a directory for the traces of driver and tasks.
    from_savepoint: where a savepoint of this source and target was written, from which a checkpoint
    directory that is not there yet begins. allow_dropped_state: ids of operators of then whose
    state may be left behind.

    Raises IngestMisconfigured, NotifyUnusable, NotFollowed, ListingUnusable, TargetUnreadable,
    MergeUnusable, InvalidRestartStrategy, TransformNotCallable, EncodingUnusable, DialectUnusable,
    SchemaUnreadable, SourceColumnUnusable, TransformUnclear or ConditionWrong.
    """

    source: str
    target: str
    parallelism: int = 4
    checkpoint_every_s: float = 2.0
    checkpoint_directory: str | None = None
    transform: TransformFunction | None = None
    transform_takes: Takes | None = None
    follow: bool = False
    format: Format | None = None
    encoding: str = UTF_8
    columns: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] = ()
    schema: str | pa.Schema | None = None
    schema_hints: str | pa.Schema | None = None
    add_columns: tuple[str, ...] = ()
    schema_evolution: SchemaEvolution = "none"
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null: tuple[str, ...] | None = None
    escape: str = ""
    row_tag: str = ""
    sheet: str = ""
    on_bad_row: OnBadRow = "fail"
    file_bytes: int = ROLL_BYTES
    commit_in: CommitIn = "driver"
    merge_on: tuple[str, ...] = ()
    merge_order: tuple[str, ...] = ()
    merge_delete: str = ""
    on_bad_file: OnBadFile = "fail"
    on_changed_file: OnChangedFile | None = None
    settle_s: float | None = None
    notify: str | None = None
    list_every_s: float | None = None
    new_only: bool = False
    committed_files: str | None = None
    committed_files_age_s: float = 0.0
    modified_after: str | None = None
    modified_before: str | None = None
    forget_after_s: float = FORGET_AFTER_S
    restart: str = RESTART
    rows_per_second: float | None = None
    heartbeat_timeout_s: float = 10.0
    port: int = 0
    wire: Wire = "auto"
    metrics_port: int | None = None
    metrics_host: str | None = None
    ui_port: int | None = None
    ui_host: str | None = None
    otlp: str | None = None
    journal: str | None = None
    from_savepoint: str | None = None
    allow_dropped_state: tuple[str, ...] = ()
    batch_rows: int = BATCH_ROWS
    split_bytes_target: int = SPLIT_BYTES_TARGET
    checkpoint_timeout_s: float = 600.0
    store_timeout_s: float = 600.0
    commit_timeout_s: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            if not os.fspath(getattr(self, name)):
                raise IngestMisconfigured(f"{name} is empty; give a path")
        for name in (
            "checkpoint_every_s",
            "heartbeat_timeout_s",
            "checkpoint_timeout_s",
            "store_timeout_s",
            "commit_timeout_s",
            "forget_after_s",
        ):
            self._expect_positive(name)
        for name in ("parallelism", "batch_rows", "split_bytes_target", "file_bytes"):
            if getattr(self, name) < 1:
                raise IngestMisconfigured(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.rows_per_second is not None:
            self._expect_positive("rows_per_second")
        self._expect_port("port")
        self._expect_one_of("wire", get_args(Wire))
        for page in ("metrics", "ui"):
            self._expect_address(page)
        if self.settle_s is not None and not (math.isfinite(self.settle_s) and self.settle_s >= 0):
            raise IngestMisconfigured(f"settle_s is {self.settle_s}; it must be 0 or more")
        self._expect_one_of("format", get_args(Format))
        self._expect_one_of("on_bad_file", get_args(OnBadFile))
        self._expect_one_of("on_bad_row", get_args(OnBadRow))
        self._expect_one_of("commit_in", get_args(CommitIn))
        self._expect_one_of("schema_evolution", get_args(SchemaEvolution))
        self._expect_target()
        self._expect_schema()
        expect_notify(self.notify, self.list_every_s, self.source_path, is_followed=self.follow)
        self._expect_removal()
        self._expect_one_of("on_changed_file", get_args(OnChangedFile))
        usable_encoding(self.encoding)
        parse_modified(self.modified_after, self.modified_before)
        if self.transform is not None:
            require_callable(self.transform, repr(self.transform))
            self._expect_one_of("transform_takes", get_args(Takes))
            takes_of(self.transform, self.transform_takes)
        parse_restart_strategy(self.restart)

    def _expect_address(self, page: str) -> None:
        if getattr(self, f"{page}_port") is not None:
            self._expect_port(f"{page}_port")
        elif (host := getattr(self, f"{page}_host")) is not None:
            raise IngestMisconfigured(
                f"{page}_host is {host!r} without a {page}_port; give one to serve on, 0 for a "
                "free one"
            )

    def _expect_port(self, name: str) -> None:
        port = getattr(self, name)
        if not 0 <= port <= PORT_MAX:
            raise IngestMisconfigured(
                f"{name} is {port}; choose one from 1024 to {PORT_MAX}, or 0 for a free one"
            )

    def _expect_target(self) -> None:
        target = self.parsed_target
        if not target.is_directory and self.checkpoint_directory is None:
            raise IngestMisconfigured(
                "a database or catalog has no directory beside it for checkpoints: give a "
                "--checkpoint-dir (checkpoint_directory in Python) that stays the same over all "
                "starts"
            )
        if self.schema_evolution == "widen" and target.scheme == DELTA:
            from epochgate.spark.delta_sink.features import NOT_WIDENED

            raise IngestMisconfigured(NOT_WIDENED)

        if self.commit_in == "tasks" and target.scheme == ICEBERG:
            raise IngestMisconfigured(
                "--commit-in tasks (commit_in) is for Parquet, Delta and PostgreSQL targets, and "
                f"{self.target!r} is committed to by the driver; leave it out"
            )
        if self.merge is not None:
            if target.scheme == PARQUET:
                raise MergeUnusable(
                    f"rows of Parquet files in {self.target_path!r} cannot be replaced: give a "
                    "target delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE or postgres:DSN#TABLE"
                )
            self.merge.require_possible(self.commit_in, self.schema_evolution)

    def _expect_removal(self) -> None:
        removal = self.committed_files, self.committed_files_age_s
        if reason := why_not_removed(*removal, self.on_changed_file):
            raise IngestMisconfigured(reason)

    def _expect_schema(self) -> None:
        """Refuse a dialect or a schema that cannot be read, or that does not have the columns."""
        names, header = (self.arrow_schema or pa.schema([])).names, self.dialect.header
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise IngestMisconfigured(
                f"--schema (schema in Python) has two columns of the name {twice!r}; name each once"
            )
        missing = [name for name in self.columns or () if name not in names]
        if missing and self.schema is not None:
            raise IngestMisconfigured(
                f"--columns {', '.join(missing)} (columns in Python): --schema (schema) has "
                f"{', '.join(names)}; name the columns in both"
            )
        if self.schema is not None and len(self.hints):
            raise IngestMisconfigured(
                "--schema and --schema-hints (schema and schema_hints in Python) are given "
                "together, and the schema has all columns; leave one of them out"
            )
        if both := next((name for name, _ in self.added if name in names), None):
            raise IngestMisconfigured(
                f"--add-column {both} (add_columns in Python): --schema (schema) has a column of "
                "that name, which is one of the files; give the added one another name"
            )
        if self.columns and not header and self.schema is None:
            raise IngestMisconfigured(
                "--no-header (header=False in Python) leaves the columns without names for "
                "--columns (columns); name them by --schema (schema)"
            )
        is_directory = self.parsed_target.scheme == PARQUET
        if self.partition_by and self.schema_evolution != "none" and is_directory:
            raise IngestMisconfigured(
                "partition_by and schema_evolution are given together, and a partitioned directory "
                "has the same columns in all files. Leave one of them out"
            )

    def _expect_one_of(self, name: str, known: tuple[str, ...]) -> None:
        if getattr(self, name) not in (*known, getattr(type(self), name)):
            raise IngestMisconfigured(
                f"{name} is {getattr(self, name)!r}; choose from {', '.join(known)}"
            )

    def _expect_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not (math.isfinite(value) and value > 0):
            raise IngestMisconfigured(f"{name} is {value}; it must be a number above 0")

    @property
    def follow_every_s(self) -> float | None:
        """Seconds from one listing of all files to the next; none if there is one listing."""
        if not self.follow:
            return None
        usual = FOLLOW_EVERY_S if self.notify is None else LIST_EVERY_S
        return usual if self.list_every_s is None else self.list_every_s

    @property
    def takes(self) -> Takes:
        """The kind of batches that the transform is given. Raises TransformUnclear."""
        if self.transform is None:
            return "arrow"
        return takes_of(self.transform, self.transform_takes)

    @property
    def merge(self) -> Merge | None:
        """The rule by which rows replace others; none if they are added. Raises MergeUnusable and
        ConditionWrong.
        """
        if not (self.merge_on or self.merge_order or self.merge_delete):
            return None
        return Merge(tuple(self.merge_on), tuple(self.merge_order), self.merge_delete)

    @property
    def dialect(self) -> Dialect:
        """The form in which the fields of CSV files are written. Raises DialectUnusable."""
        form = self.delimiter, self.quote, self.header, self.null, self.escape
        return Dialect(*form, self.row_tag, self.sheet)

    @property
    def added(self) -> SourceColumns:
        """The columns that say where a row comes from. Raises SourceColumnUnusable."""
        return parse_added(self.add_columns)

    @property
    def hints(self) -> pa.Schema:
        """The columns whose types are declared beside inferred ones. Raises SchemaUnreadable."""
        given = self.schema_hints
        if isinstance(given, str):
            return parse_schema(given, "--schema-hints (schema_hints in Python)")
        return pa.schema([]) if given is None else given

    @property
    def arrow_schema(self) -> pa.Schema | None:
        """The schema that was asked for, if one was. Raises SchemaUnreadable."""
        return parse_schema(self.schema) if isinstance(self.schema, str) else self.schema

    @property
    def _companion(self) -> str:
        """The prefix of the names of things beside the target; of a table, to which several jobs
        may write, beside the job's own checkpoints where these have a place of their own.
        """
        if self.checkpoint_directory is not None and self.parsed_target.is_table:
            return absolute(self.checkpoint_directory).rstrip("/")
        return self.target_path.rstrip("/")

    @property
    def rejected_path(self) -> str:
        """The table of rejected rows, beside the target or the checkpoints."""
        return self._companion + ".rejected"

    @property
    def bad_files_path(self) -> str:
        """The list of files that were left out, as JSON lines, beside that table."""
        return self._companion + ".bad-files.jsonl"

    @property
    def source_path(self) -> str:
        """The source as an absolute path or pattern, or a URL."""
        return absolute_source(absolute(self.source))

    @property
    def target_path(self) -> str:
        """The target as an absolute path or a URL, without its scheme; a database's name.

        Raises ExtraMissing.
        """
        target = self.parsed_target
        return absolute(target.place) if target.is_directory else target.database

    @property
    def parsed_target(self) -> Target:
        """The target's sink and place. Raises TargetUnreadable."""
        return parse_target(self.target)

    @property
    def job_id(self) -> str:
        """The same for every start that reads this source into this target.

        >>> IngestOptions("/data/in", "/data/out").job_id
        'ingest-in-to-out-5a6ece66'
        """
        paths = (self.source_path, self.target_path)
        names = "-to-".join(os.path.basename(path) or "root" for path in paths)
        kept = re.sub(r"[^0-9A-Za-z_.-]", "_", names)
        scheme = "delta:" if self.parsed_target.scheme == "delta" else ""
        pair = f"{self.source_path}\0{scheme}{self.target_path}".encode()
        return f"ingest-{kept[:SOURCE_SHOWN_MAX]}-{hashlib.sha256(pair).hexdigest()[:8]}"


def absolute(path: str) -> str:
    """A path as it is known everywhere: absolute, or the URL of an object store.

    >>> absolute("file:///data/a%20b"), absolute("s3://bucket/out")
    ('/data/a b', 's3://bucket/out')
    """
    if path.startswith("file://"):
        return os.path.abspath(unquote(urlsplit(path).path))
    # A URL that is refused later should then be shown as it was given.
    return path if "://" in path else os.path.abspath(path)
