"""Random schedules of the closed systems inside coordinators, on the shells that run in production:
step by step, and with events that wait. Shells, readers and coordinators do what the model does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from epochgate.models.closed.readers import ConcurrentSources
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.closed.sources import Sources
from epochgate.models.recreation import Recreations
from epochgate.models.split_assignment import SplitAssignments
from epochgate.runtime.shell.recreate_on_reset import (
    Call,
    CoordinatorNotClosed,
    Inner,
    Inners,
    RecreatedCoordinator,
)
from epochgate.runtime.source import ReaderNotRegistered, SourceCoordinator, SourceSplit, events
from epochgate.runtime.source.assignment import Assignments
from tests.checker.side_by_side import again
from tests.playing.job_lies import arguments_of, lying
from tests.playing.readers import ReadersWorld
from tests.playing.recreation import Numbered, RecreationWorld
from tests.playing.sources import SourcesWorld
from tests.playing.swarm import Swarm, interleave, walk
from tests.playing.test_playing import Made, steps_of
from tests.playing.waiting import WaitingStage

WALKS, DEEP_WALKS = 200, 2000
WAITING, DEEP_WAITING = 50, 1000
STEPS_MAX = 150
DEEP = (pytest.mark.deep, pytest.mark.timeout(1200))
PLAYED: dict[str, Made] = {
    "sources": (
        (
            *(Sources(), Sources(S=2, K=2, F=2, P=3), Sources(S=2, K=2, places=2)),
            Sources(subtasks=1, S=3, K=3, F=3, G=2, P=3),
        ),
        SourcesWorld,
    ),
    "readers": (
        (ConcurrentSources(), ConcurrentSources(S=3, places=3, attempts=7)),
        ReadersWorld,
    ),
    "recreation": (
        (RecreatedJob(), RecreatedJob(R=4, E=5, F=3), RecreatedJob(F=0, E=4)),
        RecreationWorld,
    ),
}
"""Closed systems, and the world of the shells of their machines; walks take the systems in turn."""


BEGINNINGS: dict[str, tuple[str, ...]] = {
    "sources": (
        *("reader[1].begin", "reader[1].hear", "dealer[0].push", "dealer[1].push"),
        *("reader[0].begin", "job.take"),
    ),
}
"""How some walks begin: hardly one comes by itself to where splits of one subtask wait for its
reader while a checkpoint is taken of those of another.
"""


def walk_on(name: str, stage: WaitingStage, seed: int, taken: set[str]) -> None:
    """Take random steps, in some walks on the second of the systems behind those of a beginning."""
    for step in BEGINNINGS.get(name, ()) if seed % 8 == 1 else ():
        assert step in stage.possible(), f"{step} is not possible"
        stage.take(step)
    walk(stage, Swarm(seed, taken))


@contextmanager
def staged(made: Made, seed: int) -> Iterator[WaitingStage]:
    system = again(made[0][seed % len(made[0])])
    world = made[1](system)
    try:
        yield WaitingStage(system, world)
    finally:
        world.close()


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_shells_take_every_step_of_their_system(name: str, walks: int) -> None:
    taken = set[str]()
    for seed in range(walks):
        with staged(PLAYED[name], seed) as stage:
            walk_on(name, stage, seed, taken)
    assert taken == set().union(*map(steps_of, PLAYED[name][0]))


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("walks", [WAITING, pytest.param(DEEP_WAITING, marks=DEEP)])
def test_shells_process_what_waits_as_their_system_does(name: str, walks: int) -> None:
    behind = set[str]()
    for seed in range(walks):
        with staged(PLAYED[name], seed) as stage:
            interleave(stage, Swarm(seed, behind), STEPS_MAX)
    assert behind == set().union(*map(steps_of, PLAYED[name][0]))


def message_of(argument: str) -> str:
    """For instance `asked` of `assignment.enumerator.asked(attempt)`."""
    return argument.partition("(")[0].rpartition(".")[2]


ONE_AT_A_TIME = "the shell has one coordinator at a time, and a claim is held against the number"
UNFOUND: dict[str, str] = {
    "assignment.enumerator.asked(attempt)": "an enumerator is told which subtask asks, and not by "
    "which attempt; a claim is held against it",
    **{
        f"recreation.inner.{message}(generation)": ONE_AT_A_TIME
        for message in ("close", "fail_job", "make", "pass_on", "restore", "start")
    },
}
"""Wrong arguments that no walk finds, and why that may be."""
NOT_TOLD = ("asked", "listed", "said")
"""Messages of `assignment` that no step of `readers` leads to."""
LIES = {
    "sources": arguments_of(SplitAssignments),
    "readers": [
        told for told in arguments_of(SplitAssignments) if message_of(told) not in NOT_TOLD
    ],
    "recreation": arguments_of(Recreations),
}


def nearby(value: Any, by: int) -> Any:
    """A value of the same kind beside this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + by if value + by >= 0 else value - by
    if isinstance(value, SourceSplit):
        return SourceSplit(str(nearby(int(value.split_id), by)))
    if isinstance(value, Numbered):
        return value.nearby(by)
    tag, told = value
    return [tag, nearby(told, by)]


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        pytest.param(name, told, id=f"{name}-{told}", marks=[pytest.mark.deep] * (told in UNFOUND))
        for name, arguments in LIES.items()
        for told in arguments
    ],
)
def test_a_wrong_argument_is_found(name: str, argument: str, by: int) -> None:
    systems, world = PLAYED[name]
    made = systems, partial(world, lie=lying(argument, by, nearby))
    taken = set[str]()
    is_found = any(_finds(name, made, seed, taken) for seed in range(WALKS))
    assert is_found != (argument in UNFOUND), UNFOUND.get(argument, "no walk finds it")


