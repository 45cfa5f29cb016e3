"""The time for which a subtask is away when its worker, or its executor, is killed, and when it
fails.

A job of four subtasks on a local cluster of two executors, with a checkpoint every second. Each
subtask computes on at most 50 Arrow batches a second, which leaves the cores free for recovering.
Measured from the kill until the successor, restored from the last checkpoint, has processed its
first batch: the restart delay and Spark's own time are in it. An executor takes two subtasks with
it, and counts until both are back, once with JVMs that start as they do by default and once with a
class archive. What fails without losing a process is measured by `failover`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from epochgate.benchmarks import failover
from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.benchmarks.watching import OPERATOR, WAIT_S, NotRecovered, Watcher, WatcherProvider
from epochgate.runtime import JobConfiguration, Operator, Program, Work
from epochgate.runtime.api.restart_strategies import FailureRate
from epochgate.runtime.store import DirectoryCheckpointStore

if TYPE_CHECKING:
    from epochgate.spark import JobHandle

MASTER = "local-cluster[2,2,1024]"
PARALLELISM = 4
WORKER_KILLS = 10
EXECUTOR_KILLS = 5
FAILURES = 20
CHECKPOINT_EVERY_S = 1.0
RESTART_DELAY_S = 0.2
BATCH_ROWS = 65_536
BATCH_PAUSE_S = 0.02
"""After each batch: the pause limits the load, and the cores stay free for the recovery."""
QUIET_S = 1.5
"""Before each kill: longer than a checkpoint's interval, so that there is a new one to restore, and
no multiple of it, so that kills meet the interval at different moments.
"""
EXECUTOR_MARK = "CoarseGrainedExecutorBackend"


class ComputeOperator(Operator):
    """Counts its batches, and tells its coordinator of the first of this attempt."""

    def __init__(self) -> None:
        self._rows = pa.array(range(BATCH_ROWS))
        self.batches = 0
        self.has_reported = False

    def open(self, context: Any, state: bytes | None) -> None:
        """Go on from the count."""
        super().open(context, state)
        self.batches = int(state or b"0")

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the count."""
        return str(self.batches).encode()

    def compute(self) -> None:
        """Process one batch."""
        pc.sum(pc.multiply(self._rows, self.batches))
        self.batches += 1
        if not self.has_reported:
            self.has_reported = True
            self.context.send_to_coordinator(["first batch"])


