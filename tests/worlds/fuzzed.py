"""Simulated tests that `epochgate fuzz` is given by name: a right one, a wrong one, one that is
vacuous, one that is explored, and a plain function.
"""

from __future__ import annotations

from epochgate.testing import World, explore, simulate
from tests.worlds.counting import Counting, CountingOn, counting_job, sending
from tests.worlds.rules import Applying, RulesProvider


@simulate(runs=20)
def right(world: World) -> None:
    sending(Counting, 1)(world)


@simulate(runs=60)
def wrong(world: World) -> None:
    sending(CountingOn)(world)


@simulate(runs=3)
def vacuous(world: World) -> None:
    world.job(RulesProvider(), operators=Applying)
    world.sometimes("the moon rises", lambda: False)


def seldom(world: World) -> None:
    world.job(RulesProvider(), operators=Applying)
    world.sometimes("the moon rises", lambda: False)


@explore(faults_max=1, faults=("die",))
def explored(world: World) -> None:
    counting_job(world, CountingOn)


def plain(world: World) -> None:
    world.job(RulesProvider(), operators=Applying)


def no_test(number: int) -> int:
    return number
