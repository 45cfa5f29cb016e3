"""Jobs in simulation whose traces tests look at: events both ways, checkpoints, a death, an end."""

from __future__ import annotations

from pathlib import Path

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.scripted import ScriptedProvider
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.runtime.tracing.file_journal import SEGMENT_BYTES, SEGMENTS_MAX, Tracing
from tests.runtime.scripted import Script, ScriptedCommitter, echo_program

SECRET = "the password is swordfish"
EVENTS = 40


def told(
    directory: Path,
    *,
    events: int = EVENTS,
    subtasks: int = 2,
    rounds: int = 3,
    segment_bytes: int = SEGMENT_BYTES,
    segments_max: int = SEGMENTS_MAX,
) -> Path:
    """Run a job whose processes write traces, and return the directory of its run.

    In each round the coordinator sends events with a secret, which come back, and a checkpoint is
    taken; after the first round a process is killed.
    """
    script = Script()

    def configure(_: int) -> JobConfiguration:
        return JobConfiguration(
            "story",
            subtasks,
            (ScriptedProvider("op", script),),
            restart_strategy=FixedDelay(5, 1.0),
            checkpoint_interval_s=None,
        )

    job = SimulatedJob(
        configure,
        lambda _: echo_program(script),
        committer=lambda: ScriptedCommitter(script),
        journal=Tracing(
            str(directory),
            "story",
            "",
            segment_bytes=segment_bytes,
            segments_max=segments_max,
        ),
    )
    job.settle()
    for number in range(rounds):
        coordinator = script.coordinators[-1]
        for subtask in range(subtasks):
            for event in range(events):
                coordinator.gateways[subtask].send_event([SECRET, event])
        job.settle()
        job.master.request_checkpoint()
        job.settle()
        if number == 0:
            job.transport.kill(1)
            job.settle()
    job.master.stop()
    job.settle()
    assert job.result.state == "finished", job.result
    job.master.close()
    return directory / "run-0"
