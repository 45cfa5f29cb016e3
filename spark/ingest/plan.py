"""Everything of an ingestion that does not need Spark: checked, restored and claimed.

Decides in which order that happens, so that whatever the user got wrong is said before Spark
starts, and that nothing stays claimed then. Leaves running it to `epochgate.spark.job`, or to a
simulated job in tests. Runs on the caller's thread; looks at the source's files.

    source and its files -> checkpoints -> target -> plan -> (a job takes it over) | release
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.runtime import (
    CommitTopology,
    JobConfiguration,
    JobMisconfigured,
    SinkStart,
)
from epochgate.runtime.api.restart_strategies import parse_restart_strategy
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url, require_reachable
from epochgate.runtime.objects.errors import ObjectStoreError, ObjectStoreUnusable
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.savepoints import begin_from
from epochgate.runtime.sink_start import sink_start
from epochgate.runtime.source import SourceProvider
from epochgate.runtime.store import (
    CheckpointDamaged,
    CheckpointStore,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)
from epochgate.spark.counting_sink import CountingCommitter, CountingSink
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.kept import segments_in
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.modified import parse_modified
from epochgate.spark.files.object_finding import root_of_url
from epochgate.spark.files.text import usable_encoding
from epochgate.spark.ingest.bad_files import BadFilesList
from epochgate.spark.ingest.file_enumerator import (
    CHECKPOINTS_RETAINED,
    KNOWN_FILES,
    EnumeratedFileSource,
    FirstLook,
    read_files,
)
from epochgate.spark.ingest.found_files import hold_told
from epochgate.spark.ingest.hints.notify import hints_of
from epochgate.spark.ingest.options import IngestOptions, absolute
from epochgate.spark.ingest.program import SINK, SOURCE, IngestProgramFactory
from epochgate.spark.ingest.rate import RATE, IngestRate
from epochgate.spark.ingest.rejects import REJECTS, IngestCommitter, claim_both, reject_sink
from epochgate.spark.ingest.removal_options import after_commit_of, removal_of
from epochgate.spark.ingest.removing import AfterCommit
from epochgate.spark.ingest.targets import sink_of
from epochgate.spark.parquet_sink import (
    ParquetCommitter,
    ParquetSink,
    checkpoint_name,
    working_directory_of,
)

CHECKPOINTS = "checkpoints"


class TargetInSource(UsageError):
    """The job would read what it writes."""


class CheckpointsMisplaced(UsageError):
    """The checkpoints would lie among the data."""


@dataclass
class IngestPlan:
    """One start of an ingestion; `release` it unless a job has taken over store and committer.

    committer: of the rows; rejects: of rejected rows, if there is a table of them; job_committer:
    of both. bad_files: the list of files that were left out.
    """

    options: IngestOptions
    configuration: JobConfiguration
    program_factory: IngestProgramFactory
    store: CheckpointStore
    committer: CountingCommitter
    rejects: ParquetCommitter | None
    job_committer: IngestCommitter
    bad_files: BadFilesList
    source: EnumeratedFileSource
    restored: CompletedCheckpoint | None
    files_found: int
    unread: dict[str, int]
    warnings: list[str] = field(default_factory=list)

    @property
    def resumes_from(self) -> int | None:
        """The id of the checkpoint from which it goes on; none if it begins afresh."""
        return None if self.restored is None else self.restored.checkpoint_id

    @property
    def remove(self) -> Callable[[int], None] | None:
        """The work after a commit, by which files are removed; none if they stay."""
        return None if self.options.committed_files is None else self.source.remove_committed

    def release(self) -> None:
        """Let another driver have target and checkpoints."""
        self.job_committer.close()
        self.store.close()


def checkpoint_directory_of(options: IngestOptions) -> str:
    """Return the directory of the checkpoints: as asked, or in the target's working directory, or
    beside the target's URL.
    """
    given, target = options.checkpoint_directory, options.target_path
    if given is not None:
        return absolute(given)
    if is_url(target):
        return f"{target.rstrip('/')}.{CHECKPOINTS}"
    return os.path.join(working_directory_of(target), CHECKPOINTS)


def plan_ingest(
    options: IngestOptions,
    *,
    run_id: str | None = None,
    files: FileSystem | None = None,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> IngestPlan:
    """Check everything, restore the newest checkpoint if there is one, and claim the target.

    `files` and `open_objects`: what store, target and sinks write with. Raises TargetInSource,
    CheckpointsMisplaced, JobMisconfigured for checkpoints of another job, and what `begin_from`,
    `FileEnumeration`, `DirectoryCheckpointStore`, `ObjectCheckpointStore` and
    the sink's `create_committer` raise; nothing stays claimed then.
    """
    _require_apart(options)
    run_id = run_id or uuid.uuid4().hex
    directory = checkpoint_directory_of(options)
    sink = sink_of(options, files, open_objects)
    rejecting = reject_sink(options, files, open_objects)

    def open_store() -> CheckpointStore:
        return _open_store(directory, options, files or LocalFileSystem(), open_objects)

    claimed: IngestCommitter | None = None
    store: CheckpointStore | None = None
    try:
        is_to_be_read = os.path.isdir(directory) or options.from_savepoint is not None
        if is_url(directory) or is_url(options.target_path) or is_to_be_read:
            store = open_store()
        if store is not None and options.from_savepoint is not None:
            begin_from(store, absolute(options.from_savepoint), open_objects=open_objects)
        restored = None if store is None else store.latest()
        segments = _segments(directory, files or LocalFileSystem(), open_objects)
        # What a transform returns, only the tasks see.
        accepts = sink.accepts if options.transform is None else None
        fresh = enumeration_factory(options, segments, open_objects, accepts)
        enumeration = fresh()
        begin = None if restored is not None else _pass_over(options, enumeration, segments)
        if restored is not None:
            enumeration.restore(_files_in(restored))
            hold_told(enumeration.taken, restored)
        _asked(enumeration, enumeration.discover)
        claimed = claim_both(sink, rejecting, _sink_start(options, run_id, store, restored))
        # Only now, so that a target which is refused has nothing made beside it.
        store = store or open_store()
        if begin is not None:
            segments.keep_begin(begin)
        enumeration.seal()
        _remove_needless(segments, store, enumeration)
        return _assembled(
            open_objects,
            options,
            run_id,
            (sink, rejecting),
            claimed,
            store,
            restored,
            fresh,
            enumeration,
            segments,
            _bad_files(options.bad_files_path, files, open_objects),
            after_commit_of(options, restored, open_objects),
        )
    except BaseException:
        if claimed is not None:
            claimed.close()
        if store is not None:
            store.close()
        raise


def require_stores(options: IngestOptions) -> None:
    """Ask the stores of all URLs whether they answer, without much patience; before `plan_ingest`,
    whose requests are those of the job. What cannot be meant is refused before that. Raises
    ObjectStoreUnusable, TargetInSource, CheckpointsMisplaced, and what the sink raises.
    """
    _require_apart(options)
    sink_of(options, None, open_url)
    places = (
        root_of_url(options.source_path),
        options.target_path,
        checkpoint_directory_of(options),
    )
    for url in dict.fromkeys(filter(is_url, places)):
        require_reachable(url)


def _sink_start(
    options: IngestOptions,
    run_id: str,
    store: CheckpointStore | None,
    restored: CompletedCheckpoint | None,
) -> SinkStart:
    if store is None:
        return SinkStart(options.job_id, run_id)
    return sink_start(store, restored, run_id)


def enumeration_factory(
    options: IngestOptions,
    segments: KnownSegments | None = None,
    open_objects: Callable[[str], ObjectStore] = open_url,
    accepts: Callable[[pa.Schema], None] | None = None,
) -> Callable[[], FileEnumeration]:
    """Makes enumerations of the source that have not looked yet."""
    access = FileAccess(open_objects)

    def fresh() -> FileEnumeration:
        return FileEnumeration(
            options.source_path,
            format=options.format,
            schema=options.arrow_schema,
            projection=options.columns,
            dialect=options.dialect,
            follow=options.follow,
            on_bad_file=options.on_bad_file,
            on_bad_row=options.on_bad_row,
            evolution=options.schema_evolution,
            on_changed_file=options.on_changed_file,
            settle_s=options.settle_s,
            modified=parse_modified(options.modified_after, options.modified_before),
            encoding=options.encoding,
            added=options.added,
            hints=options.hints,
            segments=segments,
            forget_after_s=options.forget_after_s,
            split_bytes_target=options.split_bytes_target,
            access=access,
            accepts=accepts,
        )

    fresh()
    return fresh


def _pass_over(
    options: IngestOptions, enumeration: FileEnumeration, segments: KnownSegments
) -> bytes | None:
    """Pass over the files that were there at the first start, as a job without a checkpoint is told
    to; returns them if this is the first, to be kept before any row is taken.
    """
    if not options.new_only:
        return None
    if (begin := segments.begin()) is not None:
        enumeration.restore(begin)
        return None
    _asked(enumeration, enumeration.pass_over)
    return enumeration.snapshot()


def _asked(enumeration: FileEnumeration, look: Callable[[], object]) -> None:
    try:
        look()
    except ObjectStoreError as error:
        raise ObjectStoreUnusable(enumeration.source, error.strerror) from error


def _assembled(
    open_objects: Callable[[str], ObjectStore],
    options: IngestOptions,
    run_id: str,
    sinks: tuple[CountingSink, ParquetSink | None],
    claimed: IngestCommitter,
    store: CheckpointStore,
    restored: CompletedCheckpoint | None,
    fresh: Callable[[], FileEnumeration],
    enumeration: FileEnumeration,
    segments: KnownSegments,
    bad_files: BadFilesList,
    after_commit: AfterCommit | None,
) -> IngestPlan:
    sink, rejecting = sinks
    source = EnumeratedFileSource(
        fresh,
        FirstLook(0 if restored is None else restored.checkpoint_id, enumeration),
        segments,
        follow_every_s=options.follow_every_s,
        bad_files=bad_files,
        hints=hints_of(options.notify, options.source_path, open_objects),
        is_recorded=True,
        after_commit=after_commit,
    )
    rate = IngestRate(options.rows_per_second)
    agreeing = sink.create_coordinator(SINK, claimed.rows)
    beside = () if agreeing is None else (agreeing,)
    return IngestPlan(
        options=options,
        configuration=JobConfiguration(
            job_id=options.job_id,
            parallelism=options.parallelism,
            providers=(SourceProvider(SOURCE, source), rate, *beside),
            run_id=run_id,
            checkpoint_interval_s=options.checkpoint_every_s,
            checkpoint_timeout_s=options.checkpoint_timeout_s,
            store_timeout_s=options.store_timeout_s,
            commit_timeout_s=options.commit_timeout_s,
            restart_strategy=parse_restart_strategy(options.restart),
            allow_dropped_state=options.allow_dropped_state,
            topology=CommitTopology.of(sink),
            task_operators=(SOURCE, RATE, SINK, *([] if rejecting is None else [REJECTS])),
        ),
        program_factory=IngestProgramFactory(
            sink,
            rejecting,
            options.transform,
            options.takes,
            options.batch_rows,
            options.on_bad_file,
            options.on_bad_row,
            options.on_changed_file or options.on_bad_file,
            usable_encoding(options.encoding),
            rate,
            open_objects,
        ),
        store=store,
        committer=claimed.rows,
        rejects=claimed.rejects,
        job_committer=claimed,
        bad_files=bad_files,
        source=source,
        restored=restored,
        files_found=enumeration.files_found,
        unread=dict(enumeration.unread),
        warnings=list(store.warnings),
    )


def _open_store(
    directory: str,
    options: IngestOptions,
    files: FileSystem,
    open_objects: Callable[[str], ObjectStore],
) -> CheckpointStore:
    job_id, retained = options.job_id, CHECKPOINTS_RETAINED
    if is_url(directory):
        return ObjectCheckpointStore(open_objects(directory), job_id=job_id, retained=retained)
    return DirectoryCheckpointStore(directory, job_id=job_id, retained=retained, file_system=files)


def _bad_files(
    path: str, files: FileSystem | None, open_objects: Callable[[str], ObjectStore]
) -> BadFilesList:
    if is_url(path):
        folder, _, name = path.rpartition("/")
        return BadFilesList(name, ObjectFiles(open_objects(folder)))
    return BadFilesList(path, files)


def _segments(
    directory: str, files: FileSystem, open_objects: Callable[[str], ObjectStore]
) -> KnownSegments:
    if is_url(directory):
        return KnownSegments(KNOWN_FILES, ObjectFiles(open_objects(directory)))
    return KnownSegments(os.path.join(directory, KNOWN_FILES), files)


def _remove_needless(
    segments: KnownSegments, store: CheckpointStore, enumeration: FileEnumeration
) -> None:
    """Remove what an earlier run has left of the list of known files and no checkpoint needs."""
    needed = segments_in(enumeration.snapshot())
    for checkpoint_id in store.ids():
        # One that is damaged can never be restored, and needs none.
        with contextlib.suppress(CheckpointDamaged):
            needed |= segments_in(_files_in(store.load(checkpoint_id)))
    segments.remove(name for name in segments.names() if name not in needed)


def _files_in(restored: CompletedCheckpoint) -> bytes:
    state = restored.coordinators.get(SOURCE)
    if state is None:
        raise JobMisconfigured(
            f"checkpoint {restored.checkpoint_id} of job {restored.job_id!r} holds no file source; "
            "it is of another kind of job. Give a --checkpoint-dir of its own "
            "(checkpoint_directory in Python)"
        )
    return read_files(state)


def _require_apart(options: IngestOptions) -> None:
    removal_of(options)
    source, target = options.source_path, options.target_path
    for written in (target, options.rejected_path):
        if _is_read(source, os.path.join(written, checkpoint_name(1), "part.parquet")):
            raise TargetInSource(
                f"target {written!r} lies in the source {source!r}: the job would read what it "
                "writes. Give a target outside of the source, or a narrower pattern as the source"
            )
    checkpoints = os.path.join(checkpoint_directory_of(options), "")
    for place in (source, target):
        if checkpoints.startswith(os.path.join(place, "")):
            raise CheckpointsMisplaced(
                f"the checkpoint directory {checkpoints!r} lies in {place!r}, among the data. Give "
                "a --checkpoint-dir (checkpoint_directory in Python) outside of source and target; "
                "the default is beside the target"
            )


def _is_read(source: str, path: str) -> bool:
    if glob.has_magic(source) and not os.path.lexists(source):
        return _may_match(source, path)
    return path.startswith(os.path.join(source, ""))


def _may_match(pattern: str, path: str) -> bool:
    wanted, found = pattern.split(os.sep), path.split(os.sep)
    if "**" in wanted:
        return fnmatch.fnmatchcase(path, pattern)
    return len(wanted) == len(found) and all(map(fnmatch.fnmatchcase, found, wanted))
