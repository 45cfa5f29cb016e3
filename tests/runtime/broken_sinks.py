"""Sinks that are wrong, each as a public one was, for the certification kit to refuse.

Each is right in all but what its bug is about, as far as its bug allows.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from epochgate.runtime import (
    AheadOfCheckpoint,
    Committables,
    Committer,
    OperatorContext,
    Sink,
    SinkStart,
    SinkWriter,
)
from epochgate.testing import SinkCase


class Batches(SinkCase):
    """Gives rows as they are, and reads the JSON lines of `out`."""

    committer: ClassVar[type[FileCommitter]]

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        return rows

    def sink(self, place: Path) -> Sink:
        return InlineSink(str(place), self.committer)

    def rows(self, place: Path) -> Iterator[Any]:
        for path in sorted(place.glob("out/*.json")):
            for line in path.read_text().splitlines():
                yield json.loads(line)


class InlineWriter(SinkWriter):
    """Hands over the rows themselves, so that nothing can be wrong on this side."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, batch: Any) -> None:
        self.rows += batch

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows, self.rows = self.rows, []
        return rows


@dataclass(frozen=True)
class InlineSink(Sink):
    place: str
    committer: type[FileCommitter]

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return InlineWriter()

    def create_committer(self, start: SinkStart) -> Committer:
        return self.committer(Path(self.place), start)


class FileCommitter(Committer):
    def __init__(self, place: Path, start: SinkStart) -> None:
        self.place, self.start, self.out = place, start, place / "out"
        self.out.mkdir(exist_ok=True)
        if self.newest() > (start.restored_checkpoint or 0):
            raise AheadOfCheckpoint(str(self.out), self.newest(), start.restored_checkpoint)

    def newest(self) -> int:
        return max((int(path.stem.partition("-")[0]) for path in self.out.iterdir()), default=0)

    def show(self, name: str, rows: list[Any]) -> None:
        """Show a file by one rename."""
        unfinished = self.place / f"unfinished-{self.start.run_id}"
        unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.rename(unfinished, self.out / f"{name}.json")

    def read(self, name: str, default: Any) -> Any:
        path = self.place / name
        return json.loads(path.read_text()) if path.exists() else default

    def keep(self, name: str, value: Any) -> None:
        unfinished = self.place / f"unfinished-{self.start.run_id}"
        unfinished.write_text(json.dumps(value))
        os.rename(unfinished, self.place / name)


def all_rows(committables: Committables) -> list[Any]:
    return [row for subtask in sorted(committables) for row in committables[subtask]]


class AppendsInCommitCommitter(FileCommitter):
    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        text = "".join(json.dumps(row) + "\n" for row in all_rows(committables))
        with open(self.out / f"{checkpoint_id}.json", "a", encoding="utf-8") as file:
            file.write(text)


class AppendsInCommit(Batches):
    """The streaming sink of Spark's tutorial of the Python Data Source API: `commit` opens the file
    of its batch id with mode "a" (python_data_source.rst), and Spark commits a batch again.
    """

    committer = AppendsInCommitCommitter


class RemembersTheLastTenCommitter(FileCommitter):
    """A snapshot is a file of the next number, which only one driver can create."""

    remembered = 10

    def newest(self) -> int:
        return max(self.snapshots(), default=0)

    def snapshots(self) -> list[int]:
        paths = sorted(self.out.glob("*.json"))
        return [json.loads(path.read_text())["checkpoint"] for path in paths]

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        unfinished = self.place / f"unfinished-{self.start.run_id}"
        rows = all_rows(committables)
        unfinished.unlink(missing_ok=True)  # it may be linked
        unfinished.write_text(json.dumps({"checkpoint": checkpoint_id, "rows": rows}))
        while checkpoint_id not in (snapshots := self.snapshots())[-self.remembered :]:
            with contextlib.suppress(FileExistsError):  # another driver was first: look again
                os.link(unfinished, self.out / f"{len(snapshots):04d}.json")


class RemembersTheLastTen(Batches):
    """Recognizes a replay by the latest snapshots alone, as Paimon's Spark sink does (Paimon #9666:
    "replay recognition remains bounded by retained snapshot history").
    """

    committer = RemembersTheLastTenCommitter

    def rows(self, place: Path) -> Iterator[Any]:
        for path in sorted(place.glob("out/*.json")):
            yield from json.loads(path.read_text())["rows"]


class PutsItsWatermarkCommitter(RemembersTheLastTenCommitter):
    remembered = 1


class PutsItsWatermark(RemembersTheLastTen):
    """Recognizes a replay by the checkpoint committed last, which a replay of an older one sets
    back, as Iceberg's Kafka Connect sink put offsets where it should take the maximum
    (Iceberg #17340: 149 files twice).
    """

    committer = PutsItsWatermarkCommitter


class KeyedByRunCommitter(FileCommitter):
    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        name = f"{checkpoint_id}-{self.start.run_id}"
        if not (self.out / f"{name}.json").exists():
            self.show(name, all_rows(committables))


class KeyedByRun(Batches):
    """Recognizes a replay by run and checkpoint, and a restored job has another run, as Iceberg's
    Flink sink has the job id in its key (Iceberg #16008).
    """

    committer = KeyedByRunCommitter


class FileByFileCommitter(FileCommitter):
    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        for subtask, rows in sorted(committables.items()):
            self.show(f"{checkpoint_id}-{subtask}", rows)


