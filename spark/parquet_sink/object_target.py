"""Makes each checkpoint's files visible in an object store, by one conditional PUT of a log entry.

Decides: what the log's entries mean, and whose target it is. Leaves the fence between drivers to
`epochgate.runtime.objects.log`, and to others when a checkpoint may be committed. Lives on the
driver, on the thread that claims and commits. The rules are those of `ParquetTarget`: commits are
idempotent, and one that was interrupted anywhere is completed by asking for it again.

    URL/data/RUN/part-....parquet                  files, written by tasks; visible once committed
    URL/compacted/ID/merged-....parquet            files, merged by a compaction
    URL/_epochgate/log/000000000000017.json        what is visible: claims, commits, withdrawals,
                                                   compactions

Readers of a list of files cannot tell what is committed; `epochgate.read` follows the log.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from epochgate.runtime import SinkStart
from epochgate.runtime.objects.client import ObjectStore, require_conditions
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.objects.log import (
    Entry,
    LogOutcomeUnknown,
    LogTakenOver,
    ObjectLog,
    State,
)
from epochgate.spark.files.evolution import have_common_types, merged
from epochgate.spark.files.layout import describe
from epochgate.spark.parquet_sink.commit_result import CommitResult, result_of_commit
from epochgate.spark.parquet_sink.committable import (
    Committable,
    footer_of,
    schema_id,
    written_schema,
)
from epochgate.spark.parquet_sink.errors import (
    CommitConflict,
    CommitOutOfOrder,
    CommittableDamaged,
    CommittableMissing,
    OutputSchemaChanged,
    TargetAhead,
    TargetBehind,
    TargetCompacted,
    TargetNotEmpty,
    TargetOfAnotherJob,
    TargetTakenOver,
    TargetUnreachable,
)
from epochgate.spark.parquet_sink.gathered import GatheredPart, sorted_entries
from epochgate.spark.parquet_sink.partitions import columns_of

PRODUCT: Final = "epochgate parquet target"
REMEMBERED: Final = 100
"""The newest commits whose contents are kept, to refuse another commit of the same number."""
_PATH: Final = 3
"""The place of a file's path in the plain form of a committable."""
INITIAL: Final[State] = {
    "epoch": 0,
    "last": None,
    "commits": {},
    "files": {},
    "compactor": None,
    "compacted": None,
    "retired": {},
}


def fold(state: State, entry: Entry) -> State:
    """The state of a target's log: files by path, as [checkpoint, rows, bytes, schema,
    directory of the partition]; which compaction may exchange files, up to which checkpoint they
    were merged, and the files that were replaced, with the time. A commit changes the state's own
    containers, whatever their length.
    """
    if entry["kind"] == "compacting":
        return {**state, "compactor": entry["id"]}
    if entry["kind"] == "compact":
        gone = set(entry["remove"])
        kept = {path: one for path, one in state["files"].items() if path not in gone}
        return {
            **state,
            "files": {**kept, **entry["files"]},
            "compacted": entry["upto"],
            "retired": {**retired(state), **dict.fromkeys(entry["remove"], entry["at"])},
        }
    if entry["kind"] == "forget":
        gone = set(entry["paths"])
        left = {path: at for path, at in retired(state).items() if path not in gone}
        return {**state, "retired": left}
    if entry["kind"] == "claim":
        return {**state, **{name: entry[name] for name in ("job", "product", "epoch", "run")}}
    if entry["kind"] == "withdraw":
        after = entry["after"]
        files = {path: one for path, one in state["files"].items() if one[0] <= after}
        commits = {number: one for number, one in state["commits"].items() if int(number) <= after}
        # Merged files are named by the oldest of their checkpoints.
        newest = [one[0] for one in files.values()] + [compacted_upto(state)]
        last = max((number for number in newest if number is not None), default=None)
        return {**state, "files": files, "commits": commits, "last": last}
    files = {} if entry["kind"] == "replace" else state["files"]
    commits = state["commits"]
    files.update(entry["files"])
    commits[str(entry["checkpoint"])] = [entry["run"], entry["digest"]]
    if len(commits) > REMEMBERED:
        del commits[min(commits, key=int)]
    return {**state, "files": files, "last": entry["checkpoint"]}


def retired(state: State) -> dict[str, int]:
    """The files that compactions have replaced: path -> when, in ms since 1970."""
    return dict(state.get("retired") or {})


def compacted_upto(state: State) -> int | None:
    """The newest checkpoint whose files were merged with others; none if none were."""
    upto = state.get("compacted")
    return None if upto is None else int(upto)


