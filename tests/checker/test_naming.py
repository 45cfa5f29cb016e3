"""Numbers that a model names by constants are shown by these names, and stay numbers."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import STAY, Int, Row, Trigger
from epochgate.fsm.checker import Result, check
from epochgate.fsm.checker.exploring import Explorer, Run
from epochgate.fsm.checker.report import report
from epochgate.fsm.closed import Environment
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.naming import Named, named
from epochgate.reports import html_page, pytest_module, sequence_diagram
from tests.checker.signals import AMBER, GREEN, Crossing, Signals

OPEN, SHUT, AJAR = 0, 1, 1
NOTHING = None


@pytest.fixture(scope="module", params=["python", "interpreted"])
def result(request: pytest.FixtureRequest) -> Result:
    return check(Crossing(), engine=request.param)


def test_a_counterexample_has_names_where_a_field_says_which(result: Result) -> None:
    told = report("Crossing", result)
    assert "4 steps from the initial state with signals.last RED:" in told
    assert "signals.colour: [RED, RED] -> [AMBER, RED]" in told
    assert "signals.colour: [AMBER, RED] -> [AMBER, 3]" in told
    assert "signals.last: RED -> GREEN" in told
    assert "in flight: signals.asked [ASK]" in told


def test_pictures_and_pages_have_them_too(result: Result) -> None:
    diagram = sequence_diagram("Crossing", result)
    assert "colour [AMBER, RED] → [AMBER, 3]" in diagram
    assert "begins with signals.last RED" in diagram
    page = html_page({"Crossing": result})
    assert "asked ASK" in page
    script = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    steps = json.loads(script[1])["steps"]
    assert steps[4]["state"]["signals"]["colour"] == ["AMBER", 3]
    assert steps[2]["changed"]["signals.colour"] == [["[0]", "RED", "AMBER"]]


def test_what_programs_read_stays_a_number(result: Result, tmp_path: Path) -> None:
    found = json.loads(result.json_text())["counterexample"]["steps"]
    assert found[1]["changed"]["signals.colour"] == [[0, 0], [AMBER, 0]]
    assert found[3]["after"]["signals"]["last"] == GREEN
    written = pytest_module({"Crossing": result}, {"Crossing": Crossing}, tmp_path)
    assert '"signals.last": 0,' in written


def test_a_place_of_an_exploration_has_them() -> None:
    place = Explorer(Crossing()).place(Run(0, ("signals.ask", "signals.turn")))
    assert repr(place.state["signals"]["colour"]) == "[AMBER, RED]"
    assert place.state["signals"]["colour"] == [1, 0]


def test_a_name_is_a_number_wherever_it_goes() -> None:
    [one] = named([2], {2: "GREEN"})
    assert (one, str(one), f"{one}", repr(one)) == (2, "GREEN", "GREEN", "GREEN")
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (type(again), again, again.name) == (Named, 2, "GREEN")
    assert named(True, {2: "GREEN"}) is True


def declared(field: Any) -> type[Environment]:
    body = {
        "__module__": __name__,
        "__annotations__": {"go": Trigger},
        "STATES": ("on",),
        "INITIAL": "on",
        "ROWS": (Row("go", "on", STAY, None, None, "it goes"),),
        "door": field,
    }
    made: type[Environment] = type("Door", (Environment,), body)
    return made


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (lambda: Int(1, names="OPEN, CLOSED"), "'CLOSED' in its names is no number of its module"),
        (lambda: Int(1, names="OPEN, NOTHING"), "'NOTHING' in its names is no number"),
        (lambda: Int(1, names="OPEN, SHUT, AJAR"), "'AJAR' in its names is 1, and so is 'SHUT'"),
        (lambda: Int(0, names="OPEN, SHUT"), "'SHUT' in its names is 1, outside of 0 to 0"),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused_with_its_place(field: Any, told: str) -> None:
    with pytest.raises(DeclarationError, match=rf"test_naming\.Door\.door: {re.escape(told)}"):
        declared(field())


def test_a_field_that_is_declared_again_has_its_own_names() -> None:
    first = declared(Int(1, names="OPEN, SHUT"))
    assert first.NAMES == {"door": {0: "OPEN", 1: "SHUT"}}
    again: type[Environment] = type("Plain", (first,), {"__module__": __name__, "door": Int(1)})
    assert again.NAMES == {}
    assert Signals.NAMES["last"] == {0: "RED", 2: "GREEN"}
