"""The notes of the lab's processes: one list of lines by time, over all hosts and drivers.

All hosts share the machine's monotonic clock, which no fault of the lab changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Line = dict[str, Any]
Pages = dict[int, dict[int, list[Any]]]
"""Checkpoint -> subtask -> what was committed of it."""


class Commit(NamedTuple):
    """checkpoint: committed at `t`; begun: when it was triggered."""

    t: float
    begun: float
    checkpoint: int
    committables: int


@dataclass(frozen=True)
class History:
    """lines: oldest first; pages: of the job of control events, as they lie on the disk."""

    lines: list[Line]
    pages: Pages

    def of(self, *events: str, **values: Any) -> Iterator[Line]:
        """The lines of these events that have these values."""
        for line in self.lines:
            if line["event"] in events and all(line.get(k) == v for k, v in values.items()):
                yield line

    def runs(self) -> list[str]:
        """The starts of drivers, in order."""
        return [line["run"] for line in self.of("began")]

    def commits(self, job: str) -> list[Commit]:
        """Of the job, in order."""
        begun = {
            (line["run"], line["checkpoint_id"]): line["t"] - line["duration_s"]
            for line in self.of("job:CheckpointEnded", job=job, outcome="completed")
        }
        return [
            Commit(line["t"], begun[line["run"], checkpoint], checkpoint, line["committables"])
            for line in self.of("job:Committed", job=job)
            for checkpoint in line["checkpoint_ids"]
            if (line["run"], checkpoint) in begun
        ]

    def first_commit(self, job: str, since: float) -> float | None:
        """Return when something of a checkpoint that began after `since` was committed first."""
        times = [c.t for c in self.commits(job) if c.begun > since and c.committables]
        return min(times, default=None)

    def first_confirmed(self, parallelism: int, since: float) -> float | None:
        """Return when all subtasks had heard an update that was sent after `since`."""
        numbers = [line["number"] for line in self.of("sent") if line["t"] > since]
        if not numbers:
            return None
        first: dict[int, float] = {}
        for line in self.of("heard"):
            if line["t"] > since and line["number"] >= numbers[0]:
                first.setdefault(line["subtask"], line["t"])
        return max(first.values()) if len(first) == parallelism else None


class Reader:
    """Reads a folder of lines again and again, and each line once."""

    def __init__(self, folder: Path, pages: Path) -> None:
        self._folder, self._pages = folder, pages
        self._ends: dict[Path, int] = {}
        self._lines: list[Line] = []

    def read(self) -> History:
        """All that is written by now; a line that is not ended yet is left to the next look."""
        # The job goes on meanwhile: of what is committed after the pages were read, there are lines
        # without pages, where pages without lines would be commits that no driver had asked for.
        pages = read_pages(self._pages)
        for path in self._folder.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._ends.get(path, 0))
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._ends[path] = self._ends.get(path, 0) + len(whole) + 1
                self._lines += [json.loads(line) for line in whole.splitlines()]
        self._lines.sort(key=lambda line: float(line["t"]))
        return History(list(self._lines), pages)


def read_pages(folder: Path) -> Pages:
    found: Pages = {}
    for path in sorted(folder.glob("*.json")):
        page = json.loads(path.read_text())
        found[int(path.stem)] = {int(subtask): held for subtask, held in page.items()}
    return found