class ObjectTarget:
    """A target below a URL as seen by one run of one job; `claim` it first."""

    def __init__(self, objects: ObjectStore, job_id: str, run_id: str) -> None:
        self._objects, self._job_id, self._run_id = objects, job_id, run_id
        self._log = ObjectLog(objects, fold, INITIAL)
        self._agreed: pa.Schema | None = None
        self.path = objects.url

    @property
    def last_committed(self) -> int | None:
        """The newest visible checkpoint; none if there is none."""
        last = self._log.state["last"]
        return None if last is None else int(last)

    def claim(
        self,
        restored_checkpoint: int | None,
        *,
        withdraw_newer: bool = False,
        epoch: int = 0,
        may_begin_late: bool = False,
        staged_by: str = "",
        start: SinkStart | None = None,
        tries_store: bool = True,
    ) -> None:
        """Take the target for this run, which starts from `restored_checkpoint` (none: afresh).

        With `withdraw_newer`, checkpoints newer than the restored one are taken out of the target.
        `epoch`: a start with a lower one than the last is refused. `may_begin_late`: whether the
        target may be new to a job that goes on from a checkpoint. `staged_by`: how the names of the
        runs begin whose tasks may have written to a new target before. `start`: says what the
        target has to hold. `tries_store`: whether it is
        tried that the store honours conditions, in five requests; not where an earlier claim of
        this job has. Raises `ConditionsIgnored`, `ObjectStoreUnusable`, `TargetNotEmpty`,
        `TargetOfAnotherJob`, `TargetTakenOver`, `TargetAhead`, `TargetCompacted`, `TargetBehind`,
        `BehindCheckpoint` or `TargetUnreachable`; nothing is changed then.
        """
        if tries_store:
            require_conditions(self._objects)
        try:
            self._log.refresh()
            self._require_ours(None if may_begin_late else restored_checkpoint, epoch, staged_by)
            known = -1 if restored_checkpoint is None else restored_checkpoint
            last = self.last_committed
            is_ahead = last is not None and last > known
            if is_ahead and not withdraw_newer:
                raise TargetAhead(self.path, last, restored_checkpoint)
            upto = compacted_upto(self._log.state)
            if upto is not None and upto > known:
                raise TargetCompacted(self.path, upto, restored_checkpoint)
            if start is not None and (last is not None or not may_begin_late):
                held = known if is_ahead else last
                start.require_held(f"target {self.path!r}", held)
            claim: dict[str, Any] = {"job": self._job_id, "run": self._run_id, "epoch": epoch}
            self._log.claim(secrets.token_hex(8), {**claim, "product": PRODUCT})
            # A commit may have come in between, of the driver that this claim has stopped.
            last = self.last_committed
            if last is not None and last > known and not withdraw_newer:
                raise TargetAhead(self.path, last, restored_checkpoint)
            if last is not None and last > known:
                self._withdraw(restored_checkpoint, known)
        except LogTakenOver as error:
            raise TargetTakenOver(self.path, self._run_id, error.args[1].get("run")) from error
        except (OSError, ValueError, LogOutcomeUnknown) as error:
            raise TargetUnreachable(self.path, str(error)) from error

    def _withdraw(self, restored_checkpoint: int | None, known: int) -> None:
        def is_whole(state: State) -> bool:
            upto = compacted_upto(state)
            return upto is None or upto <= known

        if not self._log.append({"kind": "withdraw", "after": known}, is_whole):
            upto = compacted_upto(self._log.state)
            raise TargetCompacted(self.path, upto, restored_checkpoint)

    def release(self) -> None:
        """Nothing: the next claim stops this one."""

    def schema(self) -> pa.Schema | None:
        """The Arrow schema of what is visible, for new writers to keep to; none if nothing is.

        Raises `CommittableDamaged` for a file without a footer.
        """
        return schema_of(self._objects, self._log.state["files"])

    def partition_columns(self) -> list[str] | None:
        """The columns that the visible files are partitioned by; none if nothing is visible."""
        one = next(iter(self._log.state["files"].values()), None)
        return None if one is None else columns_of(one[4])

    def commit(
        self,
        checkpoint: int,
        committables: Iterable[Committable],
        gathered: Sequence[GatheredPart] = (),
        *,
        replaces: bool = False,
    ) -> CommitResult:
        """Make the files of a completed checkpoint visible, all at once; repeat it after any error.
        With `replaces`, in the place of all that are. `gathered`: what tasks have looked at and
        passed on, in the place of committables.

        No committables: nothing becomes visible. Raises `TargetTakenOver`, `CommitConflict`,
        `CommitOutOfOrder`, `CommittableMissing`, `CommittableDamaged`, `OutputSchemaChanged` or
        `TargetUnreachable`.
        """
        wanted = sorted(committables)
        entries = sorted_entries(gathered) if gathered else [one.to_list() for one in wanted]
        digest = zlib.crc32("\n".join(one[_PATH] for one in entries).encode())
        try:
            before = self._log.state["commits"].get(str(checkpoint))
            if before is not None and before[1] != digest:
                difference = f"it has other files than the {len(entries)} asked for"
                raise CommitConflict(checkpoint, before[0], difference)
            if before is not None or not (entries or replaces):
                self._log.require_writer()
                return result_of_commit(
                    checkpoint, wanted, already_committed=before is not None, gathered=gathered
                )
            if self.last_committed is not None and checkpoint < self.last_committed:
                raise CommitOutOfOrder(checkpoint, self.last_committed)
            if wanted:
                self._require_one_schema(wanted)
                self._require_intact(wanted, checkpoint)
            if gathered:
                self._require_one_schema([one for part in gathered for one in part.samples])
            files = {path: [checkpoint, *told] for path, *told in map(_visible, entries)}
            kind = "replace" if replaces else "commit"
            entry = {"kind": kind, "checkpoint": checkpoint, "run": self._run_id}
            self._log.append({**entry, "digest": digest, "files": files})
        except LogTakenOver as error:
            raise TargetTakenOver(self.path, self._run_id, error.args[1].get("run")) from error
        except (OSError, LogOutcomeUnknown) as error:
            raise TargetUnreachable(self.path, str(error)) from error
        return result_of_commit(checkpoint, wanted, already_committed=False, gathered=gathered)

    def committed(self) -> list[CommitResult]:
        """Every visible checkpoint of this target, oldest first."""
        found: dict[int, list[list[Any]]] = {}
        for one in self._log.state["files"].values():
            found.setdefault(one[0], []).append(one)
        return [
            CommitResult(
                checkpoint,
                len(files),
                sum(one[1] for one in files),
                sum(one[2] for one in files),
                already_committed=True,
            )
            for checkpoint, files in sorted(found.items())
        ]

    def remove_orphans(self, keep: Iterable[Committable]) -> list[str]:
        """Remove every file that is neither visible nor in `keep`; returns their keys.

        For use after `claim`, before any writer of this run exists; an earlier run can commit none
        of them any more. Raises `TargetUnreachable`.
        """
        state = self._log.state
        kept = {one.path for one in keep} | set(state["files"]) | set(retired(state))
        try:
            orphans = [key for key in self._objects.list("data") if key not in kept]
            for key in orphans:
                self._objects.delete(key)
        except OSError as error:
            raise TargetUnreachable(self.path, str(error)) from error
        return orphans

    def _require_ours(self, restored_checkpoint: int | None, epoch: int, staged_by: str) -> None:
        state = self._log.state
        if self._log.number == 0:
            # A start that died while it tried the store has left something in the folder.
            own = ("_epochgate/", *([f"data/{staged_by}"] if staged_by else []))
            foreign = [key for key in self._objects.list("") if not key.startswith(own)]
            if foreign:
                raise TargetNotEmpty(self.path, foreign[0])
            if restored_checkpoint is not None:
                raise TargetBehind(self.path, restored_checkpoint)
        elif state.get("product") != PRODUCT or state.get("job") != self._job_id:
            raise TargetOfAnotherJob(self.path, str(state.get("job")), self._job_id)
        elif epoch < state["epoch"]:
            raise TargetTakenOver(self.path, self._run_id, state["run"])

    def _require_one_schema(self, wanted: list[Committable]) -> None:
        if self._agreed is None:
            self._agreed = self.schema()
        expected = wanted[0].schema_id if self._agreed is None else schema_id(self._agreed)
        for one in wanted:
            if one.schema_id == expected:
                continue
            agreed = self._agreed or schema_at(self._objects, wanted[0].path)
            found = schema_at(self._objects, one.path)
            if not have_common_types(agreed, found):
                where = f"subtask {one.subtask}, attempt {one.attempt}"
                raise OutputSchemaChanged(describe(agreed), describe(found), where)
            self._agreed = merged([agreed, found], "widen")
            expected = schema_id(self._agreed)

    def _require_intact(self, wanted: list[Committable], checkpoint: int) -> None:
        try:
            sizes = self._objects.sizes([one.path for one in wanted])
        except FileNotFoundError as error:
            raise CommittableMissing(f"{self.path}/{error.filename}", checkpoint) from None
        for one, size_bytes in zip(wanted, sizes, strict=True):
            if size_bytes != one.size_bytes:
                found, expected = f"{size_bytes} bytes", f"{one.size_bytes} bytes"
                raise CommittableDamaged(f"{self.path}/{one.path}", expected, found)


def _visible(entry: Sequence[Any]) -> list[Any]:
    """Of a committable's plain form: path, rows, bytes, schema, directory of the partition."""
    _, _, _, path, rows, size_bytes, _, schema, *directory = entry
    return [path, rows, size_bytes, schema, *(directory or [""])]


def schema_of(objects: ObjectStore, files: Mapping[str, Sequence[Any]]) -> pa.Schema | None:
    """The schema of all these files, as the log's state has them; none if there are none.

    Reads a footer for each schema that they have. Raises `CommittableDamaged` for a file without.
    """
    of_each = {one[3]: path for path, one in files.items()}
    schemas = [schema_at(objects, path) for path in of_each.values()]
    return merged(schemas, "widen") if schemas else None


def schema_at(objects: ObjectStore, path: str) -> pa.Schema:
    """The schema of the batches that the file was written from. Raises CommittableDamaged."""
    size_bytes = objects.size(path)
    footer = footer_of(ObjectFiles(objects), path, size_bytes)
    if footer is None:
        found = f"{size_bytes} bytes"
        raise CommittableDamaged(f"{objects.url}/{path}", "a Parquet file", found)
    return written_schema(pa.BufferReader(footer))