class FileByFile(Batches):
    """Shows one file after the other, as version 2 of Hadoop's FileOutputCommitter moves the files
    of tasks (MAPREDUCE-7282, SPARK-33019).
    """

    committer = FileByFileCommitter


class RecordsNothingEmptyCommitter(FileCommitter):
    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        last = self.read("last", 0)
        if checkpoint_id <= last or not (rows := all_rows(committables)):
            return
        if checkpoint_id != last + 1:
            raise RuntimeError(f"checkpoint {last + 1} was never committed")
        self.show(str(checkpoint_id), rows)
        self.keep("last", checkpoint_id)


class RecordsNothingEmpty(Batches):
    """Does not record a checkpoint without rows, and then misses it for ever, as RisingWave's sink
    coordinator acknowledged an empty pre-commit without storing it (RisingWave #26492).
    """

    committer = RecordsNothingEmptyCommitter


class TwoCoordinatorsCommitter(FileCommitter):
    def newest(self) -> int:
        return int(self.read("table", {"last": 0})["last"])

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        table = self.read("table", {"last": 0, "rows": []})
        if checkpoint_id > table["last"]:
            rows = [*table["rows"], *all_rows(committables)]
            self.keep("table", {"last": checkpoint_id, "rows": rows})


class TwoCoordinators(Batches):
    """Reads the table's state, and writes it back without a look at who wrote it meanwhile, as two
    coordinators of Hudi both commit while the older one closes (Hudi #19357).
    """

    committer = TwoCoordinatorsCommitter

    def rows(self, place: Path) -> Iterator[Any]:
        table = place / "table"
        yield from json.loads(table.read_text())["rows"] if table.exists() else []


class WritesWithoutAttempt(Batches):
    """Names files by subtask and not by attempt, so that a replaced attempt writes over those of
    its successor, as with Spark's direct output committer (SPARK-10063, SPARK-27194).
    """

    def sink(self, place: Path) -> Sink:
        return DirectSink(str(place))

    def rows(self, place: Path) -> Iterator[Any]:
        for manifest in sorted(place.glob("out/*.json")):
            for name in json.loads(manifest.read_text()):
                for line in (place / name).read_text().splitlines():
                    yield json.loads(line)


@dataclass(frozen=True)
class DirectSink(Sink):
    place: str

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return DirectWriter(self.place, context.subtask)

    def create_committer(self, start: SinkStart) -> Committer:
        return DirectCommitter(Path(self.place), start)


class DirectWriter(InlineWriter):
    def __init__(self, place: str, subtask: int) -> None:
        super().__init__()
        self.place, self.subtask = place, subtask

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows = super().prepare_commit(checkpoint_id)
        if not rows:
            return []
        name = f"part-{self.subtask}-{checkpoint_id}"
        (Path(self.place) / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [name]


class DirectCommitter(FileCommitter):
    """One manifest shows all files of a checkpoint, which stay where they are."""

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.keep(f"out/{checkpoint_id}.json", all_rows(committables))


class GoesOnRegardlessCommitter(FileCommitter):
    def newest(self) -> int:
        return 0

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        if not (self.out / f"{checkpoint_id}.json").exists():
            self.show(str(checkpoint_id), all_rows(committables))


class GoesOnRegardless(Batches):
    """Goes on from an older checkpoint without a look at what is visible, as Iceberg's Flink sink
    did, which then skips or doubles (Iceberg #10892).
    """

    committer = GoesOnRegardlessCommitter


class WithdrawsUnaskedCommitter(GoesOnRegardlessCommitter):
    def __init__(self, place: Path, start: SinkStart) -> None:
        super().__init__(place, start)
        for path in sorted(self.out.iterdir(), reverse=True):
            if int(path.stem) > (start.restored_checkpoint or 0):
                path.unlink()


class WithdrawsUnasked(Batches):
    """Takes away what is visible where the start has no leave to, and its checkpoints are there."""

    committer = WithdrawsUnaskedCommitter


class RefusesTooLateCommitter(WithdrawsUnaskedCommitter):
    def __init__(self, place: Path, start: SinkStart) -> None:
        (place / "out").mkdir(exist_ok=True)
        newer = [int(path.stem) for path in (place / "out").iterdir()]
        super().__init__(place, start)
        if max(newer, default=0) > (start.restored_checkpoint or 0):
            raise AheadOfCheckpoint(str(place), max(newer), start.restored_checkpoint)


class RefusesTooLate(Batches):
    """Refuses a start from an older checkpoint when it has withdrawn something already."""

    committer = RefusesTooLateCommitter


class RefusesForNoReasonCommitter(GoesOnRegardlessCommitter):
    def __init__(self, place: Path, start: SinkStart) -> None:
        super().__init__(place, start)
        if start.may_withdraw:
            raise AheadOfCheckpoint(str(place), 0, start.restored_checkpoint)


class RefusesForNoReason(Batches):
    """Refuses each start after a loss of checkpoints, also where nothing newer is visible."""

    committer = RefusesForNoReasonCommitter


class FailsToGoBackCommitter(GoesOnRegardlessCommitter):
    def __init__(self, place: Path, start: SinkStart) -> None:
        super().__init__(place, start)
        if any(int(path.stem) > (start.restored_checkpoint or 0) for path in self.out.iterdir()):
            raise KeyError("checkpoint")


class FailsToGoBack(Batches):
    """Ends with an error that says nothing of an older checkpoint."""

    committer = FailsToGoBackCommitter
