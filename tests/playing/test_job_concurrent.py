"""Random schedules on the closed system of concurrent attempts: the production job does the same
step by step, and event by event while others wait; a wrong argument of an effect is found.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.concurrent_job import ConcurrentJob
from tests.checker.side_by_side import again, drawn
from tests.playing.gates import Lie, the_truth
from tests.playing.job_concurrent_stage import ConcurrentEvents, ConcurrentStage
from tests.playing.job_lies import arguments_of, lying
from tests.playing.swarm import kind

STEPS_MAX = 100
WALKS, DEEP_WALKS = 12, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))
EAGERNESS = 0.5
"""How often the oldest event is processed, if a step could begin instead."""
SYSTEMS: tuple[ClosedSystem, ...] = (
    ConcurrentAttempts(),
    ConcurrentAttempts(starts=4, F=2, overtaking=1),
    ConcurrentAttempts(vertices=2, events=2, F=2),
)
STEPS = {f"{step.machine}.{step.trigger}" for step in ConcurrentAttempts.STEPS}


class Swarm:
    """Draws steps: in every other walk mostly fair ones, in the others each kind as often as the
    walk likes it; and first those of a kind that was not taken yet.
    """

    def __init__(self, seed: int, steps: dict[str, bool], taken: set[str]) -> None:
        self.draw, self._steps, self.taken = random.Random(seed), steps, taken
        self._is_usual = seed % 2 == 0
        self._liked = defaultdict[str, float](lambda: self.draw.choice((1, 0.1, 0.01)))

    def new(self, possible: list[str]) -> list[str]:
        """Those of kinds that were not taken yet."""
        return [step for step in possible if kind(step) not in self.taken]

    def step(self, possible: list[str]) -> str:
        """Draw one of them."""
        if self._is_usual:
            return drawn(self.draw, self._steps, possible)
        return self.draw.choices(possible, [self._liked[kind(step)] for step in possible])[0]


def walk(system: ClosedSystem, seed: int, taken: set[str], lie: Lie = the_truth) -> None:
    """Take random steps, each of which ends before the next one begins."""
    stage = ConcurrentStage(again(system), lie)
    swarm = Swarm(seed, stage.steps, taken)
    try:
        for _ in range(STEPS_MAX):
            if not (possible := stage.possible()):
                return
            step = swarm.step(swarm.new(possible) or possible)
            taken.add(kind(step))
            stage.take(step)
    finally:
        stage.played.close()


def interleave(system: ClosedSystem, seed: int, behind: set[str]) -> None:
    """Begin random steps while the events of earlier ones wait."""
    stage = ConcurrentEvents(again(system))
    swarm = Swarm(seed, stage.steps, behind)
    try:
        for _ in range(STEPS_MAX):
            possible = stage.possible()
            new = swarm.new(possible) if stage.waiting else []
            if stage.waiting and not new and (not possible or swarm.draw.random() < EAGERNESS):
                stage.process()
            elif possible:
                step = swarm.step(new or possible)
                if stage.waiting:
                    behind.add(kind(step))
                stage.begin(step)
            else:
                return
    finally:
        stage.played.close()


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_has_concurrent_attempts_step_by_step_as_the_closed_system(walks: int) -> None:
    taken = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            walk(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_has_concurrent_attempts_event_by_event_as_the_closed_system(
    walks: int,
) -> None:
    behind = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            interleave(system, seed, behind)
    assert behind == STEPS


ELSEWHERE = ("committer", "post_commit")
"""Machines whose lies `test_job_commits` finds."""
LIES = [told for told in arguments_of(ConcurrentJob) if told.partition(".")[0] not in ELSEWHERE]
NOT_THERE = "no step of the closed system leads to where it is told; `test_job_lies` finds it"
UNFOUND: dict[str, str] = {
    **dict.fromkeys(
        (
            *("attempt.scheduler.dismiss(identity)", "attempt.scheduler.metrics(counters)"),
            *("attempt.scheduler.release(identity)", "gateway.sender.held(event)"),
            *("checkpoint.driver.unknown(checkpoint)", "checkpoint.driver.unknown(reason)"),
            *("holder.user.batch_snapshot(request)", "holder.user.client_request(request)"),
            *("holder.user.rebuild(checkpoint)", "lifecycle.driver.ending(reason)"),
            *(f"holder.user.refuse_{why}(request)" for why in ("broken", "early", "failing")),
            *("holder.user.refuse_late(request)", "holder.user.refuse_periodic(request)"),
        ),
        NOT_THERE,
    ),
    "vertex.record.outlived(place)": "the record has the subtask and the number of the attempt",
}
"""Wrong arguments that no walk finds, and why that may be."""
LIE_WALKS = 40
SAMPLE = ("attempt.task.restore(identity)", "vertex.record.outlived(attempt)")
"""Those that each run of the tests looks for."""


@pytest.mark.parametrize(
    "argument",
    [told if told in SAMPLE else pytest.param(told, marks=pytest.mark.mutants) for told in LIES],
)
def test_a_wrong_argument_is_found(argument: str) -> None:
    is_found = any(
        _finds(system, seed, lying(argument, by))
        for seed in range(LIE_WALKS)
        for system in SYSTEMS
        for by in (1, -1)
    )
    assert is_found != (argument in UNFOUND), UNFOUND.get(argument, "no walk finds it")


def _finds(system: ClosedSystem, seed: int, lie: Lie) -> bool:
    try:
        walk(system, seed, set(STEPS) if seed % 4 > 1 else set(), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False
