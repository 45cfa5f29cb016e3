"""Our committer against the real global committer of Flink 2.3.0; `make conformance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.conformance.committing.account import NAMES
from tests.conformance.committing.differences import DIFFERENCES
from tests.conformance.committing.schedules import schedule
from tests.conformance.committing.shell import Shell
from tests.conformance.committing.traces import (
    COUNTS,
    FOLDER,
    PROGRAM,
    comparison,
    explained,
    recorded,
)
from tests.conformance.comparison import Comparison, shrunk, transcript
from tests.conformance.differences import Difference
from tests.conformance.oracle.oracle import FlinkOracle

pytestmark = pytest.mark.conformance

WILD, ORDERLY = 20_000, 4_000
FIRST_SEED = 1_000_000
"""Other seeds than those of the golden traces."""
BATCH = 200


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkOracle]:
    with FlinkOracle(PROGRAM) as oracle:
        yield oracle


def compared(flink: FlinkOracle, kind: str, count: int) -> Comparison:
    found = comparison()
    for first in range(FIRST_SEED, FIRST_SEED + count, BATCH):
        made = [schedule(seed, kind) for seed in range(first, first + BATCH)]
        answers = iter(flink.run([command for commands in made for command in commands]))
        for commands in made:
            found.add(commands, [next(answers) for _ in commands], Shell().run(commands))
    return found


def shortest(flink: FlinkOracle, found: Comparison) -> str:
    """The example of a comparison, shrunk while it stays explained, or unexplained, as it is."""

    def sign(commands: Sequence[str]) -> object:
        if not commands[0].startswith("new"):
            return None
        names = explained(commands, flink.run(commands), Shell().run(commands))
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
            reporter.write_line(f"\ncommitters, {kind}: {found}")

    return told


@pytest.mark.timeout(1800)
def test_wild_schedules_of_committers_differ_only_as_listed(
    flink: FlinkOracle, tell: Callable[[str, Comparison], None]
) -> None:
    found = compared(flink, "wild", WILD)
    tell("wild", found)
    assert found.compared == WILD
    assert not found.unexplained, shortest(flink, found)
    assert set(found.explained) == NAMES


@pytest.mark.timeout(1800)
def test_orderly_schedules_of_committers_do_not_differ(
    flink: FlinkOracle, tell: Callable[[str, Comparison], None]
) -> None:
    found = compared(flink, "orderly", ORDERLY)
    tell("orderly", found)
    assert found.same == found.compared == ORDERLY, shortest(flink, found)


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_the_real_committer_prints_what_the_list_says(
    flink: FlinkOracle, entry: Difference
) -> None:
    answers = flink.run([command for command, _, _ in entry.transcript])
    assert [" | ".join(answer) for answer in answers] == [said for _, said, _ in entry.transcript]


@pytest.mark.parametrize("entry", DIFFERENCES[:2], ids=lambda entry: entry.name)
def test_the_real_committer_never_commits_again(flink: FlinkOracle, entry: Difference) -> None:
    commands = [command for command, _, _ in entry.transcript]
    flink.run(commands)
    for checkpoint in range(10, 30):
        lines = [f"barrier 0 {checkpoint} -", f"barrier 1 {checkpoint} c{checkpoint}"]
        *_, answer = flink.run([*lines, f"complete {checkpoint}"])
        assert [line for line in answer if line.startswith("commit")] == []
        if checkpoint % 7 == 0:
            assert flink.run(["restart"]) == [[]]


@pytest.mark.parametrize("kind", COUNTS)
def test_the_golden_traces_are_what_the_real_committer_prints(
    flink: FlinkOracle, kind: str
) -> None:
    assert (FOLDER / f"{kind}.txt").read_text(encoding="utf-8") == recorded(kind, flink)
