"""One compaction, carried out: the machine says which step is next, and this does it.

Decides nothing: a step ends in a trigger of the machine, an error of a step in `broken`, no end
within the limit in `expire`, and the error is raised at the end. Merging has no limit, since it
takes as long as there are rows: it runs on the caller's thread, where an interrupt ends it, and is
named while it takes long. Runs in the process of the command; the other steps on a thread of their
own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from epochgate.errors import EpochgateError, InvariantBroken, UsageError
from epochgate.fsm import Handle, Handles
from epochgate.models.compaction import Compaction, Compactions
from epochgate.runtime.filesystem import FileSystem
from epochgate.runtime.limited import CallLate, Limit, LimitedCalls, watched
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.spark.compaction.directory import DirectoryCompaction
from epochgate.spark.compaction.errors import (
    CompactionFailed,
    CompactionOvertaken,
    OthersCompact,
)
from epochgate.spark.compaction.objects import ObjectCompaction
from epochgate.spark.compaction.plan import Plan, Wanted
from epochgate.spark.compaction.result import CompactionResult, planned_result, result_of
from epochgate.spark.ingest.options import absolute
from epochgate.spark.ingest.targets import DELTA, ICEBERG, PARQUET, POSTGRES, parse_target
from epochgate.spark.parquet_sink.tree import VisibleFile

FILE_BYTES: Final = 128_000_000
KEEP_FOR_S: Final = 24 * 3600.0
COMMIT_TIMEOUT_S: Final = 3600.0
KEEP_CHECKPOINTS: Final = 3
"""As many as `epochgate ingest` keeps in its checkpoint directory to go back to."""
T = TypeVar("T")


class CompactedTarget(Protocol):
    """The steps of a compaction where the target lies."""

    target: str
    planned: Plan
    built: Sequence[VisibleFile]

    @property
    def retired(self) -> int:
        """The number of replaced files that are still there for readers."""

    def open(self) -> None:
        """Keep other compactions away."""

    def close(self) -> None:
        """Let them come."""

    def plan(self) -> Plan:
        """Look at the target."""

    def stage(self) -> bool:
        """Write the merged files where no reader finds them; false if the target has changed."""

    def exchange(self) -> bool:
        """Show them instead of the others, in one step; false if the target has changed."""

    def discard(self) -> None:
        """Remove what `stage` has written."""

    def clean(self) -> None:
        """Remove what no reader needs."""


def compact(
    target: str,
    *,
    file_bytes: int = FILE_BYTES,
    min_files: int = 2,
    keep_checkpoints: int = KEEP_CHECKPOINTS,
    keep_for_s: float | None = None,
    is_dry_run: bool = False,
    commit_timeout_s: float = COMMIT_TIMEOUT_S,
    files: FileSystem | None = None,
    open_objects: Callable[[str], ObjectStore] = open_url,
    now: Callable[[], float] = time.time,
) -> CompactionResult:
    """Merge the small files of a target of `epochgate ingest`, also while it runs.

    Files of `min_files` and more in a partition that are smaller than three quarters of
    `file_bytes` become files of about that size; the newest `keep_checkpoints` stay as they are.
    In an object store, replaced objects stay for `keep_for_s`, a day. `commit_timeout_s` limits
    each step beside merging; after a step that hangs the target stays locked until the process
    ends. `files`, `open_objects` and
    `now`: with what, for tests. Raises UsageError for a target that cannot be compacted,
    CompactionOvertaken, CompactionReplaced, CommittableDamaged, RowsMissing, LogOutcomeUnknown, or
    CompactionFailed for anything else; readers see all of the compaction then or nothing.
    """
    wanted = Wanted(file_bytes, min_files, keep_checkpoints)
    _require_sensible(wanted)
    parsed = parse_target(target)
    if parsed.scheme != PARQUET:
        raise OthersCompact(target, _OTHERS[parsed.scheme])
    side: CompactedTarget
    place = absolute(parsed.place)
    if is_url(place):
        keep = KEEP_FOR_S if keep_for_s is None else keep_for_s
        side = ObjectCompaction(open_objects(place), wanted, keep, now)
    elif keep_for_s is not None:
        raise UsageError(
            f"{target!r} is a directory, where replaced files are gone at once (programs that have "
            "opened them keep them). Leave --keep-for (keep_for_s in Python) out"
        )
    else:
        side = DirectoryCompaction(place, wanted, files)
    try:
        limit = Limit("commit_timeout_s (--commit-timeout)", commit_timeout_s)
        return _compacted(side, wanted, limit, is_dry_run=is_dry_run)
    except (OSError, ValueError) as error:
        raise CompactionFailed(side.target, str(error)) from error


def _compacted(
    side: CompactedTarget, wanted: Wanted, limit: Limit, *, is_dry_run: bool
) -> CompactionResult:
    calls = LimitedCalls("epochgate-compaction")
    calls.call(f"opening {side.target}", limit, side.open)
    try:
        if is_dry_run:
            planned = calls.call(f"the look at {side.target}", limit, side.plan)
            return planned_result(side.target, planned, wanted)
        CompactionRun(side, limit, calls).run()
        return result_of(side.target, side.planned, side.built, side.retired)
    finally:
        if not calls.is_left_behind:
            side.close()


class CompactionRun:
    """Carries the steps out: the handler of the machine's port."""

    def __init__(self, side: CompactedTarget, limit: Limit, calls: LimitedCalls) -> None:
        self._side, self._limit, self._calls = side, limit, calls
        self._system = Handles(Compactions)
        self._system.bind("compaction", "target", self)
        self._error: Exception | None = None
        self._outcome: Exception | None = InvariantBroken("the compaction has no end")

    def run(self) -> None:
        """To the end. Raises what a step has raised, or CompactionOvertaken."""
        self._system.compaction.start()
        self._system.settle()
        if self._outcome is not None:
            raise self._outcome

    # port `target`

    def plan(self) -> None:
        with self._step() as machine:
            machine.planned(len(self._limited("plan", self._side.plan).merges))

    def stage(self) -> None:
        with self._step() as machine:
            with watched(f"merging the files of {self._side.target}"):
                is_staged = self._side.stage()
            if is_staged:
                machine.staged()
            else:
                self._overtaken()

    def exchange(self) -> None:
        with self._step() as machine:
            if self._limited("exchange", self._side.exchange):
                machine.exchanged()
            else:
                self._overtaken()

    def discard(self) -> None:
        with self._step(is_told=False) as machine:
            self._limited("discard", self._side.discard)
            machine.discarded()

    def clean(self) -> None:
        with self._step() as machine:
            self._limited("clean", self._side.clean)
            machine.cleaned()

    def done(self) -> None:
        self._outcome = None

    def failed(self) -> None:
        self._outcome = self._error

    def _overtaken(self) -> None:
        self._error = CompactionOvertaken(self._side.target)
        self._system.compaction.overtaken()

    def _limited(self, step: str, function: Callable[[], T]) -> T:
        what = f"the step {step!r} of the compaction of {self._side.target}"
        return self._calls.call(what, self._limit, function)

    @contextlib.contextmanager
    def _step(self, *, is_told: bool = True) -> Iterator[Handle[Compaction]]:
        """Answer `broken` where the step raises; not `is_told`: another error is being told."""
        machine = self._system.compaction
        try:
            yield machine
        except CallLate as error:
            if is_told:
                self._error = error
            machine.expire()
        except (EpochgateError, OSError, ValueError) as error:
            if is_told:
                self._error = error
            machine.broken()


_OTHERS: Final = {
    DELTA: "Delta Lake does that itself, also while the job runs: "
    "DeltaTable(path).optimize.compact() in Python, OPTIMIZE in SQL",
    ICEBERG: "Iceberg does that itself, also while the job runs: rewrite_data_files in Spark SQL",
    POSTGRES: "a table of a database has no files of its own",
}


def _require_sensible(wanted: Wanted) -> None:
    if wanted.file_bytes < 1:
        raise UsageError(f"files of {wanted.file_bytes} bytes cannot be; give a size such as 128MB")
    if wanted.min_files < 2:
        raise UsageError(
            f"min_files={wanted.min_files}: a single file is not merged with anything; give 2 or "
            "more"
        )
    if wanted.keep_checkpoints < 0:
        raise UsageError(f"keep_checkpoints={wanted.keep_checkpoints} must not be negative")
