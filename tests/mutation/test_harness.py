"""The harness for body mutants, on a machine that is small enough to know them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import System
from epochgate.fsm.checker import Result, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models import catalogue
from tests.mutation import bodies
from tests.mutation.bodies import BodyMutant, body_mutants, changed, reached
from tests.mutation.by_test import TESTS
from tests.mutation.checking import OWN, bounds, first_findings
from tests.mutation.homes import HOMES, SYSTEMS_THAT_RUN, Home
from tests.mutation.meter import ClosedMeters, Meter, Meters
from tests.mutation.mutants import mutants
from tests.mutation.outcomes import LISTS, judge
from tests.mutation.planted import planted
from tests.mutation.reasons import EQUIVALENT
from tests.mutation.table import lines
from tests.mutation.unbroken import Unbroken, kept

HOME = Home(Meters, "meter")


@pytest.fixture(autouse=True)
def known_meters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say where the meter is checked, and that no test runs it."""
    monkeypatch.setitem(OWN, Meters, (bounds(ClosedMeters),))
    monkeypatch.setitem(TESTS, Meters, ())


def of_meter(method: str) -> list[BodyMutant]:
    affected = reached(Meters)["meter", method]
    return list(changed("meter", HOME, getattr(Meter, method), affected))


def changes(method: str, kind: str) -> list[str]:
    return [f"{m.before} -> {m.after}" for m in of_meter(method) if m.kind == kind]


def one(method: str, change: str) -> BodyMutant:
    (found,) = (m for m in of_meter(method) if f"{m.before} -> {m.after}" == change)
    return found


def test_each_simple_statement_is_deleted_once() -> None:
    assert changes("take_all", "deleted") == [
        "`self.count = 0` -> `pass`",
        "`self.emptied += 1` -> `pass`",
        "`self.is_full = False` -> `pass`",
    ]


def test_comparisons_are_turned_and_put_off_by_one() -> None:
    assert changes("has_room", "comparison") == [
        "`self.count < self.system.limit` -> `self.count >= self.system.limit`",
        "`self.count < self.system.limit` -> `self.count <= self.system.limit`",
    ]
    assert changes("may_empty", "comparison") == ["`self.emptied == 0` -> `self.emptied != 0`"]


def test_and_becomes_or() -> None:
    assert changes("may_empty", "logic") == [
        "`self.emptied == 0 and self.is_full` -> `self.emptied == 0 or self.is_full`"
    ]


def test_any_becomes_all_and_a_chain_is_turned_link_by_link() -> None:
    source = "def f(self) -> bool:\n    return any(0 <= i < 3 for i in range(self.n))"
    texts = list(texts_of(source))
    assert "all((0 <= i < 3 for i in range(self.n)))" in texts
    assert {f"any((0 {a} i {b} 3 for i in range(self.n)))" for a, b in CHAINS} <= set(texts)


CHAINS = [(">", "<"), ("<", "<"), ("<=", ">="), ("<=", "<=")]


def texts_of(source: str) -> Iterator[str]:
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.FunctionDef)
    for _, path, new in bodies._changes(tree):
        yield ast.unparse(bodies.with_changed(tree, path, new).body[0]).removeprefix("return ")


def test_conditions_are_negated_and_negations_left_out() -> None:
    assert changes("is_over", "negation") == [
        "`self.is_full` -> `not self.is_full`",
        "`not self.may_empty()` -> `self.may_empty()`",
    ]
    assert changes("next_count", "negation") == ["`self.is_full` -> `not self.is_full`"]


def test_plus_becomes_minus_in_sums_and_in_assignments() -> None:
    assert changes("next_count", "arithmetic") == ["`self.count + 1` -> `self.count - 1`"]
    assert changes("take_all", "arithmetic") == ["`self.emptied += 1` -> `self.emptied -= 1`"]


def test_constants_are_flipped_and_named_with_what_holds_them() -> None:
    assert changes("take_all", "constant") == [
        "`self.count = 0` -> `self.count = 1`",
        "`self.emptied += 1` -> `self.emptied += 0`",
        "`self.is_full = False` -> `self.is_full = True`",
    ]
    assert changes("next_count", "constant") == ["`self.count + 1` -> `self.count + 0`"]


def test_an_assertion_and_a_docstring_stay() -> None:
    assert changes("add_one", "deleted") == [
        "`self.count = self.next_count()` -> `pass`",
        "`self.is_full = self.count == self.system.limit` -> `pass`",
    ]
    assert all("assert" not in mutant.before for mutant in of_meter("add_one"))


