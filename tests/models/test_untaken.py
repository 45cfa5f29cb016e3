"""Each row of the machines that run is taken from each of its states in some closed system, or a
reason says why not.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import check
from epochgate.fsm.checker.report import untaken_from
from epochgate.fsm.declaration import expand
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.models.closed.untaken import NOT_FROM, NOT_FROM_BECAUSE


def excused(machine: str, trigger: str, state: str, because: str) -> set[str]:
    """The names of reasons for a row in a state."""
    place = f"{machine}.{trigger} from {state}"
    return {place, f"{place}: {because}"} & NOT_FROM.keys()


def rows() -> set[tuple[str, str, str, str]]:
    """Each row of a machine in each of its states."""
    return {
        (name, row.trigger, state, row.because)
        for system in SYSTEMS.values()
        for name, machine in system.MACHINES.items()
        if not machine.IS_ENVIRONMENT
        for row in machine.ROWS
        for state in expand(machine.STATES, row)
    }


def test_each_reason_is_for_a_row_in_a_state_that_there_is() -> None:
    found: set[str] = set()
    for row in rows():
        found |= excused(*row)
    assert found == NOT_FROM.keys()
    assert len(NOT_FROM) == sum(len(_states(some)) for some in NOT_FROM_BECAUSE.values())


def _states(some: tuple[str, ...]) -> list[str]:
    return [
        state for each in some for state in each.partition(": ")[0].partition(" from ")[2].split()
    ]


@pytest.mark.extended
@pytest.mark.timeout(600)
def test_what_no_system_takes_from_a_state_has_a_reason_and_nothing_else_has() -> None:
    results = [check(system()) for system in SYSTEMS.values()]
    taken = {
        (row.machine, row.trigger, row.because)
        for result in results
        for row in result.coverage
        if row.is_taken
    }
    assert {
        (machine, trigger, state, because)
        for (machine, trigger, because), states in untaken_from(results).items()
        for state in states
    } == {
        (machine, trigger, state, because)
        for machine, trigger, state, because in rows()
        if (machine, trigger, because) in taken and excused(machine, trigger, state, because)
    }