def _finds(name: str, made: Made, seed: int, taken: set[str]) -> bool:
    try:
        with staged(made, seed) as stage:
            walk_on(name, stage, seed, taken)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False


def _end_in_front(assignments: Assignments, subtask: int, attempt: int) -> None:
    assignments.send_event(subtask, attempt, [events.NO_MORE])


def _announce_in_vain(assignments: Assignments, subtask: int) -> None:
    assignments._enumerator().add_reader(subtask)
    assignments._fire(assignments._of(subtask).announced)


def _take_until_unsent(assignments: Assignments, checkpoint_id: int) -> None:
    assignments._unsent = []
    for machine in assignments._system.assignment:
        assignments._fire(machine.take, checkpoint_id)
        if assignments._unsent:
            raise ReaderNotRegistered("splits would be in no state")


def _complete_the_aborted(coordinator: SourceCoordinator, checkpoint_id: int) -> None:
    coordinator._assignments.complete(checkpoint_id)


def _close_on_one_thread(inners: Inners, generation: int) -> None:
    inners._error = CoordinatorNotClosed(f"a coordinator that was replaced {inners._problem}")


def _ask_as_the_job(coordinator: RecreatedCoordinator, request: Any) -> Any:
    return coordinator._call(Call(lambda inner: inner.answer(request)))


PLANTED: dict[str, tuple[str, type, str, Any]] = {
    "the end overtakes splits": ("readers", Assignments, "tell_no_more", _end_in_front),
    "an enumerator that raises has not heard": (
        *("sources", Assignments),
        *("_announce", _announce_in_vain),
    ),
    "what waits keeps others": ("sources", Assignments, "take", _take_until_unsent),
    "an aborted checkpoint counts": (
        *("sources", SourceCoordinator),
        *("notify_checkpoint_aborted", _complete_the_aborted),
    ),
    "nothing is fenced": ("recreation", Inner, "fence", lambda inner, reason: None),
    "a close that hangs holds others": ("recreation", Inners, "fail_job", _close_on_one_thread),
    "who waits is not told": ("recreation", Call, "drop", lambda call: None),
    "a client's error fails the job": (
        *("recreation", RecreatedCoordinator),
        *("handle_client_request", _ask_as_the_job),
    ),
}
"""Faults of shells: the system that finds each, and what is put in the place of which method."""


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_of_a_shell_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, shell, method, planted = PLANTED[fault]
    monkeypatch.setattr(shell, method, planted)
    taken = set[str]()
    assert any(_finds(name, PLAYED[name], seed, taken) for seed in range(WALKS))
