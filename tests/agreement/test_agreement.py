"""Every engine, every order of a search and every reduction comes to the same on every system.

A few systems are searched in `make test`, down to a few levels. `make check-deep` searches all of
them, to their ends in machine code; plain Python and the machines themselves take the first levels
of large spaces.
"""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.fsm.checker.reduction.chooser import Chooser
from epochgate.fsm.closed import ClosedSystem
from tests.agreement.searching import DEEP, QUICK, Seen, differences, searched
from tests.agreement.systems import every

pytest.importorskip("llvmlite")

SYSTEMS = every()
SAMPLE = (
    "closed/setting",
    "broken/pipelining.taken_late",
    "broken/placing.silent_host_trusted",
    "published/two-phase commit, 3 managers",
    "small/choices.Market",
    "small/gymnasium.Gymnasium",
    "small/relay.Relay",
)
SYSTEMS_MIN = 400


def test_all_systems_are_compared() -> None:
    assert len(SYSTEMS) >= SYSTEMS_MIN
    assert {*SAMPLE} <= {*SYSTEMS}


@pytest.mark.parametrize("name", SAMPLE)
def test_all_ways_to_search_a_few_systems_come_to_the_same(name: str) -> None:
    assert differences(SYSTEMS[name], QUICK) == []


@pytest.mark.deep
@pytest.mark.parametrize("name", SYSTEMS)
def test_all_ways_to_search_a_system_come_to_the_same(name: str) -> None:
    assert differences(SYSTEMS[name], DEEP) == []


def too_short(system: ClosedSystem, **options: Any) -> Seen:
    """Look no further than two steps."""
    return searched(system, **options | {"max_depth": 2})


def test_a_search_that_ends_too_soon_is_found() -> None:
    found = differences(SYSTEMS["closed/setting"], QUICK, {"short": too_short})
    assert [one.partition(":")[0] for one in found] == ["whole, short", "partial order, short"]


def test_a_reduction_that_leaves_out_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chooser, "chosen", lambda *_: [0])
    found = differences(SYSTEMS["small/independent.Filter"], QUICK)
    assert {"partial order, python", "partial order, machines"} == {
        one.partition(":")[0] for one in found
    }
