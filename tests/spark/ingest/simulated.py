"""An ingestion in one thread, on real files: its driver can be crashed at each step on the disk.

Everything is that of production but Spark, the clock and the threads. A crash of the driver takes
its file system with it (`FaultyFileSystem`): locks are released, what was not fsynced is lost.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from epochgate.fsm import VirtualClock
from epochgate.runtime import JobMaster
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from epochgate.runtime.testing.faulty_transport import FaultyTransport
from epochgate.runtime.testing.in_process import InProcessTransport
from epochgate.runtime.testing.simulated_work import SimulatedWork
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.ingest.after_commit import work_after_commits
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import IngestPlan, plan_ingest
from epochgate.spark.ingest.run import IngestResult, result_of

ROUND_S = 0.0005


class SimulatedIngest(SimulatedJob):
    """`faults` gives the fault of each start, by its number from 0; none strikes after those.

    `name`: begins the ids of its runs, of which no two of a job may be the same.
    """

    def __init__(
        self, options: IngestOptions, faults: Iterable[Fault | None] = (), *, name: str = "run"
    ) -> None:
        self.options, self.name = options, name
        self.clock = VirtualClock()
        self.starts = 0
        self._faults = list(faults)
        self.files = FaultyFileSystem(LocalFileSystem())
        self.plan: IngestPlan
        self.start_again()

    def start_again(self) -> None:
        """Start another driver, and again where the fault strikes while it starts."""
        while True:
            fault = self._faults[self.starts] if self.starts < len(self._faults) else None
            self.files = FaultyFileSystem(LocalFileSystem(), fault)
            self.starts += 1
            try:
                self._open()
            except SimulatedCrash:
                continue
            return

    def _planned(self) -> IngestPlan:
        return plan_ingest(self.options, run_id=f"{self.name}-{self.starts}", files=self.files)

    def _open(self) -> None:
        self.plan = self._planned()
        configuration = self.plan.configuration
        self.transport = InProcessTransport(
            self.plan.program_factory,
            parallelism=configuration.parallelism,
            coordinators=configuration.operator_ids,
            run_id=configuration.run_id,
            clock=self.clock,
            commits_in_tasks=configuration.topology.in_tasks,
        )
        self.faults = FaultyTransport(self.transport)
        self.master = JobMaster(
            configuration,
            transport=self.faults,
            store=self.plan.store,
            clock=self.clock,
            blocking=SimulatedWork,
            committer=self.plan.job_committer,
            after_commit=work_after_commits(None, self.plan.remove),
            wall_clock=self.clock.now_s,
        )
        self.transport.on_broken = self.master.fail
        self.master.start()

    def crash_driver(self) -> None:
        """Kill the driver and its processes, as a power cut does, and start another."""
        self.files.crash()
        self.transport.processes.clear()
        self.start_again()

    def leave(self) -> IngestResult:
        """Release everything after the end, as the loop's thread does."""
        result = result_of(self.plan, self.result)
        self.master.close()
        return result

    def run(
        self,
        disturb: Callable[[], None] = lambda: None,
        *,
        until: Callable[[], bool] = lambda: False,
        rounds_max: int = 20_000,
    ) -> None:
        """Go on until the job is over, over all crashes, or until `until` holds.

        Time passes while things move, so that checkpoints fall into the middle of reading;
        `disturb` is called in each round.
        """
        for _ in range(rounds_max):
            try:
                disturb()
                has_moved = self._round()
                if self.is_over or until():
                    return
                self.wait(ROUND_S)
                if not has_moved:
                    self.advance()
            except SimulatedCrash:
                self.crash_driver()
        raise AssertionError(self.account())


def options_for(tmp_path: Path, **changes: object) -> IngestOptions:
    """Options of a small ingestion: two subtasks, a checkpoint every few batches."""
    options = IngestOptions(
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        parallelism=2,
        checkpoint_every_s=0.001,
        batch_rows=3,
        split_bytes_target=64,
        restart="rate:1000,1s,10ms",
    )
    return replace(options, **changes)  # type: ignore[arg-type]  # of any option


def write_source(tmp_path: Path, files: int = 3, rows: int = 10, first: int = 0) -> list[int]:
    """Write CSV files with the numbers from `first` on into `in`; returns the numbers."""
    folder = tmp_path / "in"
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        begin = first + file * rows
        lines = [f"{number},text {number}\n" for number in range(begin, begin + rows)]
        path = folder / f"{begin:06d}.csv"
        path.write_text("x,name\n" + "".join(lines))
        make_older(path)
    return list(range(first, first + files * rows))


def make_older(path: Path) -> None:
    """Let a file be an hour old, so that one who follows need not wait for it to settle."""
    status = path.stat()
    os.utime(path, (status.st_atime, status.st_mtime - 3600))


def visible(target: Path | str, column: str = "x") -> list[int]:
    """All values that DuckDB finds in the target, sorted."""
    if not list(Path(target).glob("**/*.parquet")):
        return []
    query = f"select {column} from read_parquet('{target}/**/*.parquet') order by 1"
    return [row[0] for row in duckdb.execute(query).fetchall()]


def random_kills(simulated: SimulatedIngest, seed: int, share: float) -> Callable[[], None]:
    """A disturbance that kills or cuts off a random process in that share of rounds."""
    chance = random.Random(seed)

    def disturb() -> None:
        alive = [p for p in simulated.transport.processes.values() if p.is_alive]
        if alive and chance.random() < share:
            process = chance.choice(alive)
            if chance.random() < 0.3:
                simulated.transport.cut(process.identity)
            else:
                simulated.transport.kill(process.identity)

    return disturb


def explode(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's function that does not work."""
    raise ArithmeticError("no good")
