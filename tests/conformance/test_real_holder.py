"""Our machines against the real holder of Flink 2.3.0, schedule by schedule; `make conformance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.account import NAMES
from tests.conformance.against import Against
from tests.conformance.comparison import (
    Comparison,
    comparable,
    explanation,
)
from tests.conformance.differences import DIFFERENCES, Difference
from tests.conformance.oracle.oracle import FlinkOracle
from tests.conformance.schedules import schedule
from tests.conformance.shell import Shell
from tests.conformance.traces import COUNTS, FOLDER, recorded
from tests.scenarios.holder_world import HolderWorld
from tests.scenarios.test_scenarios import DASHES, FILES, World, run

pytestmark = pytest.mark.conformance

WILD, ORDERLY = 20_000, 8_000


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkOracle]:
    with FlinkOracle() as oracle:
        yield oracle


@pytest.fixture(scope="module")
def both(flink: FlinkOracle) -> Against:
    return Against(flink, Shell, schedule, explanation)


def test_wild_schedules_differ_only_as_listed(
    both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared("wild", WILD)
    tell("wild", found)
    assert found.compared == WILD
    assert not found.unexplained, both.shortest(found)
    assert set(found.explained) == NAMES


def test_orderly_schedules_do_not_differ(
    both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared("orderly", ORDERLY)
    tell("orderly", found)
    assert found.same == found.compared == ORDERLY, both.shortest(found)


def spoken(scenario: str) -> list[str]:
    """Return what a scenario says in the protocol; nothing if it drives something else."""
    world: World | None = None
    for paragraph in scenario.split("\n\n"):
        lines = paragraph.split("\n")
        for command in lines[: lines.index(DASHES)] if DASHES in lines else ():
            world, _ = run(world, command)
    return world.spoken if isinstance(world, HolderWorld) else []


def test_the_real_holder_differs_from_scenarios_only_as_listed(flink: FlinkOracle) -> None:
    said = [spoken(path.read_text(encoding="utf-8")) for path in FILES]
    scenarios = [commands for commands in said if commands]
    assert len(scenarios) >= 8
    for commands in scenarios:
        assert explanation(commands, flink.run(commands), Shell().run(commands)) is not None


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_the_real_holder_prints_what_the_list_says(flink: FlinkOracle, entry: Difference) -> None:
    answers = comparable(flink.run([command for command, _, _ in entry.transcript]))
    assert [" | ".join(answer) for answer in answers] == [said for _, said, _ in entry.transcript]


@pytest.mark.parametrize("kind", COUNTS)
def test_the_golden_traces_are_what_the_real_holder_prints(flink: FlinkOracle, kind: str) -> None:
    assert (FOLDER / f"{kind}.txt").read_text(encoding="utf-8") == recorded(kind, flink)
