"""Machines of `transitions` are read as they are: rows, findings, drawings, and nothing changed."""

from __future__ import annotations

import random
import types
from pathlib import Path
from typing import Any

import pytest
from transitions import Machine

from epochgate.diagrams.description import describe
from epochgate.diagrams.mermaid import machine_mermaid
from epochgate.diagrams.picture import forms
from epochgate.diagrams.table import machine_table
from epochgate.fsm import from_transitions
from epochgate.fsm.existing import CannotRead, ExistingMachine
from epochgate.fsm.existing.fuzzing import watched
from epochgate.fsm.existing.observing import OfTransitions, TableDiffers
from epochgate.fsm.existing.oracle import PATHS_MAX
from epochgate.fsm.existing.reading import found_machine, read_if_machine
from tests.checker import vault
from tests.fsm import known_machines
from tests.fsm.known_machines import KNOWN, Featured, Thing, made, parallel, reused

WALK = 60


def read(name: str, **options: Any) -> ExistingMachine:
    return from_transitions(KNOWN[name](), **options)


def rows(of: ExistingMachine) -> list[str]:
    return [str(row) for row in of.rows]


def inside(thing: Any) -> tuple[Any, ...]:
    """Return what reading must not change."""
    machine: Any = found_machine(thing)
    states = [(id(state), list(map(id, state.on_enter))) for state in machine.states.values()]
    transitions = [
        (name, source, list(map(id, found)))
        for name, event in machine.events.items()
        for source, found in event.transitions.items()
    ]
    model = {name: id(value) for name, value in vars(machine.models[0]).items()}
    return states, transitions, model, sorted(vars(machine))


@pytest.mark.parametrize("name", KNOWN)
def test_reading_changes_nothing_and_calls_nothing(name: str) -> None:
    thing = KNOWN[name]()
    before = inside(thing)
    found = from_transitions(thing)
    assert inside(thing) == before
    assert found.report()
    described = describe({"x": found.machine})["x"]
    assert all(forms(described))
    assert machine_mermaid(described)
    assert machine_table(described)


@pytest.mark.parametrize("name", KNOWN)
def test_a_real_machine_does_what_its_table_says(name: str) -> None:
    chance = random.Random(name)
    for automatic in (False, True):
        thing = KNOWN[name]()
        found = from_transitions(thing, automatic=automatic)
        watch = watched(found._table, thing)
        for _ in range(WALK):
            watch.fire(chance.choice(found.triggers), ())
            assert watch.configuration in found._table.found.names or not automatic


def fire_often(watch: OfTransitions, trigger: str) -> None:
    for _ in range(WALK):
        watch.fire(trigger, ())


@pytest.mark.parametrize("name", ["matter with callbacks", "nested", "parallel", "awaited"])
def test_a_machine_that_does_something_else_is_noticed(name: str) -> None:
    thing = KNOWN[name]()
    found = from_transitions(thing)
    watch = watched(found._table, thing)
    assert isinstance(watch, OfTransitions)
    machine = thing.machine
    path = next(
        path
        for path in found._table.found.paths
        if path.source == watch.configuration
        if path.fired.kind == "taken" and path.fired.dest != path.source
    )
    # Changed after it was read.
    if name in ("nested", "parallel"):
        machine.set_state = lambda *arguments: None
    else:
        machine.events[path.trigger].transitions.clear()
    with pytest.raises(TableDiffers, match=path.trigger):
        fire_often(watch, path.trigger)


def test_rows_are_those_that_were_written() -> None:
    assert rows(read("matter")) == [
        "melt: solid -> liquid",
        "evaporate: liquid -> gas",
        "sublimate: solid -> gas",
        "ionize: gas -> plasma",
    ]
    assert rows(read("matter with callbacks")) == [
        "melt: solid -> liquid [is_hot and is_even and not is_lucky]",
        "melt: solid -> gas [not is_hot]",
        "melt: solid -> solid",
        "cool: solid, liquid, gas -> solid",
        "touch: liquid -> liquid",
        "touch: gas -> gas",
        "look: liquid -> stays",
    ]