class ComputeProgram(Program):
    """Computes without end, at a gentle pace."""

    def __init__(self) -> None:
        self._operator = ComputeOperator()

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The one operator."""
        return {OPERATOR: self._operator}

    def work(self) -> Work:
        """Process one batch, and pause a little."""
        self._operator.compute()
        # Stands for the rest of the work on a batch: a barrier waits until the batch is done.
        time.sleep(BATCH_PAUSE_S)
        return Work.DONE


def compute_program(subtask: int) -> Program:
    """Make the program of one subtask."""
    return ComputeProgram()


def executor_above(pid: int) -> psutil.Process:
    """Return the executor JVM that a Python worker belongs to."""
    for parent in psutil.Process(pid).parents():
        if any(EXECUTOR_MARK in word for word in parent.cmdline()):
            return parent
    raise NotRecovered(f"no executor was found above the worker {pid}")


def kill_worker(job: JobHandle, victim: int, watcher: Watcher) -> float:
    """Return the seconds until the successor of one worker has processed its first batch."""
    workers = {task.subtask: task.pid for task in job.status().tasks if task.pid is not None}
    killed_s = time.perf_counter()
    psutil.Process(workers[victim]).kill()
    return watcher.wait_for([victim], killed_s) - killed_s


def kill_executor(job: JobHandle, victim: int, watcher: Watcher) -> float:
    """Return the seconds until the successors of all workers of one executor have."""
    workers = {task.subtask: task.pid for task in job.status().tasks if task.pid is not None}
    executors = {subtask: executor_above(pid) for subtask, pid in workers.items()}
    felt = [subtask for subtask, one in executors.items() if one == executors[victim]]
    killed_s = time.perf_counter()
    executors[victim].kill()
    return watcher.wait_for(felt, killed_s) - killed_s


def measure(
    worker_kills: int = WORKER_KILLS,
    executor_kills: int = EXECUTOR_KILLS,
    failures: int = FAILURES,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Kill workers and executors, then let operators and the job fail, and let the job come to rest
    before each.
    """
    from epochgate.spark import local_session
    from epochgate.spark.class_archive import make_class_archive

    with tempfile.TemporaryDirectory(prefix="epochgate-bench-") as folder:
        place = Path(folder)
        with local_session(MASTER, app_name="epochgate bench") as spark:
            with computing_job(spark, place / "plain") as (job, watcher):
                workers = seconds(kill_worker, worker_kills, job, watcher, note)
                executors = seconds(kill_executor, executor_kills, job, watcher, note)
                job.stop()
                report = job.wait(WAIT_S).report
            failed = failover.rows(spark, failures, note)
        archive = place / "spark.jsa"
        make_class_archive(archive)
        with (
            local_session(MASTER, app_name="epochgate bench", class_archive=archive) as spark,
            computing_job(spark, place / "archived") as (job, watcher),
        ):
            archived = seconds(kill_executor, executor_kills, job, watcher, note)
    taken_ms = [one.duration_s * 1000 for one in report.checkpoints if one.is_completed]
    return Table(
        question="recovery",
        title="Recovery",
        header=("", "median (least to greatest)"),
        rows=(
            ("from killing a worker to its successor's first batch, s", spread(workers)),
            ("from killing an executor to its successors' first batches, s", spread(executors)),
            ("the same, with a class archive, s", spread(archived)),
            *failed,
            ("duration of a checkpoint between kills, p50, ms", number(percentile(taken_ms, 50))),
            ("duration of a checkpoint between kills, p99, ms", number(percentile(taken_ms, 99))),
        ),
        notes=(
            f"{worker_kills} workers and twice {executor_kills} executors, killed with SIGKILL on "
            f"`{MASTER}`; the restart delay of {RESTART_DELAY_S:g} s is included. {failures} "
            "failures of each kind in processes that live, in a job without a restart delay. "
            f"{len(taken_ms)} checkpoints completed."
        ),
    )


@contextmanager
def computing_job(spark: Any, store: Path) -> Iterator[tuple[JobHandle, Watcher]]:
    """A job whose processes are to be killed, and its coordinator."""
    from epochgate.spark import run_job

    provider = WatcherProvider(Watcher)
    configuration = JobConfiguration(
        "bench",
        PARALLELISM,
        (provider,),
        checkpoint_interval_s=CHECKPOINT_EVERY_S,
        restart_strategy=FailureRate(failures_max=1000, interval_s=60.0, delay_s=RESTART_DELAY_S),
    )
    checkpoints = DirectoryCheckpointStore(store, job_id="bench")
    with run_job(spark, configuration, compute_program, store=checkpoints) as job:
        provider.watcher.wait_for(list(range(PARALLELISM)), 0.0)
        yield job, provider.watcher


def seconds(
    kill: Callable[[JobHandle, int, Watcher], float],
    times: int,
    job: JobHandle,
    watcher: Watcher,
    note: Callable[[str], None],
) -> list[float]:
    """Kill one process after the other; return how long the recoveries took."""
    taken_s = []
    for done in range(times):
        # Let the job run undisturbed between kills. A wait for a checkpoint would put every kill
        # right after one, and the figures would not show its cost at other moments.
        time.sleep(QUIET_S)
        note(f"{kill.__name__.replace('_', ' ')}, {done + 1} of {times}")
        taken_s.append(kill(job, done % PARALLELISM, watcher))
    return taken_s
