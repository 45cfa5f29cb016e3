"""Our machines against the real holder of Flink 2.3.0, schedule by schedule; `make conformance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.conformance.account import NAMES
from tests.conformance.comparison import (
    Comparison,
    comparable,
    explanation,
    shrunk,
    transcript,
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
FIRST_SEED = 1_000_000
"""Other seeds than those of the golden traces."""
BATCH = 200


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkOracle]:
    with FlinkOracle() as oracle:
        yield oracle


def compared(flink: FlinkOracle, kind: str, count: int) -> Comparison:
    comparison = Comparison()
    for first in range(FIRST_SEED, FIRST_SEED + count, BATCH):
        made = [
            schedule(seed, kind) for seed in range(first, min(first + BATCH, FIRST_SEED + count))
        ]
        answers = iter(flink.run([command for commands in made for command in commands]))
        for commands in made:
            theirs = [next(answers) for _ in commands]
            comparison.add(commands, theirs, Shell().run(commands))
    return comparison


def shortest(flink: FlinkOracle, found: Comparison) -> str:
    """The example of a comparison, shrunk while it stays explained, or unexplained, as it is."""

    def sign(commands: Sequence[str]) -> object:
        if not commands[0].startswith("new"):
            return None
        names = explanation(commands, flink.run(commands), Shell().run(commands))
        return "unexplained" if names is None else names or None

    if not found.example:
        return ""
    commands = shrunk(found.example, sign)
    return "\n" + transcript(commands, flink.run(commands), Shell().run(commands))


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, Comparison], None]:
    """Print the figures although pytest captures."""

    def told(kind: str, found: Comparison) -> None:
        reporter = request.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        with capsys.disabled():
            reporter.write_line(f"\n{kind}: {found}")

    return told


def test_wild_schedules_differ_only_as_listed(
    flink: FlinkOracle, tell: Callable[[str, Comparison], None]
) -> None:
    found = compared(flink, "wild", WILD)
    tell("wild", found)
    assert found.compared == WILD
    assert not found.unexplained, shortest(flink, found)
    assert set(found.explained) == NAMES


def test_orderly_schedules_do_not_differ(
    flink: FlinkOracle, tell: Callable[[str, Comparison], None]
) -> None:
    found = compared(flink, "orderly", ORDERLY)
    tell("orderly", found)
    assert found.same == found.compared == ORDERLY, shortest(flink, found)


def spoken(scenario: str) -> list[str]:
    """What a scenario says in the protocol; nothing if it drives something else."""
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
