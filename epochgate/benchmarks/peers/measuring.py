"""The runs of all loaders: in turn to their end, and killed at random moments until they are done.

Decides the order, the moments of kills, and when a loader has failed. Each run begins with an empty
place; after a kill the same command starts in the same place. Runs in the benchmark's process, with
one loader at a time as its child.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from epochgate.benchmarks.peers.loaders import LOADERS, Loader, Start
from epochgate.benchmarks.peers.places import Found, Kind, Place, Source
from epochgate.benchmarks.postgres_server import PostgresServer
from epochgate.benchmarks.processor import ProcessorTime
from epochgate.errors import EpochgateError

TIMEOUT_S = 600.0
KILLS_PER_LOAD = 3
STARTS_MAX = 5
"""How often a loader that was killed is started again, and ends with an error."""
SHOWN = 1500


class LoaderFailed(EpochgateError):
    """A loader has not done its work: its title, and what it said at its end."""

    def __str__(self) -> str:
        return f"{self.args[0]} has failed: {self.args[1]}"


class Effort(NamedTuple):
    """The files of the runs that are timed, and of those that are killed, and how many of each."""

    files: int = 200
    rows_per_file: int = 5_000
    rounds: int = 3
    kills: int = 12
    killed_files: int = 100
    killed_rows_per_file: int = 2_000


@dataclass
class Killed:
    """The loads of one loader that were killed: how often, and what was there at the end."""

    loads: int = 0
    kills: int = 0
    lost: int = 0
    doubled: int = 0
    failures: list[str] = field(default_factory=list)


class Taken(NamedTuple):
    """The time of a load, by the clock and of all processors."""

    seconds: float
    processor_s: float


@dataclass
class Samples:
    """The measurements of one loader: whole loads, and loads of one file of a row."""

    whole: list[Taken] = field(default_factory=list)
    idle: list[Taken] = field(default_factory=list)
    killed: Killed = field(default_factory=Killed)
    failure: str = ""


class Child:
    """A loader that runs, with all that it starts."""

    def __init__(self, start: Start) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        self._process = subprocess.Popen(
            start.command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **start.variables},
            start_new_session=True,
        )

    def wait(self, timeout_s: float = TIMEOUT_S) -> int | None:
        """The exit code, or none if it goes on."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it, and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> str:
        """The end of what it said."""
        self.kill()
        with self._said as said:
            size = said.seek(0, os.SEEK_END)
            said.seek(max(0, size - SHOWN))
            return said.read().decode(errors="replace").strip()


def load(loader: Loader, source: Source, place: Place) -> Taken:
    """Load everything. Raises LoaderFailed."""
    with ProcessorTime() as used:
        started_s = time.monotonic()
        child = Child(loader.start(source, place))
        try:
            code = child.wait()
            seconds = time.monotonic() - started_s
        finally:
            said = child.close()
    if code != 0:
        told = f"exit code {code}" if code is not None else f"not done after {TIMEOUT_S:g} s"
        raise LoaderFailed(loader.title, f"{told}\n{said}")
    return Taken(seconds, used.seconds)


def timed(loader: Loader, source: Source, place: Place) -> Taken:
    """Load everything into an empty place, and count it. Raises LoaderFailed."""
    place.begin(makes_table=not loader.makes_table)
    os.sync()
    taken = load(loader, source, place)
    if (found := place.found()) != Found(source.rows, source.rows):
        raise LoaderFailed(
            loader.title, f"{found.rows:,} rows with {found.numbers:,} numbers of {source.rows:,}"
        )
    return taken


def killed(
    loader: Loader,
    source: Source,
    place: Place,
    moments: tuple[float, float],
    chance: random.Random,
) -> Killed:
    """Load everything into an empty place, and kill it a few times at random moments between these
    two, in seconds; once more at the end, when there should be nothing to do.
    """
    place.begin(makes_table=not loader.makes_table)
    outcome = Killed(loads=1)
    for _ in range(KILLS_PER_LOAD):
        child = Child(loader.start(source, place))
        try:
            has_ended = child.wait(chance.uniform(*moments)) is not None
        finally:
            child.close()
        outcome.kills += not has_ended
    loaded = 0
    for _ in range(STARTS_MAX):
        try:
            load(loader, source, place)
            loaded += 1
        except LoaderFailed as failed:
            outcome.failures.append(str(failed.args[1]))
        if loaded == 2:
            break
    found = place.found()
    outcome.lost, outcome.doubled = found.lost(source), found.doubled
    return outcome


@contextmanager
def places(top: Path) -> Iterator[dict[str, Place]]:
    """An empty place of each kind; a server runs meanwhile."""
    server = PostgresServer(has_port=True)
    try:
        yield {"delta": Place(top / "delta"), "postgres": Place(top / "postgres", server)}
    finally:
        server.remove()


def measure(
    effort: Effort,
    names: tuple[str, ...],
    note: Callable[[str], None],
    seed: int = 1,
) -> dict[Loader, Samples]:
    """Measure the loaders of these names, in turn; the next one goes on where one has failed."""
    loaders = [one for one in LOADERS if one.name in names]
    found = {one: Samples() for one in loaders}
    with tempfile.TemporaryDirectory(prefix="epochgate-peers-") as name:
        top, kinds = Path(name), sorted({one.kind for one in loaders})
        timed_files = _sources(top / "timed", kinds, effort.files, effort.rows_per_file)
        small = _sources(top / "small", kinds, 1, 1)
        torn = _sources(top / "killed", kinds, effort.killed_files, effort.killed_rows_per_file)
        with places(top) as where:
            for number in range(effort.rounds):
                for one in loaders if number % 2 == 0 else loaders[::-1]:
                    note(f"round {number + 1} of {effort.rounds}: {one.title}")
                    _run(one, found[one], timed_files[one.kind], small[one.kind], where[one.into])
            for one in loaders:
                if not found[one].failure and effort.kills:
                    _tear(one, found[one], torn[one.kind], where[one.into], effort, note, seed)
    return found


def _sources(top: Path, kinds: list[Kind], files: int, rows: int) -> dict[Kind, Source]:
    return {kind: Source(top / kind, kind, files, rows).write() for kind in kinds}


def _run(one: Loader, samples: Samples, files: Source, small: Source, place: Place) -> None:
    if samples.failure:
        return
    try:
        samples.idle.append(timed(one, small, place))
        samples.whole.append(timed(one, files, place))
    except LoaderFailed as failed:
        samples.failure = str(failed.args[1])


def _tear(
    one: Loader,
    samples: Samples,
    files: Source,
    place: Place,
    effort: Effort,
    note: Callable[[str], None],
    seed: int,
) -> None:
    chance, total = random.Random(seed), samples.killed
    try:
        whole_s = timed(one, files, place).seconds
    except LoaderFailed as failed:
        total.failures.append(str(failed.args[1]))
        return
    # Before it has read a file, a kill finds nothing to spoil.
    idle_s = statistics.median(taken.seconds for taken in samples.idle)
    moments = (0.8 * min(idle_s, whole_s), whole_s)
    while total.kills < effort.kills and total.loads < effort.kills:
        note(f"{total.kills} of {effort.kills} kills: {one.title}")
        this = killed(one, files, place, moments, chance)
        for name in ("loads", "kills", "lost", "doubled"):
            setattr(total, name, getattr(total, name) + getattr(this, name))
        total.failures += this.failures
