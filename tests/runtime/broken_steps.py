"""A sink that commits in several steps, and sinks that get one of them wrong, for the certification
kit to refuse.

A task's committer writes each row to a file, and a manifest of each checkpoint names the files that
can be seen.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from epochgate.runtime import (
    AheadOfCheckpoint,
    CombiningCommitter,
    CommitRequest,
    CommittableBatch,
    CommittableOperator,
    Committables,
    Committer,
    OperatorContext,
    Sink,
    SinkStart,
    SinkWriter,
    TaskCommitter,
)
from epochgate.testing import SinkCase
from tests.runtime.broken_sinks import InlineWriter, all_rows


class RowFiles(TaskCommitter):
    """Writes a committable, a name and a row, to the file of that name, by one rename."""

    def __init__(self, place: Path, context: OperatorContext) -> None:
        self.parts = place / "parts"
        self.parts.mkdir(exist_ok=True)
        self.own = f"{context.run_id}-{context.subtask}-{context.attempt}"

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        for request in requests:
            self.write(*request.committable)

    def write(self, name: str, row: Any) -> None:
        unfinished = self.parts / f"unfinished-{self.own}"
        unfinished.write_text(json.dumps(row) + "\n")
        os.rename(unfinished, self.parts / name)


class Naming(CommittableOperator):
    """Gives each row of the job the next number for its name."""

    parallelism = 1

    def open(self, state: bytes | None) -> None:
        self.next = int(state or 0)

    def process(self, batch: CommittableBatch) -> Committables:
        named: Committables = {}
        for subtask, rows in sorted(batch.committables.items()):
            named[subtask] = [[f"{self.next + n}", row] for n, row in enumerate(rows)]
            self.next += len(rows)
        return named

    def snapshot(self) -> bytes:
        return str(self.next).encode()


class Names(CommittableOperator):
    """Passes the names alone on."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def process(self, batch: CommittableBatch) -> Committables:
        return {s: [name for name, _ in rows] for s, rows in batch.committables.items()}


