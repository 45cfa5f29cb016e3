"""The walk of one value through the code: files, changes of file, and calls.

`python -m tests.runtime.walks` prints the counts of an operator's event, from `send_event` to its
confirmation, and of a checkpoint, from the request to the commit, over the simulated transport;
`--files` prints the calls too, file by file.
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
        """How often a call is in another file than the call before it."""
        return sum(one[0] != next_[0] for one, next_ in itertools.pairwise(self.calls))

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.changes} changes of file, {len(self.calls)} calls"


def walked(happen: Callable[[], Any]) -> Walk:
    """Return the calls of epochgate's own functions while something happens."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<"):
            return
        path = Path(code.co_filename).resolve()
        if path.is_relative_to(ROOT):
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


def event_and_checkpoint() -> tuple[Walk, Walk]:
    """Return the walks of an event and of a checkpoint in a job with one subtask."""
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
        job.flow()

    def checkpoint() -> None:
        wanted = job.master.request_checkpoint()
        job.flow()
        assert wanted.done()

    walks = walked(event), walked(checkpoint)
    assert sent[0].done()
    assert table.rows == {1: {0: ["a"]}}
    return walks


def main() -> None:
    for name, walk in zip(("event", "checkpoint"), event_and_checkpoint(), strict=True):
        print(f"{name}: {walk}")
        if "--files" in sys.argv:
            last = ""
            for file, function in walk.calls:
                print(f"  {file if file != last else '':45} {function}")
                last = file


if __name__ == "__main__":
    main()
