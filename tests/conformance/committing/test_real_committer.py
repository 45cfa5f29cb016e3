"""Our committers against the real ones of Flink 2.3.0; `make conformance`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.against import Against
from tests.conformance.committing.account import Account
from tests.conformance.committing.differences import ALL, DIRECT, UPSTREAM
from tests.conformance.committing.schedules import Maker, Topology, Upstream, schedule
from tests.conformance.committing.shell import Shell
from tests.conformance.committing.traces import (
    COUNTS,
    NAMES_OF,
    PROGRAM,
    explained,
    file_of,
    recorded,
)
from tests.conformance.committing.upstream import UpstreamAccount
from tests.conformance.comparison import Comparison
from tests.conformance.differences import Difference
from tests.conformance.oracle.oracle import FlinkOracle

pytestmark = pytest.mark.conformance

WILD = {"wild": 20_000, "upstream wild": 10_000}
ORDERLY = {"orderly": 4_000, "upstream orderly": 1_500}
ALIKE_LEAST, OFTEN = 0.8, 60
"""The share of wild schedules in which nothing differs, and how many have to meet each entry."""
ANYTHING = 4_000
"""How many schedules in which anything goes the accounts must retell."""


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkOracle]:
    with FlinkOracle(PROGRAM) as oracle:
        yield oracle


@pytest.fixture(scope="module")
def both(flink: FlinkOracle) -> Against:
    return Against(flink, Shell, schedule, explained)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", WILD)
def test_wild_schedules_of_committers_differ_only_as_listed(
    kind: str, both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared(kind, WILD[kind])
    tell(f"committers, {kind}", found)
    assert found.compared == WILD[kind]
    assert not found.unexplained, both.shortest(found)
    assert found.same >= WILD[kind] * ALIKE_LEAST
    assert all(found.explained[name] >= OFTEN for name in NAMES_OF[kind])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ORDERLY)
def test_orderly_schedules_of_committers_do_not_differ(
    kind: str, both: Against, tell: Callable[[str, Comparison], None]
) -> None:
    found = both.compared(kind, ORDERLY[kind])
    tell(f"committers, {kind}", found)
    assert found.same == found.compared == ORDERLY[kind], both.shortest(found)


@pytest.mark.parametrize(
    ("topology", "account"),
    [(Topology, Account), (Upstream, UpstreamAccount)],
    ids=["direct", "upstream"],
)
def test_the_accounts_retell_the_real_committers_where_anything_goes(
    flink: FlinkOracle,
    topology: type[Topology],
    account: Callable[[], Account | UpstreamAccount],
) -> None:
    for seed in range(ANYTHING):
        commands = Maker(random.Random(seed), topology, is_wild=True).make()
        assert account().run(commands) == flink.run(commands), seed


@pytest.mark.parametrize(("name", "entry"), ALL, ids=lambda it: getattr(it, "name", it))
def test_the_real_committers_print_what_the_lists_say(
    flink: FlinkOracle, name: str, entry: Difference
) -> None:
    answers = flink.run([command for command, _, _ in entry.transcript])
    assert [" | ".join(answer) for answer in answers] == [said for _, said, _ in entry.transcript]


@pytest.mark.parametrize("entry", [*DIRECT[:2], *UPSTREAM[:2]], ids=range(4))
def test_the_real_global_committer_never_commits_again(
    flink: FlinkOracle, entry: Difference
) -> None:
    commands = [command for command, _, _ in entry.transcript]
    word = "global" if entry in UPSTREAM else "commit"
    flink.run(commands)
    for checkpoint in range(10, 30):
        lines = [f"barrier 0 {checkpoint} -", f"barrier 1 {checkpoint} c{checkpoint}"]
        answers = flink.run([*lines, f"complete {checkpoint}"])
        answers += flink.run(["restart"]) if checkpoint % 7 == 0 else []
        assert [line for answer in answers for line in answer if line.startswith(word)] == []


@pytest.mark.parametrize("kind", COUNTS)
def test_the_golden_traces_are_what_the_real_committers_print(
    flink: FlinkOracle, kind: str
) -> None:
    assert file_of(kind).read_text(encoding="utf-8") == recorded(kind, flink)
