"""More jobs of users: those whose input ends, or whose sink is away, and those whose coordinator
fails the job, is slow to act, has a peer, or raises.
"""

from __future__ import annotations

from typing import Any

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import CoordinatorContext, OperatorContext, SubtaskGateway
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.testing import World, read_once
from tests.worlds.counting import Counting, CountingProvider, Listing
from tests.worlds.test_suites import Numbers
from tests.zoo.bodies import (
    Notes,
    Pages,
    Strict,
    StrictProvider,
    Talking,
    counting,
    finished,
    once,
)

AWAY_UNTIL_S = 4.5
FIRSTS = [0, 10, 20, 30]


def bounded(world: World, checkpoint_every_s: float | None = 1.0) -> None:
    """A pipeline whose input ends: once the job has finished, all of it is committed, once."""
    notes = Notes()
    pipeline = Pipeline(
        source=FunctionSource(FIRSTS, lambda first: range(first, first + 2)),
        sink=Pages(notes),
    )
    job = world.pipeline(pipeline, subtasks=2, checkpoint_every_s=checkpoint_every_s)
    world.always("a page is committed with the same rows", lambda: not notes.wrong)
    world.move(4)
    world.calm()
    assert job.is_over, "a job whose input has ended does not end"
    rows = sorted(row for _, page in notes.table for part in page.values() for row in part)
    assert rows == [first + n for first in FIRSTS for n in range(2)]


def ends(world: World) -> None:
    """The same without periodic checkpoints: its end alone is one."""
    bounded(world, None)


def outage(world: World) -> None:
    """Commits have to wait for a while, in which checkpoints go on."""
    notes = Notes()
    job = counting(world, notes, checkpoint_every_s=1.0)
    notes.is_away = lambda: job.now_s < AWAY_UNTIL_S
    job.coordinator.send()
    world.move(2)
    job.coordinator.send()
    world.move(AWAY_UNTIL_S)
    finished(world, job, notes)


def hasty(world: World) -> None:
    """One checkpoint of a job that restarts what fails at once."""
    once(world, restart_strategy=FixedDelay(1000, 0.0))


def reads(world: World) -> None:
    """Each record of a source is committed, and once."""
    read_once(world, Numbers(8), range(8))


class Failing(Strict):
    """Fails the job when it finds its state wrong, and says so twice; counts how often it is made
    or restored.
    """

    def __init__(self, context: CoordinatorContext, notes: Notes) -> None:
        super().__init__(context, notes)
        notes.begins += 1

    def give_up(self) -> None:
        self.context.fail_job("the state is wrong: a fault of the simulation")
        self.context.fail_job("and it is wrong: a fault of the simulation")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.notes.begins += 1
        super().reset_to_checkpoint(checkpoint_id, state)


class FailingProvider(StrictProvider):
    def create(self, context: CoordinatorContext) -> Strict:
        return Failing(context, self.notes)


class SecondFailing(FailingProvider):
    operator_id = "second"


def failing(world: World) -> None:
    """Two coordinators that fail the job go back once, with everything that they have sent."""
    notes, others = Notes(), Notes()
    job = world.job(
        FailingProvider(notes),
        SecondFailing(others),
        operators={"count": Talking, "second": Talking},
        subtasks=1,
    )
    world.always(
        "what is promised to the coordinators holds", lambda: not notes.wrong and not others.wrong
    )
    for each in job.coordinators.values():
        each.send()
    world.move()
    world.sometimes("no fault strikes", lambda: not world.struck)
    for each in list(job.coordinators.values()):
        each.give_up()
    world.calm()
    if not world.struck:
        assert (notes.begins, others.begins) == (2, 2), "each begins twice"
        assert [each.sent for each in job.coordinators.values()] == [[0], [0]]


class Stalled(Counting):
    """Sends a while after it has decided to, by the gateway that it decided for."""

    def send(self) -> None:
        for gateway in list(self.gateways.values()):
            self.context.post_later(
                0.5, self._send_late, gateway, [gateway.subtask, gateway.attempt]
            )

    def _send_late(self, gateway: SubtaskGateway, event: Any) -> None:
        gateway.send_event(event)


class Comparing(Listing):
    """Notes an event that was meant for another attempt."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.context = context
        self.crossed: list[Any] = []

    def handle_event(self, event: Any) -> None:
        super().handle_event(event)
        if event != [self.context.subtask, self.context.attempt]:
            self.crossed.append(event)


def stalled(world: World) -> None:
    """What is sent to an attempt reaches that attempt or none."""
    job = world.job(CountingProvider(Stalled), operators=Comparing, subtasks=2)
    world.always(
        "an event reaches the attempt that it was sent to",
        lambda: not any(each.crossed for each in job.operators),
    )
    job.coordinator.send()
    world.move()
    job.coordinator.send()
    job.checkpoint()
    world.move(2)


class Raising(Strict):
    """Raises once in its handler, having changed half of its state."""

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        super().handle_event_from_operator(subtask, attempt, event)
        self.is_half = True
        if not self.notes.resets:
            self.notes.resets = 1
            raise OSError("a handler has failed")
        self.is_half = False

    is_half = False

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.is_half = False
        super().reset_to_checkpoint(checkpoint_id, state)


class RaisingProvider(StrictProvider):
    def create(self, context: CoordinatorContext) -> Strict:
        return Raising(context, self.notes)


def raising(world: World) -> None:
    """A coordinator that raised halfway is restored before it goes on."""
    notes = Notes()
    world.tolerate("a handler has failed")
    job = counting(world, notes, provider=RaisingProvider(notes))
    world.eventually("no state is half changed", lambda: not job.coordinator.is_half)
    job.coordinator.send()
    world.move()
    job.checkpoint()


class Second(StrictProvider):
    operator_id = "second"


def pairs(world: World) -> None:
    """Two coordinators, each with its operator, in one job."""
    notes, others = Notes(), Notes()
    job = world.job(
        StrictProvider(notes),
        Second(others),
        operators={"count": Talking, "second": Talking},
        subtasks=1,
    )
    both = {"count": notes, "second": others}
    world.always(
        "what is promised to the coordinators holds",
        lambda: not notes.wrong and not others.wrong,
        shows=lambda: "\n".join(notes.wrong + others.wrong),
    )

    def heard(name: str) -> list[list[Any]]:
        operators: list[Any] = list(job.operators_of(name).values())
        return [each.heard for each in operators]

    world.eventually(
        "each coordinator has told its operator everything",
        lambda: all([len(one) for one in heard(n)] == job.coordinators[n].sent for n in both),
    )
    world.always(
        "each operator hears 1, 2, 3 and so on",
        lambda: all(one == [*range(1, len(one) + 1)] for n in both for one in heard(n)),
    )
    for _ in range(2):
        for name in both:
            job.coordinators[name].send()
        world.move()
        job.checkpoint()
    world.calm()
    assert job.checkpoint().done(), "a checkpoint is not answered"
