"""Doors to user code before a job begins, when a coordinator is made again, in a checkpoint that
fails, and of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import Committables, Committer, JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.scripted import (
    ScriptedCoordinator,
    ScriptedProgram,
    ScriptedProvider,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime import doors
from tests.runtime.at_door import Door
from tests.runtime.hung import EndingTask, Hung
from tests.runtime.pipeline.parts import Table, ToTable
from tests.runtime.scripted import EchoOperator, Script

RAISED = pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
FILE = 'at_door.py", line '


class Sink(Committer):
    def commit(self, checkpoint_id: int, committables: Committables) -> None: ...


class Provider(ScriptedProvider):
    def redistribute(self, states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        return dict.fromkeys(range(parallelism), b"")


def job_of(
    door: Door, script: Script, subtasks: Callable[[int], int] = lambda _: 2
) -> SimulatedJob:
    """A job whose provider, operators and committer come to their doors."""

    def configure(start: int) -> JobConfiguration:
        return JobConfiguration(
            "edges",
            subtasks(start),
            (door.of(Provider, "provider")("op", script, door.of(ScriptedCoordinator, "op")),),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(20, 1.0),
            tolerable_checkpoint_failures=20,
        )

    def program(subtask: int) -> ScriptedProgram:
        return ScriptedProgram({"op": door.of(EchoOperator, "operator")(script)}, script)

    return SimulatedJob(configure, program, committer=door.of(Sink, "committer"))


def begin_pipeline(door: Door) -> None:
    sink = door.of(ToTable, "sink")(door, Table())
    SimulatedJob.of(Pipeline(source=FunctionSource([1], lambda split: [split]), sink=sink))


def begin_again(door: Door) -> None:
    """With another parallelism, from a checkpoint."""
    job = job_of(door, Script(), lambda start: 2 + start)
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    job.crash_driver()


@RAISED
@pytest.mark.parametrize("door", doors.BEFORE)
def test_what_is_raised_before_a_job_begins_is_raised_to_its_caller(
    door: str, raised: type[BaseException]
) -> None:
    at = Door(door, raised)
    begin = begin_pipeline if door.startswith("sink.") else begin_again
    with pytest.raises(raised):
        begin(at)


def told_by(job: SimulatedJob) -> list[str]:
    report = job.master.report
    told = [f.reason for f in report.failures] + [c.reason or "" for c in report.checkpoints]
    return [*told, *report.warnings, report.failure_reason or ""]


@RAISED
@pytest.mark.parametrize("door", doors.EDGES)
def test_what_is_raised_at_the_edges_is_told_with_type_file_and_line(
    door: str, raised: type[BaseException]
) -> None:
    script = Script()
    script.raise_at("op.start", ValueError("it is made again"))
    at = Door(door, raised, before=1 if door == "provider.create" else 0)
    job = job_of(at, script)
    for turn in range(4):
        job.wait(1.0)
        job.flow()
        script.is_completing = turn % 2 == 0
        if not job.is_over:
            job.master.request_checkpoint()
        job.flow()
        if not script.is_completing and job.transport.processes:
            job.transport.kill(max(job.transport.processes))
        job.flow()
    job.master.cancel()
    job.settle(until=lambda: job.is_over)
    assert at.has_raised
    if door == "committer.metrics":  # what it counts is for the display; the log has it
        return
    told = told_by(job)
    assert any(raised.__name__ in text and FILE in text for text in told), told


@RAISED
@pytest.mark.parametrize("door", doors.STORE)
def test_what_a_store_raises_ends_the_job_or_is_raised_to_who_starts_it(
    door: str, raised: type[BaseException]
) -> None:
    at = Door(door, raised)
    store = at.of(InMemoryCheckpointStore, "store")(job_id="hung")
    try:
        job = Hung(Script(), store=store, task=EndingTask)
    except raised:
        return
    result = job.loop.join(10)
    assert at.has_raised
    told = [result.reason or "", *result.report.warnings]
    assert any(raised.__name__ in text and FILE in text for text in told), told
