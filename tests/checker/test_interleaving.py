"""Random schedules on the job, in which messages, timers and answers come while the events of
earlier ones wait in the queue. After each event the production runtime is where the closed job's
machines are, and what is stored keeps I1 to I3 and I7.

Faults of the runtime that show only then are planted, and found.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest

from epochgate.fsm.checker.compiler.layout import Packing
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.compiler.python_target import PythonTarget
from epochgate.fsm.checker.schedule import ClaimBroken
from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.fsm.inside import machine_behind
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.job import Job
from epochgate.runtime.shell.coordinator_context import BoundGateway
from epochgate.runtime.shell.coordinators import Coordinators
from epochgate.runtime.testing.playing import (
    ACTIONS,
    NOT_BEHIND_ANY,
    Diverged,
    InterleavedStage,
    ProductionStage,
)
from tests.checker.side_by_side import again, drawn

STEPS_MAX = 120
WALKS, DEEP_WALKS = 10, 200
EAGERNESS = 0.5
"""How often the oldest event is processed, if a step could begin instead."""


class PatientJob(ClosedJob):
    """Each has room for a checkpoint that was asked for before the last one was over."""

    DERIVED: ClassVar[dict[str, str]] = {**ClosedJob.DERIVED, "checkpoints": "wanted + 1"}
    STEPS = (*ClosedJob.STEPS, Step("store", "lose_answer", is_fair=False))


class PatientEnding(EndingJob):
    DERIVED: ClassVar[dict[str, str]] = {**EndingJob.DERIVED, "checkpoints": "wanted + F + 3"}


class PatientTalk(TalkingJob):
    """This one has room for receipts that are never sent as well."""

    DERIVED: ClassVar[dict[str, str]] = {
        **TalkingJob.DERIVED,
        "checkpoints": "wanted + 1",
        "posted": "events * 2 + said * 9",
    }


class PatientAsked(AskedJob):
    DERIVED: ClassVar[dict[str, str]] = {**AskedJob.DERIVED, "checkpoints": "wanted + 1"}


class PatientResuming(ResumingJob):
    DERIVED: ClassVar[dict[str, str]] = {**ResumingJob.DERIVED, "checkpoints": "wanted + 1"}


JOBS: tuple[ClosedJob, ...] = (
    PatientJob(),
    PatientJob(coordinators=2, events=2),
    PatientEnding(F=2),
    PatientTalk(F=2),
    PatientAsked(F=2),
    PatientResuming(F=2),
    PressedJob(),
)
DEEP_JOBS: tuple[ClosedJob, ...] = (
    *JOBS,
    PatientJob(F=3),
    PatientEnding(subtasks=2, wanted=2, F=2),
    PatientTalk(subtasks=2, said=2, F=2),
    PatientTalk(coordinators=2, F=2),
    PatientResuming(subtasks=2, wanted=3, F=2),
    PressedJob(subtasks=2, wanted=2, F=2),
    PressedJob(coordinators=2, events=2),
)


def key(step: str) -> str:
    """For instance `process.hear`, whichever process it is."""
    return re.sub(r"\[\d+\]", "", step)


def walked(stage: InterleavedStage, seed: int, look: Callable[[], Any] = lambda: None) -> list[str]:
    """Begin random steps and process events in between; the steps that began while events waited.
    `look` is called where none waits.
    """
    draw, behind = random.Random(seed), list[str]()
    for _ in range(STEPS_MAX):
        if not stage.waiting:
            look()
        possible = stage.possible()
        if stage.waiting and (not possible or draw.random() < EAGERNESS):
            stage.process()
        elif possible:
            step = drawn(draw, stage.steps, possible)
            behind += [key(step)] if stage.waiting else []
            stage.begin(step)
        else:
            break
    return behind


def hunt(stage: InterleavedStage, seed: int, wanted: set[str]) -> None:
    """Walk on; where a step that is wanted is possible, begin another one, and that one behind it.
    What has begun so is wanted no more.
    """
    draw = random.Random(seed)
    for _ in range(STEPS_MAX):
        possible = stage.possible()
        found = [step for step in possible if key(step) in wanted]
        others = [step for step in possible if step not in found]
        usual = [step for step in others if stage.steps[step]]
        if found and stage.waiting:
            stage.begin(step := draw.choice(found))
            wanted.remove(key(step))
        elif stage.waiting and (not usual or draw.random() < EAGERNESS):
            stage.process()
        elif possible:
            stage.begin(draw.choice(others if found and others else usual or possible))


def stage_of(system: ClosedSystem) -> InterleavedStage:
    copy = again(system)
    assert isinstance(copy, ClosedJob)
    return InterleavedStage(copy)


@pytest.mark.parametrize("system", JOBS, ids=lambda s: type(s).__name__)
def test_the_runtime_processes_what_waits_as_the_closed_job_does(system: ClosedJob) -> None:
    behind = [step for seed in range(WALKS) for step in walked(stage_of(system), seed)]
    assert len(behind) > WALKS * 5


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", DEEP_JOBS, ids=lambda s: type(s).__name__)
def test_the_runtime_processes_what_waits_as_the_closed_job_does_for_long(
    system: ClosedJob,
) -> None:
    behind = [step for seed in range(DEEP_WALKS) for step in walked(stage_of(system), seed)]
    assert len(behind) > DEEP_WALKS * 5


def test_every_action_begins_while_events_wait_or_says_why_not() -> None:
    wanted = ACTIONS.keys() - NOT_BEHIND_ANY.keys()
    for seed in range(20):
        for system in JOBS if wanted else ():
            hunt(stage_of(system), seed, wanted)
    assert not wanted


def of_the_job(system: ClosedSystem) -> str:
    """The state of the machines that run in production."""
    machines = [machine for name in Job.MACHINES for machine in system.instances(name)]
    return repr([machine.values() for machine in machines])


def explored(system: ClosedSystem) -> set[str]:
    """The states of the machines that run, in all states that the closed system reaches."""
    lowering = Lowering(system)
    program = lowering.program()
    target, packing = PythonTarget(program), Packing(system, lowering.layout)
    known = {program.initial}
    waiting = [program.initial]
    while waiting:
        state = waiting.pop()
        found = {target.take(state, step) for step in target.enabled(state)} - known
        known |= found
        waiting += found
    masks = [0] * lowering.layout.words
    for cell in lowering.layout.cells.values():
        if re.split(r"[.\[]", cell.name)[0] in Job.MACHINES:
            masks[cell.word] |= ((1 << cell.bits) - 1) << cell.shift
    one_of_each = {tuple(map(operator.and_, state, masks)): state for state in known}
    states = set()
    for state in one_of_each.values():
        packing.load(state)
        states.add(of_the_job(system))
    return states


def note(stage: InterleavedStage, reached: set[str]) -> None:
    reached.add(of_the_job(stage.system))


@pytest.mark.slow
def test_once_nothing_waits_the_job_is_where_the_checker_has_been() -> None:
    known, reached = explored(TalkingJob(wanted=2)), set[str]()
    for seed in range(60):
        stage = stage_of(PatientTalk(wanted=1))
        walked(stage, seed, partial(note, stage, reached))
    assert not reached - known
    assert len(reached) > 100


def says_late_that_an_attempt_is_ready(
    self: Coordinators, number: int, place: int, attempt: int
) -> None:
    """The effect becomes an event, and reads the attempt's number when that is processed."""
    master = self._master

    def tell() -> None:
        now = machine_behind(master.job.attempt[place]).number
        gateway = BoundGateway(master, number, place, now)
        self.guarded(number, self[number].execution_attempt_ready, gateway.subtask, now, gateway)

    master.queue.post(tell)