def test_a_method_that_an_action_calls_is_reached_from_its_rows() -> None:
    assert reached(Meters)["meter", "next_count"] == {("meter", "add", "something comes")}
    assert ("meter", "may_empty") in reached(Meters)
    assert ("meter", "has_stopped") not in reached(Meters)


def test_texts_that_occur_twice_are_told_apart_by_what_stands_around_them() -> None:
    assert changes("next_count", "deleted") == [
        "`if self.is_full: return self.count` -> `if self.is_full: pass`",
        "`if self.count > self.system.limit: return self.count` -> "
        "`if self.count > self.system.limit: pass`",
    ]
    names = [mutant.name for mutant in body_mutants()]
    assert len(set(names)) == len(names)


def test_a_mutant_runs_with_its_change_and_the_module_of_the_right_method() -> None:
    mutant = one("take_all", "`self.count = 0` -> `self.count = 1`")
    broken = mutant.in_system(Meters)()
    right = Meters()
    for system in (broken, right):
        machine: Any = system.instance("meter", ())
        for _ in range(2):
            machine.add()
        machine.empty()
    assert [m.instance("meter", ()).values()["count"] for m in (broken, right)] == [1, 0]
    function: Any = mutant.function
    assert function.__globals__ is vars(mutant)["right"].__globals__


def test_a_planted_mutant_is_gone_afterwards() -> None:
    right = Meter.take_all
    with planted(one("take_all", "`self.count = 0` -> `pass`")):
        assert Meter.take_all is not right
    assert Meter.take_all is right


@pytest.mark.parametrize(
    ("method", "change", "claim"),
    [
        ("take_all", "`self.emptied += 1` -> `pass`", ""),
        ("has_room", "`self.count < self.system.limit` -> `self.count >= self.system.limit`", ""),
        ("take_all", "`self.is_full = False` -> `pass`", "a full meter has reached its limit"),
        ("is_over", "`self.is_full` -> `not self.is_full`", ""),
    ],
)
def test_the_checker_finds_a_broken_body(method: str, change: str, claim: str) -> None:
    found = next(first_findings(one(method, change)))
    assert claim in found.claim


def test_a_right_system_is_searched_once_for_its_sources_and_constants(tmp_path: Path) -> None:
    searched: list[int] = []

    def look(limit: int) -> Unbroken:
        system = ClosedMeters(limit=limit)

        def search() -> Result:
            searched.append(limit)
            return check(system, engine="python")

        return kept(system, search, tmp_path)

    first = look(2)
    assert look(2) == first
    assert look(3).states != first.states
    assert searched == [2, 3]


def test_what_cannot_be_told_apart_has_to_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # What has reached its limit is full.
    mutant = one(
        "has_room", "`self.count < self.system.limit` -> `self.count <= self.system.limit`"
    )
    outcome = judge(mutant)
    assert (outcome.column, outcome.found, outcome.seen) == ("by neither", None, None)
    assert "is in [] and belongs to ['EQUIVALENT']" in outcome.surprise
    monkeypatch.setitem(EQUIVALENT, mutant.name, "what has reached its limit is full")
    assert outcome.surprise == ""


def test_a_reason_for_a_mutant_that_is_found_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = one("take_all", "`self.count = 0` -> `pass`")
    monkeypatch.setitem(EQUIVALENT, mutant.name, "the count is not read")
    assert "is in ['EQUIVALENT'] and belongs to ['UNSEEN_BY_THE_RUNTIME']" in judge(mutant).surprise


def test_every_reason_names_a_mutant_that_there_is() -> None:
    known = {mutant.name for mutant in mutants()} | {mutant.name for mutant in body_mutants()}
    assert {name for _, reasons in LISTS.values() for name in reasons} <= known


def test_every_system_that_runs_has_its_machines_in_the_list() -> None:
    found = {kind for kind in subclasses(System) if kind.__module__.startswith("epochgate.models.")}
    assert {
        kind
        for kind in found
        if kind.MACHINES and not issubclass(kind, ClosedSystem) and kind.__name__[:6] != "Broken"
    } == set(SYSTEMS_THAT_RUN)
    listed = {home.machine for home in HOMES.values()}
    assert set(catalogue.MACHINES.values()) <= listed
    assert {m for system in SYSTEMS_THAT_RUN for m in system.MACHINES.values()} == listed


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_table_counts_by_machine_and_names_what_neither_finds() -> None:
    recorded = [("a", "by both", "x"), ("a", "by neither", "y"), ("b", "refused", "z")]
    assert list(lines(recorded)) == [
        "machine  mutants  refused  by both  by the checker  by the runtime  by neither",
        "a              2        0        1               0               0           1",
        "b              1        1        0               0               0           0",
        "all            3        1        1               0               0           1",
        "by neither: y",
    ]
