"""A coordinator commits files to a table, as sink coordinators of lakehouse formats do.

Tasks write rows into files, and tell the coordinator of each file by an event. The coordinator
collects these events, holds them in its state, and writes one entry into the table's log when a
checkpoint is complete: the files that the tasks have finished before it. After a failure it writes
that entry again, with the same name and the same files. A reader sees what the log names.

A task keeps each file in its own state until it has the receipt of its event: then the file is in
the coordinator's state of the same checkpoint. Run it again after a kill, and it goes on:

    python examples/committing_coordinator.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgpack

from epochgate import runtime
from epochgate.runtime import DirectoryCheckpointStore
from epochgate.spark import local_session, run_job

TASKS, ROWS, PER_FILE = 3, 400, 30


class Table(runtime.OperatorCoordinator):
    """On the driver: the only one that writes the log. `files`: name -> subtask, and the checkpoint
    behind which the file was finished; the next one that is complete commits it.
    """

    def __init__(self, log: Path, context: runtime.CoordinatorContext) -> None:
        self.log, self.context = log, context
        self.committed = self.confirmed = 0
        self.files: dict[str, list[int]] = {}
        self.waits_for: set[int] = set()

    def start(self) -> None:
        """It has nothing to begin with."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        is_restored, files = event
        for name, behind in files.items():
            if behind >= self.committed:  # the others are committed, and told a second time
                self.files[name] = [subtask, behind]
        self.waits_for -= {subtask} if is_restored else set()
        if not self.waits_for:  # the restored checkpoint is whole again
            self.commit(self.confirmed)

    def commit(self, checkpoint: int) -> None:
        """Write one entry, once; a slow log is written by `run_async`, with its files in `files`
        until that is done.
        """
        if checkpoint <= self.committed:
            return
        held = {name for name, (_, behind) in self.files.items() if behind < checkpoint}
        new = self.log / f"{checkpoint:06d}.new"
        new.write_text(json.dumps(sorted(held)))
        new.rename(new.with_suffix(".json"))  # the same entry again changes nothing
        self.committed = checkpoint
        self.files = {name: told for name, told in self.files.items() if name not in held}

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.commit(checkpoint_id)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(msgpack.packb([self.committed, self.files]))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.committed, self.files = msgpack.unpackb(state) if state else (0, {})
        self.confirmed, self.waits_for = checkpoint_id, set(range(self.context.parallelism))

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        for name, (of, behind) in list(self.files.items()):
            if of == subtask and behind >= checkpoint_id:
                del self.files[name]  # its rows are written again


class TableProvider(runtime.CoordinatorProvider):
    operator_id = "table"

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.log.mkdir(parents=True, exist_ok=True)

    def create(self, context: runtime.CoordinatorContext) -> Table:
        return Table(self.log, context)


class Writer(runtime.Program, runtime.Operator):
    """In each task: the program, which is its own and only operator."""

    def __init__(self, folder: Path, subtask: int, rows: int, per_file: int) -> None:
        self.folder, self.first, self.per_file = folder, rows * subtask, per_file
        self.end = rows * (subtask + 1)
        self.open_file: list[int] = []

    @property
    def operators(self) -> dict[str, runtime.Operator]:
        return {"table": self}

    def open(self, context: runtime.OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.name = f"{context.run_id}-{context.subtask}-{context.attempt}"
        self.next, self.behind, files = msgpack.unpackb(state) if state else (self.first, 0, {})
        self.told = [(context.send_with_receipt([True, files]), files)]

    def work(self) -> runtime.Work:
        if self.next == self.end:
            return runtime.Work.ENDED
        time.sleep(0.01)  # stands for the work on one row
        self.open_file.append(self.next)
        self.next += 1
        if len(self.open_file) == self.per_file:
            self.finish_file()
        return runtime.Work.DONE

    def finish_file(self) -> None:
        name = f"{self.name}-{self.next:06d}.json"  # of this attempt alone
        (self.folder / name).write_text(json.dumps(self.open_file))
        self.open_file = []
        file = {name: self.behind}
        self.told.append((self.context.send_with_receipt([False, file]), file))

    def snapshot(self, checkpoint_id: int) -> bytes:
        if self.open_file:
            self.finish_file()
        self.told = [(receipt, files) for receipt, files in self.told if not receipt.done()]
        self.behind = checkpoint_id
        unsure = dict(item for _, files in self.told for item in files.items())
        return bytes(msgpack.packb([self.next, checkpoint_id, unsure]))


def read(folder: Path) -> Any:
    """The rows of the files that the log names."""
    for entry in sorted((folder / "log").glob("*.json")):
        for name in json.loads(entry.read_text()):
            yield from json.loads((folder / name).read_text())


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    job = runtime.JobConfiguration("log", TASKS, (TableProvider(place),), checkpoint_interval_s=0.5)
    store = DirectoryCheckpointStore(place / "checkpoints", job_id="log")
    with local_session(f"local[{TASKS},1000]") as spark:
        result = run_job(spark, job, lambda n: Writer(place, n, ROWS, PER_FILE), store=store).wait()
    is_once = sorted(read(place)) == list(range(TASKS * ROWS))
    print(f"{result.state}: each row is there once: {is_once}")