class Manifests(CombiningCommitter):
    """Shows a checkpoint by one manifest of its files; one driver at a time has the place."""

    def __init__(self, place: Path, start: SinkStart) -> None:
        self.place, self.out = place, place / "out"
        self.out.mkdir(exist_ok=True)
        self.lock = (place / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.withdraw(start)
        except BaseException:
            self.lock.close()
            raise

    def withdraw(self, start: SinkStart) -> None:
        restored = start.restored_checkpoint or 0
        newest_first = sorted((int(path.stem) for path in self.out.iterdir()), reverse=True)
        for number in (number for number in newest_first if number > restored):
            if not start.may_withdraw:
                raise AheadOfCheckpoint(str(self.out), number, restored)
            (self.out / f"{number}.json").unlink()

    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return all_rows(committables)

    def commit_combined(self, checkpoint_id: int, combined: Any) -> None:
        self.show(str(checkpoint_id), combined)

    def show(self, name: str, files: Any) -> None:
        unfinished = self.place / "unfinished"
        unfinished.write_text(json.dumps(files))
        os.rename(unfinished, self.out / f"{name}.json")

    def close(self) -> None:
        self.lock.close()


class Stepped(SinkCase):
    """All steps are right."""

    writer: ClassVar[type[InlineWriter]] = InlineWriter
    naming: ClassVar[type[CommittableOperator]] = Naming
    task_committer: ClassVar[type[RowFiles]] = RowFiles
    names: ClassVar[type[Names]] = Names
    committer: ClassVar[type[Manifests]] = Manifests

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        return rows

    def sink(self, place: Path) -> Sink:
        return SteppedSink(str(place), type(self))

    def rows(self, place: Path) -> Iterator[Any]:
        for manifest in sorted(place.glob("out/*.json")):
            for name in json.loads(manifest.read_text()):
                for line in (place / "parts" / name).read_text().splitlines():
                    yield json.loads(line)


@dataclass(frozen=True)
class SteppedSink(Sink):
    place: str
    case: type[Stepped]

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return self.case.writer()

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        return self.case.task_committer(Path(self.place), context)

    def create_committer(self, start: SinkStart) -> Committer:
        return self.case.committer(Path(self.place), start)

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return [self.case.naming()]

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return [self.case.names(Path(self.place))]


class UnseenRowFiles(RowFiles):
    """Writes as a library in C does: by calls that the kit does not see."""

    def write(self, name: str, row: Any) -> None:
        subprocess.run(
            ["/bin/sh", "-c", 'cat > "$0"', str(self.parts / name)],
            input=json.dumps(row).encode() + b"\n",
            check=True,
        )


class AppendingRowFiles(RowFiles):
    def write(self, name: str, row: Any) -> None:
        with (self.parts / name).open("a") as file:
            file.write(json.dumps(row) + "\n")


class AppendsInItsTask(Stepped):
    """A task that died behind its commit commits again, and the file has the row twice."""

    task_committer = AppendingRowFiles


class ForgetfulNaming(Naming):
    def snapshot(self) -> bytes:
        return b""


class NamesFromTheStart(Stepped):
    """The operator that gives names has no state: after a failure it begins with the names of files
    that can be seen.
    """

    naming = ForgetfulNaming


class SeenNames(Names):
    def process(self, batch: CommittableBatch) -> Committables:
        for subtask in batch.committables:
            seen = self.place / f"seen-{batch.checkpoint_id}-{subtask}"
            if seen.exists():
                return {}
            seen.touch()
        return super().process(batch)


class DropsWhatIsRepeated(Stepped):
    """The operator behind the committer drops what it was given before, and a failure repeats what
    has not come through.
    """

    names = SeenNames


class NumberedManifests(Manifests):
    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return [len(list(self.out.iterdir())) + 1, *super().combine(checkpoint_id, committables)]

    def commit_combined(self, checkpoint_id: int, combined: Any) -> None:
        number, *files = combined
        self.show(str(number), files)


class NumbersItsManifests(Stepped):
    """The manifest of a checkpoint is another one when it is combined again: it has the number of
    those that there are.
    """

    committer = NumberedManifests


class FirstManifests(Manifests):
    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return committables[min(committables)] if committables else []


class CombinesOneSubtask(Stepped):
    """The manifest names the files of one subtask."""

    committer = FirstManifests


class WholeWriter(InlineWriter):
    """Hands over all rows of a checkpoint as one committable: what is written, and what is left."""

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        rows = super().prepare_commit(checkpoint_id)
        return [[[], rows]] if rows else []


class WholeNaming(CommittableOperator):
    """The files of these are named by their rows."""

    parallelism = 1

    def process(self, batch: CommittableBatch) -> Committables:
        return batch.committables


class WholeNames(Names):
    def process(self, batch: CommittableBatch) -> Committables:
        return {
            subtask: [name for written, _ in values for name in written]
            for subtask, values in batch.committables.items()
        }


class HalfOfIt(RowFiles):
    """Commits half of the rows with each call, and hands back what is left."""

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        for request in requests:
            written, rows = request.committable
            half = (len(rows) + 1) // 2
            for row in rows[:half]:
                self.write(str(row["number"]), row)
            if rows:
                names = [str(row["number"]) for row in rows[:half]]
                request.update_and_retry_later(self.rest(written, names, rows))

    def rest(self, written: list[str], names: list[str], rows: list[Any]) -> Any:
        return [[*written, *names], rows[len(names) :]]


class CommitsInParts(Stepped):
    """A committable is committed in parts, one with each call, and in fewer calls than the job
    allows tries.
    """

    writer, naming, names, task_committer = WholeWriter, WholeNaming, WholeNames, HalfOfIt


class KeepsHalf(HalfOfIt):
    def rest(self, written: list[str], names: list[str], rows: list[Any]) -> Any:
        return [[*written, *names], rows if not written else rows[len(names) :]]


class LeavesThePartInTheRest(CommitsInParts):
    """The rest that is handed back has the committed part, which is then committed again."""

    task_committer = KeepsHalf


class LosesHalf(HalfOfIt):
    def rest(self, written: list[str], names: list[str], rows: list[Any]) -> Any:
        return [[*written, *names], []]


class HandsBackNoRest(CommitsInParts):
    """The rest that is handed back is the part that is committed alone."""

    task_committer = LosesHalf
