"""Random schedules of the closed systems around the query, on the shells that run in production.

The processes of a system stand at their gates at once, and the schedule picks whose question is
answered next, and how. After each step machines, back ends and what is possible are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.discovering import FoundFiles
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.owning import OwnedTable
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import RecordedAfterwards, StreamingQuery
from epochgate.models.closed.updating import UpdatedControl
from epochgate.spark.compaction.objects import ObjectCompaction
from epochgate.spark.parquet_sink import ObjectTarget
from tests.checker.side_by_side import again
from tests.playing.choosing import deciding
from tests.playing.compacting import Compacting
from tests.playing.compacting_objects import CompactingObjects
from tests.playing.discovering import Discoverings
from tests.playing.filing import Filing
from tests.playing.flooding import Flooding
from tests.playing.gates import Heard, Lie
from tests.playing.owning import Owners
from tests.playing.pipelining import Pipelining
from tests.playing.placing import Tasks
from tests.playing.planning import Plans
from tests.playing.residing import Residing
from tests.playing.setting import Settings
from tests.playing.stage import GatedStage
from tests.playing.streaming import Batches
from tests.playing.swarm import Swarm, walk
from tests.playing.updating import Updates

WALKS, DEEP_WALKS = 200, 2000
"""Of a system, and with each wrong argument: what is found with one is not found without."""

Made = tuple[tuple[Any, ...], Callable[..., Any]]
PLAYED: dict[str, Made] = {
    "updating": ((UpdatedControl(), UpdatedControl(updates=6, objections=0, F=0)), Updates),
    "deciding": (
        (
            *(SteeredQuery(), ChosenQuery(), SteeredQuery(drivers=1, R=1, F=1)),
            *(SteeredQuery(versions=2, R=3, F=3), ChosenQuery(batches=4, R=3, F=3)),
        ),
        deciding,
    ),
    "planning": ((PlannedQuery(), PlannedQuery(batches=3, R=3)), Plans),
    "setting": ((ChangedSetting(), ChangedSetting(E=5, K=2, F=4, R=2)), Settings),
    "discovering": (
        (FoundFiles(), FoundFiles(files=3, losses=2, doubles=3, F=2)),
        Discoverings,
    ),
    "filing": ((FiledSource(), FiledSource(K=3, F=4), FiledSource(subtasks=3)), Filing),
    "streaming": (
        (
            *(StreamingQuery(), StreamingQuery(K=3, F=4)),
            *(RecordedAfterwards(), RecordedAfterwards(K=3, F=4)),
        ),
        Batches,
    ),
    "placing": ((PlacedTask(), PlacedTask(F=9, R=9), PlacedTask(hosts=2, F=9, R=9)), Tasks),
    "compacting": ((CompactingJob(), CompactingJob(R=3, F=3)), Compacting),
    "compacting objects": ((CompactingJob(), CompactingJob(R=3, F=3)), CompactingObjects),
    "owning": ((OwnedTable(), OwnedTable(drivers=3, K=5, F=3, E=2)), Owners),
    "residing": ((ResidentTask(), ResidentTask(attempts=2, F=6)), Residing),
    "pipelining": ((PipelineTasks(), PipelineTasks(records=3, K=3, F=3)), Pipelining),
    "flooding": (
        (
            *(FloodedTask(), FloodedTask(events=3, large=2, said=3, F=2, K=2)),
            FloodedTask(events=5, large=3, unconfirmed_bytes_max=4),
        ),
        Flooding,
    ),
}
"""Closed systems, and the world of the shells of their machines; walks take the systems in turn."""

_BATCH = ("driver[0].plan", *["client[0].answer"] * 5, "driver[0].work", "driver[0].commit")
_PLANNED = ("stream.appear", "driver[0].start", "driver[0].ask", *["client[0].answer"] * 7)
_RUN = ("driver[0].log", "driver[0].work", "client[0].answer", "driver[0].commit")
_FORGETS = (
    *("stream.appear", "driver[0].ask", *["client[0].answer"] * 5),
    *("client[0].erase", "client[0].deny"),
)
_HELD = tuple(f"program[{n}].{step}" for n in range(2) for step in ("work", "map_returns"))
SCHEDULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "deciding": (
        (
            *("user.update", "driver[0].start", *_BATCH, "user.lose", "driver[0].plan"),
            *["client[0].answer"] * 2,
        ),
    ),
    "placing": (
        (
            *("scheduler.offer", "cluster[1].vanish", "scheduler.notice"),
            *("scheduler.offer", "scheduler.look", "cluster[1].doubt"),
        ),
    ),
    "planning": (
        (*_PLANNED, "driver[1].start", "driver[1].ask", *_RUN, *_FORGETS, "client[1].answer"),
        (
            *(*_PLANNED, "driver[1].start", "driver[1].ask", "client[1].answer", "driver[0].log"),
            *("driver[1].log", "driver[1].work", *_RUN[1:], *_FORGETS, "client[1].answer"),
        ),
        (
            *(*_PLANNED, *_RUN, "driver[1].start", "driver[1].ask", "client[1].answer"),
            *(*_FORGETS, "client[1].answer"),
        ),
    ),
    "pipelining": (
        (
            *("job.run_operator", *_HELD, "job.ask", "program[0].barrier", "program[1].barrier"),
            *("job.store", "job.rescale", "program[0].agree", "program[0].work"),
        ),
    ),
}
"""What hardly a walk comes to, for the first of the systems: a lost update is missed; a task has
failed on an executor of which Spark tells no more; a driver that was overtaken asks for a batch,
reads one, or goes on behind one, whose plan is removed; batches that two subtasks have mapped wait
in one.
"""

BEGINNINGS: dict[str, tuple[str, ...]] = {"placing": ("scheduler.offer", "scheduler.connect")}
"""How every second walk begins, since a job of which no process has come is soon given up."""

BY_CHECKER = "the shell has the number from what it has read, and a claim is held against this one"
UNFOUND: dict[str, str] = {
    "control_update.log.check(version)": BY_CHECKER,
    "placement.spark.strand(host)": "the shell names no host, and the surroundings look at it",
    "control_update.log.in_doubt(version)": BY_CHECKER,
    "batch_decision.store.run(batch)": BY_CHECKER,
    "batch_decision.store.run(version)": BY_CHECKER,
    **dict.fromkeys(
        (
            "query_batch.target.look(batch)",
            "query_batch.target.note(batch)",
            "query_batch.target.apply(batch)",
            "query_batch.target.record(batch)",
            "query_batch.target.sweep(batch)",
            "query_batch.target.done(batch)",
            "query_batch.target.refused(batch)",
            "query_batch.target.failed(batch)",
        ),
        "the shell has the batch from its caller, and the surroundings look at this one",
    ),
    "batch_plan.store.choose(batch)": BY_CHECKER,
    "batch_plan.store.consult(batch)": BY_CHECKER,
    "batch_plan.store.give(batch)": BY_CHECKER,
    "batch_plan.store.tell(batch)": BY_CHECKER,
    "batch_plan.store.tell_none(batch)": BY_CHECKER,
}
"""Wrong arguments that no walk finds, and why that may be."""


def walk_on(made: Made, seed: int, taken: set[str], beginning: tuple[str, ...] = ()) -> None:
    """Take random steps behind those of `beginning`."""
    system = again(made[0][seed % len(made[0])])
    world = made[1](system)
    stage = GatedStage(system, world)
    try:
        for step in beginning:
            stage.take(step)
        walk(stage, Swarm(seed, taken))
    finally:
        world.close()


def play(made: Made, schedule: tuple[str, ...]) -> None:
    """Take the steps of a schedule, each of which is possible."""
    system = again(made[0][0])
    world = made[1](system)
    stage = GatedStage(system, world)
    try:
        for step in schedule:
            assert step in stage.possible(), f"{step} is not possible"
            stage.take(step)
    finally:
        world.close()


def walk_all(name: str, made: Made, walks: int) -> set[str]:
    """Play what there is of a name; returns the kinds of steps that walks have taken."""
    taken = set[str]()
    for schedule in SCHEDULES.get(name, ()):
        play(made, schedule)
    for seed in range(walks):
        walk_on(made, seed, taken, BEGINNINGS.get(name, ()) if seed % 2 else ())
    return taken


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=pytest.mark.deep)])
def test_shells_take_every_step_of_their_system(name: str, walks: int) -> None:
    made = PLAYED[name]
    assert walk_all(name, made, walks) == set().union(*map(steps_of, made[0]))


def steps_of(system: ClosedSystem) -> set[str]:
    """The kinds of steps that can be taken."""
    return {f"{step.machine}.{step.trigger}" for step in system.STEPS} - system.UNTAKEN.keys()


def arguments_of(made: Made) -> list[str]:
    """Every argument of every effect of the machines that run in shells: `write(version)`."""
    return [
        f"{name}.{port}.{message}({argument})"
        for name, machine in made[0][0].MACHINES.items()
        for port, declared in machine.PORTS.items()
        for message, arguments in declared.port.messages().items()
        for argument in arguments
    ]


def lying(told: str, by: int) -> Lie:
    """Return what says so much more, or the opposite, where one argument of one message is told."""
    place, _, argument = told.removesuffix(")").partition("(")
    name, port, message = place.split(".")

    def lie(heard: Heard) -> tuple[Any, ...]:
        if (heard.machine, heard.port, heard.message) != (name, port, message):
            return heard.arguments
        before = len(heard.arguments) - len(heard.parameters)
        position = before + heard.parameters.index(argument)
        value = heard.arguments[position]
        wrong = lied(value, by)
        return *heard.arguments[:position], wrong, *heard.arguments[position + 1 :]

    return lie


def lied(value: Any, by: int) -> Any:
    """So much more, or the opposite; of a text nothing."""
    if isinstance(value, str):
        return ""
    return not value if isinstance(value, bool) else max(0, value + by)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param(name, told, id=told, marks=[pytest.mark.deep] * (told in UNFOUND))
        for name, made in PLAYED.items()
        for told in arguments_of(made)
    ],
)
def test_a_wrong_argument_is_found(name: str, told: str) -> None:
    systems, world = PLAYED[name]
    lies = lying(told, 1), lying(told, -1)
    is_found = any(_is_found(name, (systems, partial(world, lie=lie))) for lie in lies)
    assert is_found != (told in UNFOUND), UNFOUND.get(told, "no walk tells the wrong argument")


PLANTED: dict[str, tuple[str, type, str, Any]] = {
    "what was merged may be gone": (
        *("compacting objects", ObjectCompaction),
        *("_has_merged", lambda compaction, state: True),
    ),
    "replaced objects go at once": (
        *("compacting objects", ObjectTarget),
        *("remove_orphans", lambda target, keep: _remove_all_but_visible(target)),
    ),
}
"""Faults of shells: the system that finds each, and what is put in the place of which method."""


def _remove_all_but_visible(target: ObjectTarget) -> None:
    for key in target._objects.list("data"):
        if key not in target._log.state["files"]:
            target._objects.delete(key)


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_of_a_shell_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, shell, method, planted = PLANTED[fault]
    monkeypatch.setattr(shell, method, planted)
    assert _is_found(name, PLAYED[name])


def _is_found(name: str, made: Made) -> bool:
    try:
        walk_all(name, made, WALKS)
    except Exception:  # noqa: BLE001  # whatever it is, the play has not gone on unnoticed
        return True
    return False
