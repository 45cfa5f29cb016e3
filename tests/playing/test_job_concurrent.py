"""Random schedules on the closed system of concurrent attempts: the production job does the same
step by step, and event by event while others wait; a wrong argument of an effect is found.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.concurrent_job import ConcurrentJob
from tests.checker.side_by_side import again
from tests.playing.gates import Lie, the_truth
from tests.playing.job_concurrent_stage import ConcurrentEvents, ConcurrentStage
from tests.playing.job_lies import arguments_of, lying
from tests.playing.swarm import interleave, swarm_of, walk

STEPS_MAX = 100
WALKS, DEEP_WALKS = 12, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))
SYSTEMS: tuple[ClosedSystem, ...] = (
    ConcurrentAttempts(),
    ConcurrentAttempts(starts=4, F=2, overtaking=1),
    ConcurrentAttempts(vertices=2, events=2, F=2),
)
STEPS = {f"{step.machine}.{step.trigger}" for step in ConcurrentAttempts.STEPS}


def walked(system: ClosedSystem, seed: int, taken: set[str], lie: Lie = the_truth) -> None:
    """Take random steps, each of which ends before the next one begins."""
    stage = ConcurrentStage(again(system), lie)
    try:
        walk(stage, swarm_of(stage, seed, taken), STEPS_MAX)
    finally:
        stage.played.close()


def interleaved(system: ClosedSystem, seed: int, behind: set[str]) -> None:
    """Begin random steps while the events of earlier ones wait."""
    stage = ConcurrentEvents(again(system))
    try:
        interleave(stage, swarm_of(stage, seed, behind), STEPS_MAX)
    finally:
        stage.played.close()


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_has_concurrent_attempts_step_by_step_as_the_closed_system(walks: int) -> None:
    taken = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            walked(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_has_concurrent_attempts_event_by_event_as_the_closed_system(
    walks: int,
) -> None:
    behind = set[str]()
    for system in SYSTEMS:
        for seed in range(walks):
            interleaved(system, seed, behind)
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
        walked(system, seed, set(STEPS) if seed % 4 > 1 else set(), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False
