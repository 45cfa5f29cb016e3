"""Every row that does something has its place in the picture, once for each of its states."""

from __future__ import annotations

from collections import Counter

import pytest

from epochgate.diagrams.description import describe
from epochgate.diagrams.overview import fired, overviews
from epochgate.diagrams.passages import described, inner, passages, shared, spaced
from epochgate.fsm import Row
from epochgate.models import MACHINES, RUNNING, VARIANTS, Job
from tests.diagrams.told_door import ToldDoor
from tests.fsm.turnstile import Turnstile

ALL = describe({**MACHINES, "turnstile": Turnstile})


@pytest.mark.parametrize("name", ALL)
def test_every_row_stands_once_for_each_of_its_states(name: str) -> None:
    machine = ALL[name]
    drawn: Counter[tuple[str, Row]] = Counter()
    for passage in passages(machine):
        drawn.update((source, row) for source in passage.sources for row in passage.rows)
    for state in machine.states:
        drawn.update((state, row) for row in inner(machine, state))
    for group in shared(machine):
        drawn.update((state, row) for state in group.states for row in group.rows)
    assert drawn == Counter(
        (source, row)
        for row in machine.rows
        for source in machine.sources(row)
        if not row.is_ignored
    )


@pytest.mark.parametrize("name", ALL)
def test_there_is_one_way_for_each_source_and_dest(name: str) -> None:
    ways = [(s, passage.dest) for passage in passages(ALL[name]) for s in passage.sources]
    assert len(ways) == len(set(ways))


def test_sources_with_the_same_rows_share_a_way() -> None:
    ways = {(p.sources, p.dest) for p in passages(ALL["attempt"])}
    assert (("deploying", "initializing"), "failed") in ways
    assert (("created", "scheduled"), "canceled") in ways


def test_a_list_of_states_is_told_in_the_shortest_way() -> None:
    gateway, attempt = ALL["gateway"], ALL["attempt"]
    assert described(gateway, gateway.states) == "in every state"
    assert described(gateway, ("open", "marked")) == "in open, marked"
    assert described(attempt, tuple(s for s in attempt.states if s != "failed")) == (
        "in every state but failed"
    )


def test_who_triggers_whom_is_read_from_the_actions() -> None:
    found = fired(Job)
    assert found["checkpoint", "gateway"] == ("reopen",)
    assert "attempt_failed" in found["attempt", "lifecycle"]
    assert not [pair for pair in found if pair[0] == pair[1]]
    assert ("gateway", "committer") not in found


def test_what_surroundings_fire_in_their_handlers_is_an_arrow() -> None:
    found = fired(ToldDoor)
    assert found == {
        ("bell", "street"): ("rung",),
        ("street", "bell"): ("ring",),
    }


def test_the_overviews_show_every_machine_once() -> None:
    forms = overviews((*RUNNING, *VARIANTS))
    assert [*forms] == ["overview", "others"]
    text = forms["overview"][0] + forms["others"][0]
    for name in MACHINES:
        assert text.count(f"<B>{spaced(name)}</B>") == 1
