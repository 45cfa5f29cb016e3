"""The driver of the lab: both jobs on one Spark session, until they are asked to stop.

    python -m tests.nemesis.jobs_program SETTINGS

SETTINGS are those of `Settings`, as JSON. It writes down what both jobs tell their listeners, and
every fifth of a second how they are. It ends when both have ended.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

LOOK_S = 0.2
INGEST, UPDATES = "ingest", "updates"
TABLE, INGEST_CHECKPOINTS = "table", "ingest-checkpoints"
"""Of the ingestion, on the disk."""
PORTS = {INGEST: 41_001, UPDATES: 41_002}
EXECUTOR_CORES, CORES = 6, 12
"""Of each executor, and of all: each host begins with one, which could carry all subtasks."""
PARALLELISM = {INGEST: 2, UPDATES: 3}
CHECKPOINT_EVERY_S = 1.0
ROWS_PER_S = 20_000.0
Locks = Literal["held", "refused", "forgotten"]


@dataclass(frozen=True)
class Settings:
    """folder: the lab's; disk: where targets and checkpoints lie; locks: what the file system makes
    of them, as network file systems do.
    """

    folder: str
    disk: str
    master: str
    address: str
    python: str
    java_options: str
    locks: Locks = "held"
    ports_on: int = 0
    """Added to the ports, for a driver beside another."""
    process_timeout_s: float = 60.0
    work_timeout_s: float = 600.0
    """Of a save and of a commit."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def refuse_locks(locks: Locks) -> None:
    """Let `flock` do what it does on file systems without locks, or on those that forget them."""

    def flock(descriptor: int, operation: int) -> None:
        if locks == "refused":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl.flock = flock  # type: ignore[assignment]  # in this process alone


def run(settings: Settings) -> int:
    from epochgate.spark.session import local_session

    # The clock of this process may be the lab's; its JVM keeps the machine's.
    os.environ.pop("LD_PRELOAD", None)
    spark_settings = {
        "spark.driver.host": settings.address,
        "spark.driver.bindAddress": settings.address,
        "spark.pyspark.python": settings.python,
        "spark.executor.memory": "512m",
        "spark.executor.cores": str(EXECUTOR_CORES),
        "spark.cores.max": str(CORES),
        "spark.executor.extraJavaOptions": settings.java_options,
    }
    with local_session(settings.master, settings=spark_settings) as spark:
        return _watched(spark, settings)


def _watched(spark: Any, settings: Settings) -> int:
    from epochgate.errors import UsageError
    from tests.nemesis.updates import Record

    folder, run_id = Path(settings.folder), uuid.uuid4().hex
    record = Record(folder / "history" / f"driver-{run_id}.jsonl", run=run_id, pid=os.getpid())
    record("began")
    jobs = {UPDATES: _updates(spark, settings, record, run_id), INGEST: None}
    try:
        jobs[INGEST] = _ingest(spark, settings, record)
    except UsageError as error:
        record("refused", job=INGEST, error=type(error).__name__, reason=str(error))
        raise
    is_stopping = False
    over: set[str] = set()
    while len(over) < len(jobs):
        if not is_stopping and (folder / "stop").exists():
            is_stopping = True
            for job in jobs.values():
                job.stop()
        for name, job in jobs.items():
            if job.is_over and name not in over:
                over.add(name)
                result = job.wait()
                record("ended", job=name, state=result.state, reason=result.reason)
        # Afterwards: this process may be killed as soon as it has told that a job is over.
        _write_status(folder / "status.json", run_id, jobs, over)
        time.sleep(LOOK_S)
    return 0


def _write_status(path: Path, run_id: str, jobs: dict[str, Any], over: set[str]) -> None:
    told: dict[str, Any] = {"t": time.monotonic(), "run": run_id, "pid": os.getpid()}
    for name, job in jobs.items():
        status = job.status()
        tasks = [[task.state, task.host, task.pid, task.attempt] for task in status.tasks]
        last = status.last_checkpoint_id
        told[name] = {"state": status.state, "last": last, "over": name in over, "tasks": tasks}
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(told))
    temporary.rename(path)


def _listener(record: Any, name: str) -> Any:
    from epochgate.runtime import JobListener

    class Telling(JobListener):
        def on_event(self, event: Any) -> None:
            told = {k: v for k, v in event.to_json().items() if k not in ("event", "figures")}
            record(f"job:{type(event).__name__}", job=name, **told)

    return Telling()


def _updates(spark: Any, settings: Settings, record: Any, run_id: str) -> Any:
    from epochgate.runtime import JobConfiguration
    from epochgate.runtime.api.restart_strategies import FixedDelay
    from epochgate.runtime.store import DirectoryCheckpointStore
    from epochgate.spark.job import run_job
    from tests.nemesis import updates

    disk, notes = Path(settings.disk), str(Path(settings.folder) / "history")
    (disk / "pages").mkdir(exist_ok=True)
    configuration = JobConfiguration(
        UPDATES,
        PARALLELISM[UPDATES],
        (updates.UpdatesProvider(record),),
        run_id=run_id,
        checkpoint_interval_s=CHECKPOINT_EVERY_S,
        tolerable_checkpoint_failures=1_000_000,
        restart_strategy=FixedDelay(1_000_000, 0.1),
        commit_retries_max=100,
        store_timeout_s=settings.work_timeout_s,
        commit_timeout_s=settings.work_timeout_s,
    )
    return run_job(
        spark,
        configuration,
        lambda subtask: updates.Hearing(notes),
        store=DirectoryCheckpointStore(disk / "updates-checkpoints", job_id=UPDATES),
        committer=updates.Pages(disk / "pages", record),
        by_value=[updates],
        port=PORTS[UPDATES] + settings.ports_on,
        process_timeout_s=settings.process_timeout_s,
        listeners=[_listener(record, UPDATES)],
        journal=os.path.join(settings.folder, "traces", UPDATES),
    )


def _ingest(spark: Any, settings: Settings, record: Any) -> Any:
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.plan import plan_ingest
    from epochgate.spark.job import run_job

    options = IngestOptions(
        source=os.path.join(settings.folder, "source"),
        target=os.path.join(settings.disk, TABLE),
        checkpoint_directory=os.path.join(settings.disk, INGEST_CHECKPOINTS),
        parallelism=PARALLELISM[INGEST],
        checkpoint_every_s=CHECKPOINT_EVERY_S,
        follow=True,
        settle_s=0.0,
        rows_per_second=ROWS_PER_S,
        restart="fixed:1000000,100ms",
        port=PORTS[INGEST] + settings.ports_on,
        store_timeout_s=settings.work_timeout_s,
        commit_timeout_s=settings.work_timeout_s,
        journal=os.path.join(settings.folder, "traces", INGEST),
    )
    plan = plan_ingest(options)
    # As `start_plan` does, which takes no time for processes to come.
    return run_job(
        spark,
        plan.configuration,
        plan.program_factory,
        store=plan.store,
        committer=plan.job_committer,
        port=options.port,
        process_timeout_s=settings.process_timeout_s,
        listeners=[_listener(record, INGEST)],
        journal=options.journal,
    )


if __name__ == "__main__":
    asked = Settings(**json.loads(sys.argv[1]))
    if asked.locks != "held":
        refuse_locks(asked.locks)
    sys.exit(run(asked))
