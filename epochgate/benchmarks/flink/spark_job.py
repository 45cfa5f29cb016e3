"""The measured job on epochgate, as the benchmark reaches it: on Spark, and for more subtasks than
Spark has room for on this machine, over the same wire without Spark.

Hundreds of Python workers that Spark starts at once on two cores do not come through the handshake
within its 5 s. Without Spark the processes are started a few at a time; the driver, the wire and
the code of the tasks are the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from epochgate.benchmarks.flink.contender import HOSTS, CheckpointTime
from epochgate.benchmarks.flink.coordinator import WAIT_S, MeasuringCoordinator, counting_program
from epochgate.benchmarks.loopback import LoopbackTransport
from epochgate.benchmarks.watching import OPERATOR, WatcherProvider
from epochgate.runtime import JobConfiguration, JobLoop, JobMaster
from epochgate.runtime.api.reports import JobReport
from epochgate.runtime.api.restart_strategies import FailureRate
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import DirectoryCheckpointStore
from epochgate.spark import local_session, run_job

JOB_ID = "head-to-head"
SPARK_SUBTASKS_MAX = 16
EXECUTOR_MIB = 1024
PRELOADED = ("epochgate.spark.task_main", "epochgate.benchmarks.flink.spark_job")


class OurJob:
    """The job: its coordinator is in this process."""

    def __init__(self, coordinator: MeasuringCoordinator, report: JobReport) -> None:
        self._coordinator, self._report = coordinator, report
        self.stream_in_calls = coordinator.stream_in_calls
        self.stream_by_thread = coordinator.stream_by_thread
        self.confirmed_trips_us = coordinator.confirmed_trips_us
        self.answered_trips_us = coordinator.answered_trips_us
        self.begin_load = coordinator.begin_load
        self.end_load = coordinator.end_load
        self.raise_ms = coordinator.raise_ms
        self.fail_all_ms = coordinator.fail_all_ms

    @property
    def driver(self) -> psutil.Process:
        """This process."""
        return psutil.Process(os.getpid())

    def others(self) -> list[psutil.Process]:
        """Spark's JVMs if there are any, and the processes of the tasks."""
        return self.driver.children(recursive=True)

    def checkpoints(self, times: int) -> list[CheckpointTime]:
        """Take checkpoints, each when the one before is completed."""
        took = []
        for _ in range(times):
            begun_s = time.perf_counter()
            number = self._coordinator.context.checkpoints.request().result(WAIT_S)
            clock_ms = (time.perf_counter() - begun_s) * 1e3
            reports = reversed(self._report.checkpoints)
            report = next(one for one in reports if one.checkpoint_id == number)
            took.append(CheckpointTime(clock_ms, report.duration_s * 1e3))
        return took


@contextmanager
def our_job(subtasks: int, folder: Path) -> Iterator[OurJob]:
    """Run the job, on Spark if its subtasks have room there; its files go into `folder`."""
    provider = WatcherProvider(MeasuringCoordinator)
    configuration = JobConfiguration(
        JOB_ID,
        subtasks,
        (provider,),
        checkpoint_interval_s=None,
        restart_strategy=FailureRate(failures_max=1000, interval_s=60.0, delay_s=0.0),
    )
    store = DirectoryCheckpointStore(folder / "checkpoints", job_id=JOB_ID)
    running = on_spark if subtasks <= SPARK_SUBTASKS_MAX else without_spark
    with running(configuration, store) as report:
        provider.watcher.all_since(0.0)
        yield OurJob(provider.watcher, report)


@contextmanager
def on_spark(
    configuration: JobConfiguration, store: DirectoryCheckpointStore
) -> Iterator[JobReport]:
    """Run it in a Spark session of its own, in executors that are processes."""
    slots = -(-configuration.parallelism // HOSTS)
    master = f"local-cluster[{HOSTS},{slots},{EXECUTOR_MIB}]"
    with (
        local_session(master, app_name="epochgate head to head") as spark,
        run_job(spark, configuration, counting_program, store=store) as job,
    ):
        yield job.report


@contextmanager
def without_spark(
    configuration: JobConfiguration, store: DirectoryCheckpointStore
) -> Iterator[JobReport]:
    """Run it in processes on the loopback address."""
    transport = LoopbackTransport(
        counting_program,
        parallelism=configuration.parallelism,
        coordinators=[OPERATOR],
        run_id=configuration.run_id,
        preloaded=PRELOADED,
    )
    master = JobMaster(
        configuration,
        transport=transport,
        store=store,
        clock=MonotonicClock(),
        blocking=ThreadedWork,
    )
    loop = JobLoop(master)
    loop.start()
    try:
        yield master.report
    finally:
        master.stop()
        loop.join(WAIT_S)