def starts_at_once(self: Coordinators, number: int) -> None:
    """That a coordinator has started is not posted: it overtakes what was said before."""
    self[number].start()
    self._master.job.holder[number].started()


def walks_step_by_step(system: ClosedJob) -> None:
    """Take random steps, each of which ends before the next one begins."""
    for seed in range(30):
        draw, stage = random.Random(seed), ProductionStage(again(system))
        for _ in range(STEPS_MAX):
            if not (possible := stage.possible()):
                break
            stage.take(drawn(draw, stage.steps, possible))


def walks_event_by_event(system: ClosedJob) -> None:
    for seed in range(30):
        walked(stage_of(system), seed)


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("effect", "fault", "told"),
    [
        (
            "ready",
            says_late_that_an_attempt_is_ready,
            "heard ready of attempt 0 of subtask 0 after failed",
        ),
        ("start", starts_at_once, "is 'starting' in the model, and really 'started'"),
    ],
)
def test_an_effect_that_comes_at_another_moment_is_found_event_by_event_and_not_step_by_step(
    monkeypatch: pytest.MonkeyPatch, effect: str, fault: Callable[..., None], told: str
) -> None:
    monkeypatch.setattr(Coordinators, effect, fault)
    walks_step_by_step(PatientJob(subtasks=1, F=2))
    with pytest.raises((ClaimBroken, Diverged), match=told):
        walks_event_by_event(PatientJob(subtasks=1, F=2))