def test_actions_come_in_the_order_of_their_calls() -> None:
    melt = read("matter with callbacks").rows[0]
    assert [name.rstrip("_0123456789") for name in melt.actions] == ["count", "count", "lambda"]


def test_nested_and_parallel_states_are_read_as_the_library_goes_through_them() -> None:
    found = read("nested")
    assert found.states == (
        "standing",
        "walking",
        "caffeinated_dithering",
        "caffeinated_running",
    )
    assert "relax: caffeinated_running -> caffeinated_dithering [is_hot]" in rows(found)
    assert "relax: caffeinated_dithering, caffeinated_running -> standing" in rows(found)
    both = from_transitions(parallel())
    assert "go: p_1_a + p_2_x -> p_1_b + p_2_y" in rows(both)
    assert "go: p_1_b + p_2_y -> p_1_c + p_2_y" in rows(both)
    assert both.final == ("p_1_c + p_2_z",)


def test_a_machine_within_another_is_read_with_and_without_remapping() -> None:
    plain, remapped = (from_transitions(reused(remap=remap)) for remap in (False, True))
    assert "counting_done" in plain.states
    assert "done: counting_3 -> counting_done" in rows(plain)
    assert "counting_done" not in remapped.states
    assert "done: counting_3 -> waiting" in rows(remapped)


def test_automatic_triggers_are_left_out_unless_they_are_wanted() -> None:
    assert read("matter").triggers == ("melt", "evaporate", "sublimate", "ionize")
    assert "to_plasma" in read("matter", automatic=True).triggers


def test_ignored_and_refused_triggers_are_told_apart() -> None:
    light = read("traffic light")
    assert "go: GREEN, AMBER ignored" in rows(light)
    assert light.missing == {}
    assert read("matter").missing["gas"] == ("melt", "evaporate", "sublimate")


def test_states_that_cannot_be_reached_or_left_are_found() -> None:
    thing = made(
        Machine,
        states=["a", "b", "c", "island", "end"],
        initial="a",
        transitions=[["go", "a", "b"], ["go", "island", "a"], ["stop", "*", "="]],
    )
    found = from_transitions(thing)
    assert found.unreachable == ("c", "island", "end")
    assert found.dead == ("b",)
    assert from_transitions(KNOWN["ending"]()).dead == ()
    assert "'b' has no way out, and is not declared final" in found.report()


def test_transitions_behind_others_and_ambiguous_ones_are_found() -> None:
    thing = made(
        Machine,
        states=["a", "b", "c"],
        initial="a",
        transitions=[
            ["go", "a", "b"],
            ["go", "a", "c"],
            {"trigger": "choose", "source": "a", "dest": "b", "conditions": "is_hot"},
            {"trigger": "choose", "source": "a", "dest": "c", "conditions": "is_even"},
            {"trigger": "split", "source": "a", "dest": "b", "conditions": "is_hot"},
            {"trigger": "split", "source": "a", "dest": "c", "unless": "is_hot"},
            {"trigger": "fail", "source": "a", "dest": "c", "conditions": "x", "unless": "x"},
        ],
    )
    found = from_transitions(thing)
    assert found.never_taken == ("go: a -> c", "fail: a -> c")
    assert found.ambiguous == (("choose: a -> b", "choose: a -> c"),)


def test_a_transition_to_a_state_that_is_not_there_is_told() -> None:
    thing = made(Machine, states=["a", "b"], initial="a", transitions=[["go", "a", "b"]])
    thing.machine.events["go"].transitions["a"][0].dest = "nowhere"
    assert "it raises: go in a: ValueError" in from_transitions(thing).report()


