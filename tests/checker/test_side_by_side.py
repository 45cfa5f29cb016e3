"""Random schedules on the job, in all its forms at once: the machines as they stand, the
`transitions` library, every compiled target, and the production runtime. After each step the state
is the same in all of them, and so is what is possible next.

What is not possible is shown from both sides. The library refuses the step and changes nothing; the
runtime has nothing for it to happen to, as its table of actions tells for each step.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.fsm.closed import Step
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.talking import TalkingJob
from epochgate.runtime.testing.playing import ACTIONS, ProductionStage
from tests.checker.side_by_side import SideBySide, again, drawn


def repr_of(system: Any) -> str:
    """For instance `ClosedJob subtasks=1 F=2`."""
    known = type(system).CONSTANTS
    own = {n: v for n, v in system.constants.items() if known[n] != v and n not in system.DERIVED}
    return " ".join([type(system).__name__, *(f"{n}={v}" for n, v in own.items())])


def key(step: str) -> str:
    """For instance `process.hear`, whichever process it is."""
    return re.sub(r"\[\d+\]", "", step)


STEPS_MAX = 100
WALKS, DEEP_WALKS = 4, 60


class JobInDoubt(ClosedJob):
    """A job whose store may keep a checkpoint and lose the answer."""

    STEPS = (*ClosedJob.STEPS, Step("store", "lose_answer", is_fair=False))


JOBS: tuple[ClosedJob, ...] = (ClosedJob(), EndingJob(), TalkingJob(F=2), AskedJob(F=2))
DEEP_JOBS: tuple[ClosedJob, ...] = (
    ClosedJob(F=3),
    ClosedJob(coordinators=2, events=2),
    ClosedJob(F=2, renumbered=1),
    EndingJob(subtasks=2, wanted=2, F=2),
    TalkingJob(subtasks=2, said=2, F=2),
    TalkingJob(coordinators=2, F=2),
    PressedJob(),
    ResumingJob(F=2),
    LiveJob(),
)


def walked(forms: SideBySide, system: Any, seed: int) -> Iterator[str]:
    """Take random steps in all forms at once; yields their names."""
    draw, state = random.Random(seed), forms.program.initial
    stage = ProductionStage(again(system))
    for _ in range(STEPS_MAX):
        numbers = forms.possible(state)
        possible = [forms.names[number] for number in numbers]
        assert (stage.possible(), stage.really_possible()) == (possible, possible)
        forms.refused(state, set(range(len(forms.names))) - set(numbers))
        if not numbers:
            return
        step = drawn(draw, stage.steps, possible)
        state = forms.taken(state, forms.names.index(step))
        stage.take(step)  # compares the machines that run with those of the stage
        assert stage.machines.words() == state
        yield step


@pytest.mark.parametrize("system", JOBS, ids=repr_of)
def test_every_form_of_the_job_takes_the_same_steps(system: Any) -> None:
    forms = SideBySide(system)
    steps = [step for seed in range(WALKS) for step in walked(forms, system, seed)]
    assert len(steps) > WALKS * 20


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", DEEP_JOBS, ids=repr_of)
def test_every_form_of_the_job_takes_the_same_steps_for_long(system: Any) -> None:
    forms = SideBySide(system)
    for seed in range(DEEP_WALKS):
        assert [*walked(forms, system, seed)]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.deep) for n in range(2, 12))]
)
def test_every_action_is_taken_and_is_at_times_impossible(seed: int) -> None:
    taken, impossible, draw = set[str](), set[str](), random.Random(seed)
    for system in (*JOBS, JobInDoubt(), *DEEP_JOBS, EndingJob(F=3)) * 24:
        if taken == set(ACTIONS):
            break
        stage = ProductionStage(again(system))
        if {key(step) for step in stage.steps} <= taken:
            continue  # it has nothing that is still to be seen
        for _ in range(STEPS_MAX):
            if not (possible := stage.possible()):
                break
            impossible |= {key(step) for step in set(stage.steps) - set(possible)}
            new = [step for step in possible if key(step) not in taken]
            step = draw.choice(new) if new else drawn(draw, stage.steps, possible)
            taken.add(key(step))
            stage.take(step)
    assert taken == set(ACTIONS)
    assert set(ACTIONS) - impossible == {"stale.arrive"}  # which changes nothing
