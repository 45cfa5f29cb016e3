"""Receipts: what an operator has one for when it takes its snapshot is in its coordinator's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial

import pytest

from epochgate.runtime import JobConfiguration, Operator, RecreateOnReset
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.letters import WritingProgram, archive, letters_filed, letters_with_receipt

LETTERS = 12


def job_of(is_slow: bool, recreated: bool) -> SimulatedJob:
    def configure(_: int) -> JobConfiguration:
        provider = archive(is_slow)
        return JobConfiguration(
            "letters",
            2,
            (RecreateOnReset(provider) if recreated else provider,),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(100, 0.5),
        )

    return SimulatedJob(configure, lambda _: WritingProgram(LETTERS), retained=1000)


def check_every_checkpoint(job: SimulatedJob) -> int:
    """Return how many receipts the newest checkpoint holds, after each of them was found filed."""
    found = job.master.checkpoints.latest
    if found is None:
        return 0
    receipted = set().union(*(letters_with_receipt(s) for s in found.subtasks.values()))
    assert receipted <= letters_filed(found)
    return len(receipted)


@pytest.mark.parametrize("recreated", [False, True], ids=["kept", "recreated"])
@pytest.mark.parametrize("is_slow", [False, True], ids=["quick", "slow"])
def test_what_has_a_receipt_is_in_the_coordinators_part_of_the_checkpoint(
    is_slow: bool, recreated: bool
) -> None:
    """Whatever fails meanwhile; looked at after every step in which a checkpoint may complete."""
    most = 0
    for seed in range(15):
        job, chance = job_of(is_slow, recreated), random.Random(seed)
        for _ in range(600):
            turn(job, chance)
            most = max(most, check_every_checkpoint(job))
        job.settle(partial(getattr, job, "is_over"))
        assert job.result.state == "finished"
        assert check_every_checkpoint(job) == 2 * LETTERS
    assert most > LETTERS


def turn(job: SimulatedJob, chance: random.Random) -> None:
    """Let one thing happen; some of them are failures."""
    if job.is_over:
        return
    what = chance.random()
    if what < 0.004 and job.transport.processes:
        job.transport.kill(chance.choice(sorted(job.transport.processes)))
    elif what < 0.006:
        job.master.coordinators.fail_job_now(0, "by order")
    elif what < 0.05:
        job.master.request_checkpoint()
    elif what < 0.1:
        job.run_blocking()
    elif what < 0.11:
        job.advance()
    elif steps := job.steps():
        job.step(chance.choice(steps))
    job.drain(chance.choice([1, 3, None]))


def test_a_receipt_waits_for_the_barrier() -> None:
    job = job_of(is_slow=False, recreated=False)
    job.flow(held=("work",))
    wanted = job.master.request_checkpoint()
    job.drain()
    identity = min(job.transport.processes)
    writer = job.transport.processes[identity].worker.program.writer  # type: ignore[attr-defined]  # a WritingProgram
    job.step(("work", identity))
    job.step(("hear", identity))
    job.drain()
    subtask = job.transport.processes[identity].subtask
    gateway = job.machines.gateway[0, subtask]
    assert gateway.state == "closed"
    assert gateway.held.size() == 1
    assert writer.receipted == []
    job.settle(lambda: wanted.done() and len(writer.receipted) > 0)
    newest = job.master.checkpoints.latest
    assert newest is not None
    assert letters_with_receipt(newest.subtasks[subtask]) == set()


def test_an_operator_without_a_coordinator_is_told_so() -> None:
    class Lonely(WritingProgram):
        @property
        def operators(self) -> Mapping[str, Operator]:
            return {"orphan": self.writer}

    job = SimulatedJob(
        lambda _: JobConfiguration("lonely", 1, (), checkpoint_interval_s=None),
        lambda _: Lonely(1),
    )
    job.settle(lambda: job.is_over)
    assert "operator 'orphan' has no coordinator to send '0-1' to" in str(job.result.reason)
