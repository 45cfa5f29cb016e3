"""Each fault of a world happens, at many moments, and a right job outlives all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochgate.runtime import Committables, Committer, OperatorContext
from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.testing import World, simulate
from tests.worlds.counting import Counting, CountingProvider, Listing


class Ledger(Committer):
    """Keeps what was committed where every driver finds it."""

    def __init__(self, pages: dict[int, Committables]) -> None:
        self.pages = pages

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.pages[checkpoint_id] = committables


class Handing(Listing):
    """Hands over what it has heard since the last checkpoint."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.committed = len(self.heard)
        self.handed_over: dict[int, int] = {}

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.handed_over[checkpoint_id] = len(self.heard)
        return self.heard[self.committed :]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.committed = self.handed_over.get(checkpoint_id, self.committed)


def committing(world: World) -> None:
    pages: dict[int, Committables] = {}
    job = world.job(
        CountingProvider(Counting),
        operators=Handing,
        subtasks=2,
        committer=lambda: Ledger(pages),
    )
    for _ in range(3):
        job.coordinator.send()
        world.move()
        job.checkpoint()
    world.calm()
    job.checkpoint()
    for subtask, operator in job.operators_of("count").items():
        rows = [row for page in sorted(pages) for row in pages[page].get(subtask, [])]
        assert rows == json.loads(operator.snapshot(0)) == [*range(1, len(rows) + 1)]
    assert job.coordinator.sent == [len(each.heard) for each in job.operators]


def found_with(fault: str) -> Found:
    return simulate(committing, runs=40, faults=(fault,)).simulation.search().at_random(40, 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_right_job_outlives_each_fault_and_each_fault_happens(fault: str) -> None:
    found = found_with(fault)
    assert found.failure is None, found.failure.broken
    assert {name for name, _ in found.struck} == {fault}


def test_a_right_job_outlives_all_of_them_together() -> None:
    found = simulate(committing).simulation.search().at_random(200, 1000)
    assert found.failure is None, found.failure.broken
    assert {moment for _, moment in found.struck} >= {
        *("snapshot", "barrier", "store", "commit", "restore", "running"),
    }


@pytest.mark.parametrize("fault", ["die", "lose-connection", "crash", "fail-everything"])
def test_what_the_test_does_itself_is_the_same_fault(fault: str) -> None:
    def body(world: World) -> None:
        job = world.job(CountingProvider(), operators=Listing, subtasks=2)
        job.coordinator.send()
        world.move()
        acts = {
            "die": lambda: job.kill(1),
            "lose-connection": lambda: job.cut(1),
            "crash": job.restart_driver,
            "fail-everything": job.go_back,
        }
        acts[fault]()
        assert fault in {name for name, _ in world.struck}

    simulate(body, runs=2, faults=())()


@pytest.mark.parametrize("message", ["confirmation", "acknowledgement"])
def test_single_messages_can_be_lost_late_and_repeated(message: str) -> None:
    def body(world: World) -> None:
        job = world.job(CountingProvider(), operators=Listing, subtasks=2)
        for act in (world.delay, world.repeat, world.lose):
            act(message)
            job.coordinator.send()
            world.move()
            job.checkpoint()
        world.calm()
        assert len(job.simulated.faults.strikes) in (0, 3) or job.starts > 1

    simulate(body, runs=5, faults=())()
