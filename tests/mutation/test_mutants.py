"""Every machine that runs is broken in one row at a time, and both the checker and the runtime have
to find it: the checked code is the running code, and neither looks away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain, islice

import pytest

from tests.mutation.checking import claimed, claimed_soon
from tests.mutation.every import named
from tests.mutation.mutants import (
    MACHINES,
    AnyMutant,
    Mutant,
    mutants,
    mutants_of,
    own_rows,
)
from tests.mutation.outcomes import LISTS, judged
from tests.mutation.table import PROPERTY
from tests.mutation.verdicts import digest, kept, names_of

Record = Callable[[str, object], None]
PARTS = 2
"""Into which each machine's mutants are dealt, so that processes can share them."""
SAMPLE = 5
"""Of each machine, in `make mutants`, beside one of the kinds that a claim alone has to find."""
FURTHER_KINDS = (
    "source state dropped",
    "other target",
    "row deleted",
    "action doubled",
    "guard negated",
    "sibling effect",
    "other field",
    "actions swapped",
    "constant by one",
    "source state added",
)
SAID_OTHERWISE = (
    "lifecycle: attempt_left from restarting, finishing, failing, canceling when "
    "is_last_leaving: without settle_down",
    "lifecycle: attempt_ended from any state when is_last_end: without ask_for_last",
    "lifecycle: attempt_running from any state when is_last_running: without resume_request",
    "task: event from running, ended when not is_next and not is_old: without call_gap",
    "placement: reached from any state but given_up when is_suspect: without trust",
)
"""Mutants of actions that mean the same as one of a guard, which comes before them."""


def surprises(some: list[Mutant], record: Record) -> list[str]:
    outcomes = judged(some)
    for outcome in outcomes:
        record(PROPERTY, [f"{outcome.mutant.machine}: rows", outcome.column, outcome.mutant.name])
    return [outcome.surprise for outcome in outcomes if outcome.surprise]


def sample(machine: str) -> list[Mutant]:
    """Mutants from all over the machine's table, which checker and runtime should find; all of
    them, if there are fewer that can be declared.
    """
    excused = {name for _, reasons in LISTS.values() for name in reasons}
    left = [m for m in mutants_of(machine) if m.name not in excused]
    apart = left[:: max(1, len(left) // (2 * SAMPLE))]
    others = (m for m in left if m not in apart)
    return list(islice((m for m in chain(apart, others) if not m.refusal), SAMPLE))


def of_a_further_kind(machine: str) -> AnyMutant | None:
    """The first mutant that a claim has found before, of a kind that differs from machine to
    machine; None for a machine that was not judged since its rows have changed.
    """
    position = [*MACHINES].index(machine)
    kinds = (*FURTHER_KINDS[position % len(FURTHER_KINDS) :], *FURTHER_KINDS)
    told, names = kept(machine), names_of(machine)
    if told is None:
        return None
    for kind in kinds:
        if kind in names and told.names.get(kind) == digest(names[kind]):
            for name, finder in zip(names[kind], told.kinds[kind], strict=True):
                if finder.startswith("checker: "):
                    return named([name])[name]
    return None


@pytest.mark.mutants
@pytest.mark.parametrize("machine", MACHINES)
def test_a_broken_row_is_found_by_the_checker_and_by_the_runtime(
    machine: str, record_property: Record
) -> None:
    chosen = sample(machine)
    assert chosen != []
    assert surprises(chosen, record_property) == []
    if further := of_a_further_kind(machine):
        assert claimed_soon(further) or claimed(further), further.name


@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("machine", MACHINES)
def test_every_broken_row_is_found_or_there_is_a_reason_why_not(
    machine: str, part: int, record_property: Record
) -> None:
    assert surprises(list(mutants_of(machine)[part::PARTS]), record_property) == []


def test_there_is_a_mutant_for_each_guard_and_each_action() -> None:
    faults = Counter(mutant.fault.split()[0] for mutant in mutants())
    rows = [row for each in MACHINES.values() for row in map(each.ROWS.__getitem__, own_rows(each))]
    actions = sum(len(row.actions) for row in rows)
    assert faults["without"] == actions - len(SAID_OTHERWISE)
    assert faults["regardless"] > 100
    assert len({mutant.name for mutant in mutants()}) == faults.total()


def test_each_reason_is_of_a_mutant_that_there_is_and_stands_in_one_list() -> None:
    reasons = Counter(name for _, listed in LISTS.values() for name in listed)
    assert [name for name, count in reasons.items() if count > 1] == []
    assert [m.name for m in mutants() if m.name in reasons and m.refusal] == []