def test_names_that_a_machine_of_ours_has_are_written_otherwise() -> None:
    thing = made(
        Machine,
        states=["a", "b"],
        initial="a",
        transitions=[["values", "a", "b"], ["class", "b", "a"], ["2nd try", "a", "b"]],
    )
    found = from_transitions(thing)
    assert found.triggers == ("values", "class", "2nd try")
    assert found.machine.triggers() == ("values_", "class_", "on_2nd_try")


def test_what_is_no_machine_is_refused() -> None:
    with pytest.raises(CannotRead, match="give the machine itself"):
        from_transitions(object())
    with pytest.raises(CannotRead, match="is no machine"):
        from_transitions(Thing())
    no_start = Machine(None, states=["a"], initial=None)
    with pytest.raises(CannotRead, match="no initial state"):
        from_transitions(no_start)


def test_more_ways_of_answering_than_can_be_tried_are_refused() -> None:
    guards = [f"guard_{number}" for number in range(PATHS_MAX.bit_length())]
    thing = made(
        Machine,
        states=["a", "b"],
        initial="a",
        transitions=[
            {"trigger": "go", "source": "a", "dest": "b", "conditions": [guard, f"{guard}_too"]}
            for guard in guards
        ],
    )
    with pytest.raises(CannotRead, match="'go' in 'a' can answer in more than"):
        from_transitions(thing)


SMALL: dict[str, Any] = {
    "states": ["a", "b"],
    "initial": "a",
    "transitions": [["go", "a", "b"]],
}


class OfASubclass:
    def __init__(self) -> None:
        self.machine = Featured(self, **SMALL)


class OfAModule:
    def __init__(self) -> None:
        self.machine = known_machines.Featured(self, **SMALL)


class OfAFunction:
    def __init__(self) -> None:
        self.machine = small(self)


class OfAClassMethod:
    def __init__(self) -> None:
        self.machine = self.small(self)

    @classmethod
    def small(cls, model: Any) -> Machine:
        return Featured(model, **SMALL)


class Inherited(OfASubclass):
    pass


def small(model: Any) -> Machine:
    return Machine(model, **SMALL)


class Unrelated:
    def __init__(self) -> None:
        raise AssertionError("a class that has nothing to do with machines is not made")


@pytest.mark.parametrize("kind", [OfASubclass, OfAModule, OfAFunction, OfAClassMethod, Inherited])
def test_a_class_is_made_wherever_its_machine_comes_from(kind: type) -> None:
    found = read_if_machine(kind)
    assert found is not None
    assert rows(found) == ["go: a -> b"]


class OfTwo:
    def __init__(self) -> None:
        self.heat = Machine(self, model_attribute="how_hot", **SMALL)
        self.pressure = Machine(self, model_attribute="how_high", **SMALL)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (OfTwo, "OfTwo has 2 machines, heat, pressure; give one of them"),
        (OfTwo(), "`machine = OfTwo().heat`"),
        (small, "small is a function; call it in the module, as in `machine = small()`"),
    ],
)
def test_what_has_several_machines_or_makes_one_is_refused_with_the_way_on(
    given: Any, told: str
) -> None:
    with pytest.raises(CannotRead) as refused:
        read_if_machine(given)
    assert told in str(refused.value)


def test_a_machine_without_a_model_is_read_and_checked() -> None:
    found = read_if_machine(Machine(model=None, **SMALL))
    assert found is not None
    assert found.check(engine="python").counterexample is None


def test_a_class_without_a_machine_is_not_made() -> None:
    assert read_if_machine(Unrelated) is None


def line_of(module: types.ModuleType, text: str) -> int:
    lines = Path(str(module.__file__)).read_text(encoding="utf-8").split("\n")
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def test_a_claim_is_told_where_a_person_wrote_it() -> None:
    result = vault.read.check(engine="python")
    places = {one.claim: (one.file, one.line) for one in result.properties}
    assert places["it opens"] == (vault.__file__, line_of(vault, '"it opens": '))
    assert result.counterexample is not None
    found = result.counterexample
    assert (found.file, found.line) == places["never blocked"]
    assert found.line == line_of(vault, '"never blocked": ')
