"""The cost of a checkpoint and its commit, for each sink: by committables, by state, by history,
and by who commits.

Decides how often a cell is measured, and which cells would take too long and are left out.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import Table, number, percentile
from epochgate.benchmarks.sink_histories import HISTORIES
from epochgate.benchmarks.sink_job import LONG_S, NOT_MEASURED, SUBTASKS, Cell, SinkJob
from epochgate.benchmarks.sink_places import Kinds, Place, kinds
from epochgate.benchmarks.sink_tasks import compared

COMMITTABLES = (10, 100, 1_000, 10_000, 100_000)
STATE_BYTES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
COMMITS_BEFORE = (1, 10, 100, 1_000, 10_000)
COMMITTABLES_IN_TASKS = (10_000, 100_000)
FEW = 4
"""Committables, where it is state or history that grows."""
SAMPLES_LEAST, SAMPLES_MOST = 3, 40
SPENT_ON_A_CELL_S = 1.5
"""Once the least number of samples is there."""
CELL_MOST_S = 30.0
"""A cell is left out if, from the one before, a single sample seems to take longer."""
Making = Callable[[Path, Callable[[str], None]], AbstractContextManager[Kinds]]


@dataclass(frozen=True)
class Growing:
    """The variable of some rows of the table: its name there, its sizes, and what a size means."""

    name: str
    sizes: tuple[int, ...]
    committables: Callable[[int], int] = lambda size: FEW
    state_bytes: Callable[[int], int] = lambda size: 1_000
    earlier: Callable[[int], int] = lambda size: 0


def growing(
    committables: tuple[int, ...], state_bytes: tuple[int, ...], earlier: tuple[int, ...]
) -> tuple[Growing, ...]:
    """The three things that grow."""
    return (
        Growing("committables", committables, committables=lambda size: size),
        Growing("bytes of state", state_bytes, state_bytes=lambda size: size),
        Growing("earlier commits", earlier, earlier=lambda size: size),
    )


def cells(
    folder: Path, kind: str, make: Callable[[Path], Place], what: Growing, samples_most: int
) -> list[Cell]:
    """Measure one kind of sink while one thing grows."""
    found: list[Cell] = []
    median_s, before = 0.0, what.sizes[0]
    for size in what.sizes:
        if median_s * size / before > CELL_MOST_S:
            found.append(Cell())
            continue
        place_folder = folder / f"{kind.split()[0].lower()}-{what.name.split()[0]}-{size}"
        place_folder.mkdir()
        place = make(place_folder)
        if earlier := what.earlier(size):
            HISTORIES[kind](place, place_folder, earlier)
        job = SinkJob(place_folder, place, earlier)
        try:
            taken = _samples(job, what.committables(size), what.state_bytes(size), samples_most)
        finally:
            job.close()
            shutil.rmtree(place_folder)
        median_s, before = percentile(taken, 50), size
        found.append(Cell(tuple(taken)))
    return found


def _samples(job: SinkJob, committables: int, state_bytes: int, samples_most: int) -> list[float]:
    """As many as there is time for."""
    begun_s = time.perf_counter()
    taken: list[float] = []
    while len(taken) < samples_most:
        taken.append(job.sample(committables, state_bytes))
        spent_s = time.perf_counter() - begun_s
        is_enough = len(taken) >= SAMPLES_LEAST and spent_s > SPENT_ON_A_CELL_S
        if is_enough or taken[-1] > LONG_S:
            break
    return taken


def measure(
    committables: tuple[int, ...] = COMMITTABLES,
    state_bytes: tuple[int, ...] = STATE_BYTES,
    earlier: tuple[int, ...] = COMMITS_BEFORE,
    samples_most: int = SAMPLES_MOST,
    note: Callable[[str], None] = lambda text: None,
    made: Making = kinds,
    in_tasks: tuple[int, ...] = COMMITTABLES_IN_TASKS,
) -> Table:
    """Measure each kind of sink that `made` makes, one after the other."""
    things = growing(committables, state_bytes, earlier)
    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as name:
        folder = Path(name)
        with made(folder, note) as found:
            measured = {
                kind: [cells(folder, kind, found[kind], what, samples_most) for what in things]
                for kind in _noted(found, note)
            }
            by_both = compared(folder, found, in_tasks, note)
    rows = [
        row
        for position, what in enumerate(things)
        for row in _rows(what, {kind: of_all[position] for kind, of_all in measured.items()})
    ]
    return Table(
        question="sinks",
        title="A checkpoint and its commit, by sink (ms: p50 (p99))",
        header=("what grows", *measured),
        rows=(*rows, *by_both),
        notes=(
            "On the clock, from the request of a checkpoint until its commit is known; the store "
            f"is a directory, there are {SUBTASKS} subtasks, and files and rows were staged before."
            f" Where state or history grows there are {FEW} committables: files of one row, or rows"
            " in PostgreSQL. The object store is SeaweedFS on this machine. A row of factors tells "
            "how many times longer the last size takes than the one before, a tenth of it; "
            f"{NOT_MEASURED} was left out, since one sample would have taken longer than "
            f"{CELL_MOST_S:.0f} s. There are {SAMPLES_LEAST} to {samples_most} samples a cell, and "
            f"one where it takes longer than {LONG_S:.0f} s, so the 99th percentile is nearly the "
            "longest. Earlier commits were made one a minute, and are written as what they leave "
            "behind: manifests, rows, and of a day the entries of Delta's log and the snapshots of "
            "Iceberg, which expire in tables that a job creates. The last rows compare a commit by "
            f"the driver alone with one by committers in {SUBTASKS} tasks, processes of their own "
            "on the same machine, in turn; what goes between is packed as on the wire, and counts."
        ),
    )


def _noted(found: Kinds, note: Callable[[str], None]) -> Iterable[str]:
    for kind in found:
        note(kind)
        yield kind


def _rows(what: Growing, columns: dict[str, list[Cell]]) -> list[tuple[str, ...]]:
    rows = [
        (f"{size:,} {what.name}", *(of_kind[place].shown() for of_kind in columns.values()))
        for place, size in enumerate(what.sizes)
    ]
    return [*rows, ("factor of the last", *(_factor(of_kind) for of_kind in columns.values()))]


def _factor(found: Sequence[Cell]) -> str:
    medians: list[Any] = [percentile(cell.samples, 50) for cell in found if cell.samples]
    return f"× {number(medians[-1] / medians[-2])}" if len(medians) > 1 else NOT_MEASURED
