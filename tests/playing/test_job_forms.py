"""Random schedules on the forms of the job that resume from a checkpoint, whose senders are
refused, and that go on for ever: step by step, and while events wait.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.runtime.testing.playing import NOT_BEHIND_ANY, ProductionStage
from tests.checker.side_by_side import again
from tests.checker.test_interleaving import PatientEnding, PatientResuming, stage_of
from tests.playing.job_heard import HeardStage
from tests.playing.swarm import interleave, swarm_of, walk

STEPS_MAX = 120
WALKS, DEEP_WALKS = 8, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(600))


class PatientLive(LiveJob):
    """There is room for a checkpoint that was asked for before the last one was over.

    Processes keep their numbers, by which an event that waits names them.
    """

    DERIVED: ClassVar[dict[str, str]] = {**LiveJob.DERIVED, "checkpoints": "wanted + 1"}


FORMS: dict[str, tuple[ClosedSystem, ...]] = {
    "pressed": (
        PressedJob(F=2),
        PressedJob(subtasks=2, wanted=2, F=2),
        PressedJob(unconfirmed_bytes_max=2),
        PressedJob(coordinators=2, events=2),
    ),
    "resuming": (ResumingJob(), ResumingJob(subtasks=2, F=2), ResumingJob(coordinators=2, F=2)),
    "live": (LiveJob(), LiveJob(subtasks=1, F=2), LiveJob(coordinators=2, F=3)),
}
PATIENT: dict[str, tuple[ClosedSystem, ...]] = {
    "pressed": FORMS["pressed"],
    "resuming": (PatientResuming(F=2), PatientResuming(subtasks=2, wanted=3, F=2)),
    "live": (PatientLive(renumbered=0, F=2), PatientLive(renumbered=0, coordinators=2, F=3)),
}


OWN: dict[str, set[str]] = {
    "pressed": set(),
    "resuming": {
        *("launch.resume", "launch.resume_in_doubt", "launch.resume_given"),
        *("user.break_restore", "user.break_restore_for_good"),
    },
    "live": {"names.wrap"},
}
"""The kinds of steps that no other form has; walks take them as soon as they are possible."""


def steps_of(form: str) -> set[str]:
    return {f"{step.machine}.{step.trigger}" for step in FORMS[form][0].STEPS}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_does_step_by_step_as_the_form_of_the_job(form: str, walks: int) -> None:
    every = steps_of(form)
    taken = every - OWN[form]
    for seed in range(walks):
        for system in FORMS[form]:
            stage = HeardStage(again(system))
            walk(stage, swarm_of(stage, seed, taken), STEPS_MAX)
    assert taken == every


@pytest.mark.parametrize("form", PATIENT)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_does_what_waits_as_the_form_of_the_job(form: str, walks: int) -> None:
    every = steps_of(form)
    behind = every - OWN[form] | NOT_BEHIND_ANY.keys()
    for seed in range(walks):
        for system in PATIENT[form]:
            stage = stage_of(system)
            interleave(stage, swarm_of(stage, seed, behind), STEPS_MAX)
    assert behind >= every


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
    while stage.waiting:
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
