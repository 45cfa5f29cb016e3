"""Compacting a target in an object store: one entry of its log removes files and adds others.

Decides what takes the place of locks and exchanges. A compaction that has something to merge writes
its name into the log first; its exchange is a conditional PUT of an entry, valid only while the log
names it and still has the files that were merged. So a compaction that was taken for dead can
exchange nothing any more, and what it has left may be removed. Replaced objects stay for those who
began to read before, and are removed by a later compaction.

    URL/compacted/ID/merged-000001-000000.parquet

Leaves to the machine which step is next. Runs where the command runs, on one thread.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from epochgate.runtime.objects.client import ObjectStore, require_conditions
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.objects.log import ObjectLog, State
from epochgate.spark.compaction.errors import CompactionReplaced, NothingThere, RowsMissing
from epochgate.spark.compaction.merging import Merger, Source
from epochgate.spark.compaction.plan import Merge, Plan, Wanted, plan
from epochgate.spark.files.checkpoint_directory import merged_name
from epochgate.spark.files.object_file import ObjectFile
from epochgate.spark.parquet_sink.object_target import (
    INITIAL,
    PRODUCT,
    compacted_upto,
    fold,
    retired,
    schema_of,
)
from epochgate.spark.parquet_sink.partitions import columns_of
from epochgate.spark.parquet_sink.tree import VisibleFile

FOLDER: Final = "compacted"
WHOLE_BYTES: Final = 32 << 20
"""The size up to which an object is read by one request."""


class ObjectCompaction:
    """The steps of one compaction of one target. `keep_for_s`: how long replaced objects stay;
    now: the time in seconds since 1970.
    """

    def __init__(
        self, objects: ObjectStore, wanted: Wanted, keep_for_s: float, now: Callable[[], float]
    ) -> None:
        self.target = objects.url
        self.planned = Plan()
        self.built: Sequence[VisibleFile] = ()
        self._objects, self._wanted = objects, wanted
        self._keep_for_s, self._now = keep_for_s, now
        self._log = ObjectLog(objects, fold, INITIAL)
        self._id = secrets.token_hex(8)
        self._tries = 0
        self._entry: dict[str, Any] = {}

    @property
    def retired(self) -> int:
        """The number of replaced objects that are still there."""
        return len(retired(self._log.state))

    def open(self) -> None:
        """Look whether there is a target. Raises NothingThere, OSError, or ValueError for a log
        that is damaged.
        """
        self._log.refresh()
        if self._log.state.get("product") != PRODUCT:
            raise NothingThere(self.target)

    def close(self) -> None:
        """Nothing: the next compaction stops this one."""

    def plan(self) -> Plan:
        """Look at the log. Raises OSError or ValueError."""
        self._log.refresh()
        files: dict[int, list[VisibleFile]] = {}
        for path, one in self._log.state["files"].items():
            checkpoint, rows, size_bytes, schema, directory = one
            file = VisibleFile(checkpoint, directory, path, rows, size_bytes, None, schema)
            files.setdefault(checkpoint, []).append(file)
        self.planned = plan(files, sorted(files), self._wanted, is_listed=False)
        return self.planned

    def stage(self) -> bool:
        """Name this compaction in the log, and write the merged files; false if that cannot be done
        because some of those to be merged are not visible any more.

        Raises CompactionReplaced, ConditionsIgnored, ObjectStoreUnusable, CommittableDamaged,
        RowsMissing, LogOutcomeUnknown, OSError or ValueError.
        """
        require_conditions(self._objects)
        self._log.append_beside(self._id, {"kind": "compacting", "id": self._id}, lambda _: True)
        self._tries += 1
        if not self._has_merged(self._log.state):
            return False  # the job may have gone back behind all files, and there is no schema
        schema = schema_of(self._objects, self._log.state["files"])
        columns = columns_of(self.planned.merges[0].directory)
        files = ObjectFiles(self._objects)
        merger = Merger(files, schema, columns, self._wanted.file_bytes)
        built: list[VisibleFile] = []
        try:
            for merge in self.planned.merges:
                built += self._merged(merge, merger, len(built))
        except (OSError, ValueError) as error:
            # The next compaction removes what this one writes.
            self._log.refresh()
            if not self._is_current(self._log.state):
                raise CompactionReplaced(self.target) from error
            if self._has_merged(self._log.state):
                raise
            return False
        upto = [self.planned.covered[-1], compacted_upto(self._log.state)]
        self._entry = {
            "kind": "compact",
            "id": self._id,
            "remove": self._merged_names(),
            "files": {
                file.name: [
                    file.checkpoint,
                    file.rows,
                    file.size_bytes,
                    file.schema_id,
                    file.directory,
                ]
                for file in built
            },
            "upto": max(number for number in upto if number is not None),
        }
        large = (file for merge in self.planned.merges for file in merge.large)
        self.built = [*built, *large]
        return True

    def exchange(self) -> bool:
        """Append the entry; false if the files that were merged are not all visible any more.

        Raises CompactionReplaced, LogOutcomeUnknown, OSError or ValueError.
        """
        entry = {**self._entry, "at": int(self._now() * 1000)}
        if self._log.append_beside(self._id, entry, self._may_exchange):
            return True
        if not self._is_current(self._log.state):
            raise CompactionReplaced(self.target)
        return False

    def discard(self) -> None:
        """Remove what was staged. Raises OSError."""
        for key in self._objects.list(f"{FOLDER}/{self._id}"):
            self._objects.delete(key)

    def clean(self) -> None:
        """Remove objects that were replaced long enough ago, and what dead compactions have left.

        Raises LogOutcomeUnknown, OSError or ValueError.
        """
        # In this order: who writes is named in the log before the first object is there.
        keys = self._objects.list(FOLDER)
        self._log.refresh()
        state = self._log.state
        kept = set(state["files"]) | set(retired(state))
        for key in keys:
            # That of the last compaction may be of one that is under way.
            is_dead = key.split("/")[1] != state.get("compactor")
            if key not in kept and (is_dead or self._is_current(state)):
                self._objects.delete(key)
        since = (self._now() - self._keep_for_s) * 1000
        due = sorted(path for path, at in retired(state).items() if at <= since)
        for path in due:
            self._objects.delete(path)
        if due:
            self._log.append_beside(self._id, {"kind": "forget", "paths": due}, lambda _: True)

    def _merged(self, merge: Merge, merger: Merger, so_far: int) -> list[VisibleFile]:
        def path_of(number: int) -> str:
            return f"{FOLDER}/{self._id}/{merged_name(self._tries, so_far + number)}"

        sources = [Source(file, file.name, self._opened) for file in merge.small]
        built = [
            VisibleFile(merge.checkpoint, merge.directory, path, rows, size_bytes, None, schema)
            for path, rows, size_bytes, _, schema in merger.merge(sources, path_of)
        ]
        expected, found = sum(f.rows for f in merge.small), sum(f.rows for f in built)
        if found != expected:
            raise RowsMissing(f"{self.target}/{path_of(0)}", expected, found)
        return built

    def _is_current(self, state: State) -> bool:
        return bool(state.get("compactor") == self._id)

    def _may_exchange(self, state: State) -> bool:
        return self._is_current(state) and self._has_merged(state)

    def _has_merged(self, state: State) -> bool:
        """Return whether all files that are merged are visible."""
        return all(name in state["files"] for name in self._merged_names())

    def _merged_names(self) -> list[str]:
        return [file.name for merge in self.planned.merges for file in merge.small]

    def _opened(self, path: str) -> Any:
        status = self._objects.status(path)
        if status.size_bytes <= WHOLE_BYTES:
            return pa.BufferReader(self._objects.get(path))
        return pa.PythonFile(ObjectFile(self._objects, status), mode="r")
