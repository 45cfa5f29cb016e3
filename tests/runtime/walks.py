"""The walk of one value through the code: files, changes of file, and calls.

`python -m tests.runtime.walks` prints the counts of an operator's event, from `send_event` to its
confirmation, of a checkpoint, from the request to the commit, and of a micro-batch's commit, over
the simulated transport; `--files` prints the calls too, file by file. A generated function counts
for the file of the rows that it is made of, `--generated` for a file of its own; what tasks do
between messages is no part of a walk but with `--idle`.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import epochgate
from epochgate.runtime.api.committer import Committables, Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.testing.scripted import (
    Script,
    ScriptedOperator,
    ScriptedProgram,
    ScriptedProvider,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.streaming.batch_commit import BatchCommit
from tests.spark.streaming.test_steps import BATCH, Scripted

ROOT = Path(epochgate.__file__).parent.parent
UNCOUNTED = ("runtime/testing/", "tests/")
"""What stands in for production."""


@dataclass(frozen=True)
class Walk:
    """The calls of one value's walk, in order: (file, function)."""

    calls: tuple[tuple[str, str], ...]

    @property
    def files(self) -> Counter[str]:
        """File -> its calls."""
        return Counter(file for file, _ in self.calls)

    @property
    def changes(self) -> int:
        """Return how often a call is in another file than the call before it."""
        return sum(one[0] != next_[0] for one, next_ in itertools.pairwise(self.calls))

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.changes} changes of file, {len(self.calls)} calls"


def walked(happen: Callable[[], Any], *, are_generated_apart: bool = False) -> Walk:
    """Return the calls of epochgate's own functions while something happens."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<"):
            return
        file = code.co_filename
        if file.startswith("<rows of ") and not are_generated_apart:
            file = str(sys.modules[type(frame.f_locals["self"]).__module__].__file__)
        path = Path(file).resolve()
        if path.is_relative_to(ROOT) and (path.exists() or are_generated_apart):
            file = str(path.relative_to(ROOT))
            if not file.startswith((*UNCOUNTED, ".venv")):
                calls.append((file, code.co_name))

    sys.setprofile(note)
    try:
        happen()
    finally:
        sys.setprofile(None)
    return Walk(tuple(calls))


class Table(Committer):
    """Keeps what it is told to commit."""

    def __init__(self) -> None:
        self.rows: dict[int, Committables] = {}

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.rows[checkpoint_id] = committables


def event_and_checkpoint(
    *, with_idle: bool = False, are_generated_apart: bool = False
) -> tuple[Walk, Walk]:
    """Return the walks of an event and of a checkpoint in a job with one subtask."""
    held = () if with_idle else ("work",)
    script, table = Script(), Table()
    job = SimulatedJob(
        lambda start: JobConfiguration("job", 1, (ScriptedProvider("rules", script),)),
        lambda subtask: ScriptedProgram({"rules": ScriptedOperator(script)}),
        committer=lambda: table,
    )
    job.settle()
    sent = []

    def event() -> None:
        sent.append(script.coordinator.send(0, "a"))
        job.flow(held)

    def checkpoint() -> None:
        wanted = job.master.request_checkpoint()
        job.flow(held)
        assert wanted.done()

    apart = are_generated_apart
    walks = tuple(walked(one, are_generated_apart=apart) for one in (event, checkpoint))
    assert sent[0].done()
    assert table.rows == {1: {0: ["a"]}}
    return walks[0], walks[1]


def micro_batch(*, are_generated_apart: bool = False) -> Walk:
    """Return the walk of the commit of a streaming query's batch."""
    place = Scripted()
    commit = BatchCommit(place)
    walk = walked(lambda: commit.commit(BATCH, 0), are_generated_apart=are_generated_apart)
    assert place.steps == ["look", "note", "apply", "sweep"]
    return walk


def main() -> None:
    apart = "--generated" in sys.argv
    event, checkpoint = event_and_checkpoint(
        with_idle="--idle" in sys.argv, are_generated_apart=apart
    )
    batch = micro_batch(are_generated_apart=apart)
    for name, walk in (("event", event), ("checkpoint", checkpoint), ("micro-batch", batch)):
        print(f"{name}: {walk}")
        if "--files" in sys.argv:
            last = ""
            for file, function in walk.calls:
                print(f"  {file if file != last else '':45} {function}")
                last = file


if __name__ == "__main__":
    main()
