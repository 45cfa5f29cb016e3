"""The changes of the further kinds of mutants, on the small machine, and how verdicts are kept."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from epochgate.fsm import Machine, Port, output
from epochgate.fsm.closed import always
from epochgate.fsm.errors import DeclarationError
from tests.mutation import body_kinds, mutants, row_kinds, verdicts
from tests.mutation.checking import OWN, bounds
from tests.mutation.every import KINDS, every_of, kind_of, named
from tests.mutation.excused import EXCUSED
from tests.mutation.homes import HOMES
from tests.mutation.judging import by_earlier, by_what_is_quick, judge, reason_for, surprises
from tests.mutation.meter import ClosedMeters, Meter, Meters
from tests.mutation.mutants import MACHINES, Mutant
from tests.mutation.order import is_order_free, is_repeatable
from tests.mutation.page import PAGE, page
from tests.mutation.test_harness import HOME
from tests.mutation.verdicts import (
    NOWHERE,
    REFUSED,
    SURVIVES,
    UNSEARCHED,
    UNTESTED,
    UNTRIED,
    Verdicts,
)

OPEN = (SURVIVES, UNTESTED, UNTRIED, UNSEARCHED)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """The broken rows of the meter, which is checked for the while."""
    monkeypatch.setitem(HOMES, "meter", HOME)
    monkeypatch.setitem(MACHINES, "meter", Meter)
    monkeypatch.setitem(OWN, Meters, (bounds(ClosedMeters),))
    earlier = [*mutants.differing("meter", mutants._broken, ())]
    return [*mutants.differing("meter", row_kinds._broken, earlier)]


class ShiftedMeters(ClosedMeters):
    """It cannot be compiled: a number may be shifted beyond 62 bits."""

    @always("every count is one")
    def counts(self) -> bool:
        return 1 << self.meter.count + 62 >= 0


def texts(method: str, kind: str) -> list[str]:
    made = body_kinds._made(Meter, getattr(Meter, method))
    return [ast.unparse(tree) for of, _, tree in made if of == kind]


def body(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def test_rows_are_deleted_led_elsewhere_moved_and_doubled(rows: list[Mutant]) -> None:
    assert [mutant.name for mutant in rows if mutant.trigger == "empty"] == [
        "meter: empty from running when may_empty: deleted",
        "meter: empty from running when may_empty: negated may_empty",
        "meter: empty from running when may_empty: also from stopped",
        "meter: empty from running when may_empty: to stopped",
        "meter: empty from running when may_empty: take_all twice",
    ]


def test_a_guard_is_negated_in_every_row_of_its_trigger(rows: list[Mutant]) -> None:
    negated = next(mutant for mutant in rows if mutant.fault == "negated has_room")
    assert [row.when for row in negated.rows if row.trigger == "add"] == [
        "not has_room",
        "has_room",
    ]


def test_the_checker_finds_what_breaks_a_claim_and_counts_no_states(rows: list[Mutant]) -> None:
    found = {each.name.partition(": ")[2]: by_what_is_quick(each) for each in rows}
    assert found["add from running when has_room: negated has_room"].startswith("checker: ")
    assert found["empty from running when may_empty: also from stopped"] == NOWHERE
    assert found["stop from running when is_over: deleted"] == REFUSED
    # The meter is full after one step more or less, and no claim says after how many.
    assert found["add from running when has_room: add_one twice"] == UNTRIED


def test_what_found_a_mutant_before_is_asked_first(rows: list[Mutant]) -> None:
    found = next(mutant for mutant in rows if mutant.fault == "negated has_room")
    missed = next(mutant for mutant in rows if mutant.fault == "add_one twice")
    told = by_what_is_quick(found)
    others = "checker: Others(): a claim"
    for earlier, expected in ((told, told), (others, ""), (SURVIVES, UNTRIED)):
        assert by_earlier(found, Verdicts("meter", earlier={found.name: earlier})) == expected
    assert by_earlier(missed, Verdicts("meter", earlier={missed.name: told})) == ""
    assert by_earlier(found, Verdicts("meter")) == ""


@pytest.mark.usefixtures("rows")
def test_a_system_that_cannot_be_compiled_refuses_no_mutant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(OWN, Meters, (bounds(ClosedMeters), bounds(ShiftedMeters)))
    with pytest.raises(DeclarationError, match="shift"):
        judge("meter")


def test_a_number_is_one_more_or_one_less() -> None:
    assert any("self.emptied += 2" in text for text in texts("take_all", "constant by one"))
    assert any("self.count + 2" in text for text in texts("next_count", "constant by one"))


def test_a_field_is_read_in_the_place_of_another_of_its_type() -> None:
    told = texts("may_empty", "other field")
    assert [text.splitlines()[-1].strip() for text in told] == [
        "return self.count == 0 and self.is_full"
    ]


def test_statements_change_places_where_their_order_counts() -> None:
    (swapped,) = texts("add_one", "statements swapped")
    assert swapped.index("self.is_full = ") < swapped.index("self.count = self.next_count()")
    assert texts("take_all", "statements swapped") == []


class MeterPort(Port):
    def say(self, count: int) -> None: ...
    def tell(self, count: int) -> None: ...


class Telling(Meter):
    """A meter that tells its count."""

    out: MeterPort = output(MeterPort)


@pytest.mark.parametrize(
    ("first", "then", "is_free"),
    [
        ("self.count = 0", "self.is_full = False", True),
        ("self.count = 0", "self.emptied = self.count", False),
        ("self.emptied = self.count", "self.count = 0", False),
        ("self.out.say(1)", "self.count = 0", True),
        ("self.out.say(self.count)", "self.count = 0", False),
        ("self.out.say(1)", "self.out.tell(1)", False),
        ("self.out.say(1)", "self.system.meter.stop()", True),
        ("self.out.say(1)", "self.stop()", True),
        ("self.system.meter.add()", "self.stop()", False),
        ("self.take_all()", "self.is_full = True", False),
        ("if self.is_full: return", "self.count = 0", False),
    ],
)
def test_order_counts_by_what_is_read_written_told_and_fired(
    first: str, then: str, is_free: bool
) -> None:
    machine: type[Machine] = Telling
    assert is_order_free(machine, body(first), body(then)) is is_free


@pytest.mark.parametrize(
    ("statement", "is_same"),
    [
        ("self.count = 0", True),
        ("self.count += 1", False),
        ("self.count = self.next_count()", False),
        ("self.out.say(1)", False),
    ],
)
def test_what_is_only_written_may_be_done_twice(statement: str, is_same: bool) -> None:
    assert is_repeatable(Meter, body(statement)) is is_same


@pytest.mark.mutants
def test_every_mutant_has_a_kind_and_a_name_that_no_other_has() -> None:
    every = [mutant for machine in HOMES for mutant in every_of(machine)]
    assert len({mutant.name for mutant in every}) == len(every) > 10_000
    assert {kind_of(mutant) for mutant in every} == set(KINDS)


def test_verdicts_are_kept_until_what_they_rest_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "KEPT", tmp_path / "verdicts")
    first, second, *_ = every_of("resident")
    Verdicts("resident", {first.name: SURVIVES, second.name: "checker: x: y"}).keep()
    assert Verdicts.kept("resident").of == {first.name: SURVIVES, second.name: "checker: x: y"}
    monkeypatch.setattr(verdicts, "tested", lambda _: "other tests")
    assert Verdicts.kept("resident").of == {first.name: UNTESTED, second.name: "checker: x: y"}
    monkeypatch.setattr(verdicts, "checked", lambda _: "another machine")
    again = Verdicts.kept("resident")
    assert (again.of, again.earlier[first.name]) == ({}, SURVIVES)
    again.of[second.name] = "checker: x: z"
    again.keep()
    assert Verdicts.kept("resident").of == {second.name: "checker: x: z"}
    assert Verdicts.kept("resident").earlier == {first.name: SURVIVES}


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Verdicts("meter", {"meter: a": SURVIVES, "meter: b": "checker: x: y"})
    assert [*surprises(told)] == ["survives without a reason: meter: a"]
    monkeypatch.setitem(EXCUSED, "meter: a", "it means the same")
    monkeypatch.setitem(EXCUSED, "meter: b", "it means the same")
    assert [*surprises(told)] == ["has a reason that is not needed (checker: x: y): meter: b"]


OPEN = (SURVIVES, UNTRIED, UNSEARCHED, UNTESTED)


def test_each_reason_is_of_a_mutant_that_survives_where_it_is_judged() -> None:
    found = {name: mutant.machine for name, mutant in named(EXCUSED).items()}
    assert found.keys() == EXCUSED.keys()
    judged = {machine: Verdicts.kept(machine).of for machine in set(found.values())}
    left = {name: judged[machine].get(name, SURVIVES) for name, machine in found.items()}
    assert {name: each for name, each in left.items() if each not in OPEN} == {}


def test_the_page_is_made_of_the_verdicts_that_are_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, reason_for) == text, "python -m tests.mutation.judging --table makes it"
