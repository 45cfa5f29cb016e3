"""Compactions of a target in an object store: the shell, the job and a reader that run in
production, over a store in memory that fails as the schedule tells.

The reader reads the log at one moment, and replaced objects stay for a day. So walks leave out the
steps at which the model lists or opens what a compaction has replaced since; instead, what the
reader has found is held to be there. A compaction with nothing to merge does not stop the one
before it, whose objects it leaves: there walks do not clean up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.models.closed.surroundings.compaction import LISTING
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.objects.log import FOLDER as LOG, LogOutcomeUnknown, ObjectLog, State
from epochgate.spark.compaction import compact
from epochgate.spark.compaction.objects import FOLDER
from epochgate.spark.parquet_sink import ObjectTarget, StagingWriter
from epochgate.spark.parquet_sink.object_target import INITIAL, compacted_upto, fold, retired
from tests.playing.compacting import EXCHANGED, Compacting, Compactor, Reader
from tests.playing.stage import Act
from tests.playing.store import DENY
from tests.runtime.objects.stores import Memory

TARGET: Final = "s3://bucket/target"


class StruckObjects:
    """The objects of a process, which fail where the schedule says so."""

    def __init__(self, process: Compactor, inner: ObjectStore) -> None:
        self._process, self._inner = process, inner
        self.url = inner.url

    def __getattr__(self, name: str) -> Callable[..., Any]:
        request = getattr(self._inner, name)

        def ask(key: str, *arguments: Any, **options: Any) -> Any:
            self._strike(name, key)
            found = request(key, *arguments, **options)
            if name == "create" and key.startswith(LOG) and self._process.is_busy:
                self._stand(json.loads(arguments[0])["kind"])
            return found

        return ask

    def _strike(self, name: str, key: str) -> None:
        # A step that merges fails once it has named itself in the log.
        is_struck = self._process.step != "stage" or key.startswith(FOLDER)
        if self._process.outcome == DENY and is_struck:
            raise OSError(f"the store fails in {name}")

    def _stand(self, kind: str) -> None:
        if kind == "compact":
            self._process.stand(EXCHANGED, ())
            self._strike("create", LOG)


class ObjectCompactor(Compactor):
    """A process that runs the command once."""

    failures: ClassVar[tuple[type[Exception], ...]] = (*Compactor.failures, LogOutcomeUnknown)
    world: CompactingObjects

    def compact(self, keep_checkpoints: int) -> Any:
        def opened(url: str) -> Any:
            return StruckObjects(self, self.world.memory.open(url))

        return compact(TARGET, keep_checkpoints=keep_checkpoints, open_objects=opened)


class LogReader(Reader):
    """Reads the log, and opens the files of one checkpoint after the other."""

    _world: CompactingObjects

    def list_root(self) -> None:
        self.state, self.rooted = LISTING, self._world.committed
        self.found = self.shown()

    def shown(self) -> dict[int, list[str]]:
        """Return what the log shows now of the checkpoints that it had when it was read."""
        return {k: self._world.files(k) for k in range(self.rooted)}

    def look_at(self, at: int) -> None:
        """The log has told of all checkpoints at once."""


class CompactingObjects(Compacting):
    """The world of `CompactingJob`, with a target in an object store."""

    compactor = ObjectCompactor
    reader: LogReader
    _job: Any

    def _make_target(self) -> None:
        self.memory, self.reader = Memory(), LogReader(self)
        self.objects = self.memory.open(TARGET)
        self._rows: dict[str, list[int]] = {}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        yield from super().facts()
        replaced = retired(self.state())
        found = [path for files in self.reader.found.values() for path in files]
        there = self.objects.list("data")
        lost = [path for path in found if path in replaced and path not in there]
        yield "replaced objects that a reader has found and cannot open", [], lost

    def state(self) -> State:
        """Return what the log says now."""
        log = ObjectLog(self.objects, fold, INITIAL)
        log.refresh()
        return log.state

    def files(self, k: int) -> list[str]:
        files = self.state()["files"].items()
        return sorted(path for path, one in files if one[0] == k + 1)

    def rows_in(self, file: str) -> list[int]:
        data = pa.BufferReader(self.objects.get(file))
        rows: list[int] = pq.read_table(data, columns=["x"])["x"].to_pylist()
        return rows

    def tree(self) -> int:
        """Return how many compactions the log has."""
        entries = (json.loads(self.objects.get(key)) for key in self.objects.list(LOG))
        return sum(entry["kind"] == "compact" for entry in entries)

    def is_staged(self) -> bool:
        """Return whether objects of the compaction that is named in the log are in no version of
        it.
        """
        state = self.state()
        shown = {*state["files"], *retired(state)}
        return any(key not in shown for key in self.objects.list(f"{FOLDER}/{state['compactor']}"))

    def _claim(self) -> None:
        self._job = ObjectTarget(self.objects, "job", f"run{self.withdrawals}")
        self._job.claim(self.committed or None, withdraw_newer=True, tries_store=False)
        self._job.remove_orphans([])

    def commit(self) -> None:
        checkpoint = self.committed + 1
        run, files = f"run{self.withdrawals}", ObjectFiles(self.objects)
        writer = StagingWriter("", run, 0, attempt=checkpoint, files=files, in_place=True)
        row = self.row(self.committed, self.version[self.committed])
        writer.write(pa.RecordBatch.from_pydict({"x": [row]}))
        self._job.commit(checkpoint, writer.prepare_commit(checkpoint))
        self.committed += 1

    def may_withdraw(self) -> bool:
        is_merged = (compacted_upto(self.state()) or 0) >= self.committed
        return self.withdrawals < self.system.W and self.committed > 0 and not is_merged

    def _end(self) -> None:
        """The process that has hung goes on without a lock, and is stopped by the next one."""

    def has_found_otherwise(self) -> bool:
        """Return whether what is listed now is not what the log has shown to the reader."""
        return self.reader.found != self.reader.shown()

    def opens_what_was_replaced(self) -> bool:
        replaced = retired(self.state())
        return any(path in replaced for path in self.reader.found.get(self.reader.at, ()))

    def leaves_what_is_staged(self) -> bool:
        """Return whether the compaction is not named in the log, and another has left something."""
        return self.is_staged() and not self.busy().has_staged

    acts: ClassVar[Mapping[str, Act]] = {
        **Compacting.acts,
        "target.commit": replace(Compacting.acts["target.commit"], do=commit, is_apart=None),
        "target.withdraw": replace(
            Compacting.acts["target.withdraw"], is_there=may_withdraw, is_apart=None
        ),
        "process.tidy": replace(Compacting.acts["process.tidy"], is_apart=leaves_what_is_staged),
        "reader.list_next": replace(
            Compacting.acts["reader.list_next"], is_apart=has_found_otherwise
        ),
        "reader.open_next": replace(
            Compacting.acts["reader.open_next"], is_apart=opens_what_was_replaced
        ),
    }
