"""Every row that does something has its place in the picture, once for each of its states."""

from __future__ import annotations

from collections import Counter

import pytest

from epochgate.diagrams.overview import fired
from epochgate.diagrams.passages import described, inner, passages, shared
from epochgate.fsm import Machine, Row
from epochgate.models import MACHINES, Attempt, Gateway, Job
from tests.fsm.turnstile import Turnstile

ALL: dict[str, type[Machine]] = {**MACHINES, "turnstile": Turnstile}


@pytest.mark.parametrize("name", ALL)
def test_every_row_stands_once_for_each_of_its_states(name: str) -> None:
    machine = ALL[name]
    drawn: Counter[tuple[str, Row]] = Counter()
    for passage in passages(machine):
        drawn.update((source, row) for source in passage.sources for row in passage.rows)
    for state in machine.STATES:
        drawn.update((state, row) for row in inner(machine, state))
    for group in shared(machine):
        drawn.update((state, row) for state in group.states for row in group.rows)
    assert drawn == Counter((s, row) for s, row in machine.expanded_rows() if not row.is_ignored)


@pytest.mark.parametrize("name", ALL)
def test_there_is_one_way_for_each_source_and_dest(name: str) -> None:
    ways = [(s, passage.dest) for passage in passages(ALL[name]) for s in passage.sources]
    assert len(ways) == len(set(ways))


def test_sources_with_the_same_rows_share_a_way() -> None:
    ways = {(p.sources, p.dest) for p in passages(Attempt)}
    assert (("deploying", "initializing"), "failed") in ways
    assert (("created", "scheduled"), "canceled") in ways


def test_a_list_of_states_is_told_in_the_shortest_way() -> None:
    assert described(Gateway, Gateway.STATES) == "in every state"
    assert described(Gateway, ("open", "marked")) == "in open, marked"
    assert described(Attempt, tuple(s for s in Attempt.STATES if s != "failed")) == (
        "in every state but failed"
    )


def test_who_triggers_whom_is_read_from_the_actions() -> None:
    found = fired(Job)
    assert found["checkpoint", "gateway"] == ("reopen",)
    assert "attempt_failed" in found["attempt", "lifecycle"]
    assert not [pair for pair in found if pair[0] == pair[1]]
    assert ("gateway", "committer") not in found
