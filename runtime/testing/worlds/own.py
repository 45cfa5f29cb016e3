"""Simulated tests of epochgate itself, with user code that is made up: what `epochgate fuzz` runs
where no test is named.
"""

from __future__ import annotations

from typing import Any

from epochgate.runtime.pipeline.function_source import FunctionSource
from epochgate.runtime.testing.scripted import (
    ScriptedCoordinator,
    ScriptedOperator,
    ScriptedProvider,
)
from epochgate.runtime.testing.worlds.simulate import simulate
from epochgate.runtime.testing.worlds.suites import agree, read_once
from epochgate.runtime.testing.worlds.world import World

SPLITS, RECORDS = 4, 50


@simulate(runs=250)
def events(world: World) -> None:
    """Each task has handled what was sent to it, in the order of sending and once."""
    agree(
        world,
        lambda: ScriptedProvider("numbers"),
        ScriptedOperator,
        act=_send,
        agrees=lambda coordinator, operators: (
            coordinator.sent == [one.handled for one in operators]
        ),
    )


def _send(coordinator: ScriptedCoordinator, _: int) -> None:
    for subtask in coordinator.gateways:
        coordinator.send(subtask, len(coordinator.sent[subtask]) + 1)


@simulate(runs=250)
def records(world: World) -> None:
    """Each record of a source is committed once."""
    source = FunctionSource(range(SPLITS), _read)
    read_once(world, source, [record for split in range(SPLITS) for record in _read(split)])


def _read(split: Any) -> list[list[int]]:
    return [[split, number] for number in range(RECORDS)]
