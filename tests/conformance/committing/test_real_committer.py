"""Our committer against the real global committer of Flink 2.3.0; `make conformance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.against import Against
from tests.conformance.committing.account import NAMES
from tests.conformance.committing.differences import DIFFERENCES
from tests.conformance.committing.schedules import schedule
from tests.conformance.committing.shell import Shell
from tests.conformance.committing.traces import (
    COUNTS,
    FOLDER,
    PROGRAM,
    explained,
    recorded,
)
from tests.conformance.comparison import Comparison
from tests.conformance.differences import Difference
from tests.conformance.oracle.oracle import FlinkOracle

pytestmark = pytest.mark.conformance

WILD, ORDERLY = 20_000, 4_000
ALIKE_LEAST, OFTEN = 0.8, 300
"""The share of wild schedules in which nothing differs, and how many have to meet each entry."""


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkOracle]:
    with FlinkOracle(PROGRAM) as oracle:
        yield oracle


@pytest.fixture(scope="module")
def both(flink: FlinkOracle) -> Against:
    return Against(flink, Shell, schedule, explained)


@pytest.mark.timeout(1800)
def test_wild_schedules_of_committers_differ_only_as_listed(
    both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared("wild", WILD)
    tell("committers, wild", found)
    assert found.compared == WILD
    assert not found.unexplained, both.shortest(found)
    assert found.same >= WILD * ALIKE_LEAST
    assert all(found.explained[name] >= OFTEN for name in NAMES)


@pytest.mark.timeout(1800)
def test_orderly_schedules_of_committers_do_not_differ(
    both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared("orderly", ORDERLY)
    tell("committers, orderly", found)
    assert found.same == found.compared == ORDERLY, both.shortest(found)


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
