"""Random schedules on the forms of the job that resume from a checkpoint, and whose senders are
refused: step by step, and while events wait.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.runtime.testing.playing import NOT_BEHIND_ANY, InterleavedStage, ProductionStage
from tests.checker.side_by_side import again, drawn
from tests.checker.test_interleaving import PatientEnding, PatientResuming, stage_of
from tests.playing.job_heard import HeardStage
from tests.playing.swarm import kind

STEPS_MAX = 120
WALKS, DEEP_WALKS = 8, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))
EAGERNESS = 0.5
"""How often the oldest event is processed, if a step could begin instead."""
FORMS: dict[str, tuple[ClosedSystem, ...]] = {
    "pressed": (
        PressedJob(F=2),
        PressedJob(subtasks=2, wanted=2, F=2),
        PressedJob(unconfirmed_bytes_max=2),
        PressedJob(coordinators=2, events=2),
    ),
    "resuming": (ResumingJob(), ResumingJob(subtasks=2, F=2), ResumingJob(coordinators=2, F=2)),
}
PATIENT: dict[str, tuple[ClosedSystem, ...]] = {
    "pressed": FORMS["pressed"],
    "resuming": (PatientResuming(F=2), PatientResuming(subtasks=2, wanted=3, F=2)),
}


OWN: dict[str, set[str]] = {
    "pressed": set(),
    "resuming": {
        *("launch.resume", "launch.resume_in_doubt", "launch.resume_given"),
        *("user.break_restore", "user.break_restore_for_good"),
    },
}
"""The kinds of steps that no other form has; walks take them as soon as they are possible."""


class Swarm:
    """Draws steps: in every other walk mostly fair ones, in the others each kind as often as the
    walk likes it; and first of all those of `wanted`, which are wanted no more then.
    """

    def __init__(self, seed: int, steps: dict[str, bool], wanted: set[str]) -> None:
        self.draw, self._steps, self._wanted = random.Random(seed), steps, wanted
        self._is_usual = seed % 2 == 0
        self._liked = defaultdict[str, float](lambda: self.draw.choice((1, 0.1, 0.01)))

    def wanted(self, possible: list[str]) -> list[str]:
        """Those of the possible steps that are wanted."""
        return [step for step in possible if kind(step) in self._wanted]

    def step(self, possible: list[str]) -> str:
        """Draw one of them."""
        if wanted := self.wanted(possible):
            step = self.draw.choice(wanted)
            self._wanted.discard(kind(step))
            return step
        if self._is_usual:
            return drawn(self.draw, self._steps, possible)
        return self.draw.choices(possible, [self._liked[kind(step)] for step in possible])[0]


def walk(stage: ProductionStage, seed: int, wanted: set[str]) -> None:
    """Take random steps, each of which ends before the next one begins."""
    swarm = Swarm(seed, stage.steps, wanted)
    for _ in range(STEPS_MAX):
        if not (possible := stage.possible()):
            return
        stage.take(swarm.step(possible))


def interleave(stage: InterleavedStage, seed: int, wanted: set[str]) -> None:
    """Begin random steps while the events of earlier ones wait, and those that are wanted then."""
    swarm = Swarm(seed, stage.steps, wanted)
    for _ in range(STEPS_MAX):
        possible = stage.possible()
        found = swarm.wanted(possible)
        if stage.is_settled:
            possible = [step for step in possible if step not in found] or possible
        if not stage.is_settled and not found and swarm.draw.random() < EAGERNESS:
            stage.process()
        elif possible:
            stage.begin(swarm.step(possible))
        elif stage.is_settled:
            return


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_does_step_by_step_as_the_form_of_the_job(form: str, walks: int) -> None:
    wanted = set(OWN[form])
    for seed in range(walks):
        for system in FORMS[form]:
            walk(HeardStage(again(system)), seed, wanted)
    assert not wanted


@pytest.mark.parametrize("form", PATIENT)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_does_what_waits_as_the_form_of_the_job(form: str, walks: int) -> None:
    wanted = OWN[form] - NOT_BEHIND_ANY.keys()
    for seed in range(walks):
        for system in PATIENT[form]:
            interleave(stage_of(system), seed, wanted)
    assert not wanted


def test_a_sender_that_is_refused_waits_for_room_in_the_model_and_in_the_runtime() -> None:
    stage = ProductionStage(PressedJob())
    for step in ("launch.launch", "process[0].arrive", *["process[0].hear"] * 2):
        stage.take(step)
    send = "sender[0][0].send"
    stage.take(send)
    stage.take(send)
    room = stage.job.coordinator(0).waiting_for_room[0]
    assert not room.done()
    assert send not in stage.possible()
    stage.take("process[0].tell")
    assert room.done()
    assert send in stage.possible()


def test_a_process_that_comes_after_its_attempt_has_finished_says_so_and_leaves() -> None:
    """Another one came back for the attempt while the restart that asked for this one waited."""
    stage = stage_of(PatientEnding(F=1))
    for step in ("launch.launch", "process[0].arrive", *["process[0].hear"] * 2):
        stage.take(step)
    stage.take("user[0].fail_everything")
    stage.take("process[0].hear")
    stage.begin("restarter.back_off")
    stage.begin("process[0].come_back")
    while not stage.is_settled:
        stage.process()
    stage.take("process[0].hear")
    stage.take("process[0].hear")
    stage.take("process[0].end_input")
    stage.take("process[0].hear")
    for step in (
        *("user[0].take_snapshot", "process[0].tell", "process[0].hear", "store.finish_save"),
        *("sink.finish", "sink.finish_work", "process[0].tell", "process[0].hear"),
        "process[0].arrive",
    ):
        assert step in stage.possible(), step
        stage.take(step)
    assert stage.job.job.attempt[0].state == "finished"
    heard = []
    while words := stage.job.words(0):
        heard.append(words[0])
        stage.take("process[0].hear")
    assert heard == ["hear", "lose"]
