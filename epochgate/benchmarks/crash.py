"""The cost of a crash of the driver: how long the next start takes, beside a run without a crash.

Each contender runs in a process of its own, once to its end, and once until the process and all
that it has started are killed, halfway by its own time. Then the same program starts again and goes
on with what it finds. The time that Spark needs to start is not counted, and a small run before
lets it compile what it runs. What is there in the end is counted and summed up by Spark.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.benchmarks.contenders import (
    CHECKPOINT_EVERY_S,
    CONTENDERS,
    PARALLELISM,
    RowsMissing,
    bench_session,
    sums_of_source,
    write_source,
)
from epochgate.benchmarks.figures import Table, number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40_000_000
FILES = 32
CRASHED = ("ingest", "frame", "one batch", "batches")
"""The plain jobs all begin again, so one of them stands for the others."""
END_S = 60.0


@dataclass(frozen=True)
class Recovery:
    """Seconds of a run without a crash, and of the start after one halfway."""

    name: str
    whole_s: float
    again_s: float


class Driver:
    """A process with a session, which runs one contender when it is told to."""

    def __init__(self, name: str, folder: Path) -> None:
        command = [sys.executable, "-m", "epochgate.benchmarks.crash", name, str(folder)]
        self._name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # `kill` closes it
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        """Wait for its session. Raises RowsMissing when it has ended instead."""
        self._answer()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def _answer(self) -> list[str]:
        """The words of its next line. Raises RowsMissing when it has ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            told = self._errors.read().decode(errors="replace")[-2000:]
            raise RowsMissing(f"the process of {self._name!r} has ended: {told}")
        return line.split()

    def run(self) -> tuple[float, tuple[int, ...]]:
        """Return the seconds of a run, and what is in the target."""
        self._say("run")
        seconds, *sums = self._answer()
        return float(seconds), tuple(map(int, sums))

    def crash_after(self, seconds: float) -> None:
        """Kill it in the middle of a run, with all that it has started."""
        self._say("run")
        time.sleep(seconds)  # there is no event to wait for: it is a crash at some moment
        self.kill()

    def kill(self) -> None:
        """Kill it and wait for its end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(END_S)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def driver_of(name: str, folder: Path) -> Iterator[Driver]:
    """Start one that is killed at the end of the block, if it was not before."""
    driver = Driver(name, folder)
    try:
        driver.wait_until_ready()
        yield driver
    finally:
        driver.kill()


def recovery_of(name: str, folder: Path) -> Recovery:
    """Crash a contender halfway, and start it again. Raises RowsMissing for a wrong target."""
    expected = sums_of_source(folder / "source")
    with driver_of(name, folder) as driver:
        whole_s, found = driver.run()
        _compare(name, found, expected)
        clear(folder)
        driver.crash_after(whole_s / 2)
    with driver_of(name, folder) as driver:
        again_s, found = driver.run()
        _compare(name, found, expected)
    clear(folder)
    return Recovery(name, whole_s, again_s)


def _compare(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found != expected:
        raise RowsMissing(
            f"{CONTENDERS[name].title}: Spark finds {found} rows, cents and open orders instead of "
            f"{expected}"
        )


def clear(folder: Path) -> None:
    """Remove a target, and what is kept beside it."""
    for path in folder.glob("*target*"):
        shutil.rmtree(path)


def measure(
    rows: int = ROWS, files: int = FILES, note: Callable[[str], None] = lambda text: None
) -> Table:
    """Crash each once."""
    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as place:
        folder = Path(place)
        note(f"writing {rows:,} rows")
        write_source(folder / "source", rows, files)
        write_source(folder / "small", rows // 20, PARALLELISM)
        found = []
        for name in CRASHED:
            note(name)
            found.append(recovery_of(name, folder))
    return Table(
        question="crash",
        title="A driver that is killed halfway, and started again",
        header=("", "without a crash, s", "the start after it, s", "of a whole run"),
        rows=tuple(
            (
                CONTENDERS[one.name].title,
                number(one.whole_s),
                number(one.again_s),
                f"{one.again_s / one.whole_s:.0%}",
            )
            for one in found
        ),
        notes=(
            f"One crash of each, over {rows:,} rows in {files} files, on `local[{PARALLELISM}]`; "
            f"the ingestion takes a checkpoint every {CHECKPOINT_EVERY_S:g} s. The start of Spark "
            "is not counted. All rows are there once in the end, as Spark reads the targets."
        ),
    )


def sums_in(spark: SparkSession, target: Path) -> list[int]:
    """Return what Spark finds in a target; a streaming query's files by its log."""
    from pyspark.sql import functions

    found = (
        spark.read.parquet(str(target))
        .agg(
            functions.count("*"),
            functions.sum("cents"),
            functions.sum(functions.col("is_open").cast("int")),
        )
        .first()
    )
    assert found is not None, "a sum without groups has one row"
    return list(found)


def serve(name: str, folder: Path) -> None:
    """Be a `Driver`'s process: run the contender for each line that comes."""
    run = CONTENDERS[name].run
    with bench_session(f"local[{PARALLELISM}]") as spark:
        run(spark, folder / "small", folder / f"warm-{os.getpid()}")
        _tell("ready")
        for _ in sys.stdin:
            started_s = time.perf_counter()
            run(spark, folder / "source", folder / "target")
            seconds = time.perf_counter() - started_s
            _tell(seconds, *sums_in(spark, folder / "target"))


def _tell(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201  # the `Driver` reads it


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
