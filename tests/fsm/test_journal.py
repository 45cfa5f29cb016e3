"""A journal of processed events leads a fresh system to the same state, or says that it does
not.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochgate.fsm import (
    EventQueue,
    JournalEntry,
    MemoryJournal,
    ReplayDiverged,
    TransitionRefused,
    VirtualClock,
    replay,
)
from tests.fsm.turnstile import Log, Station

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pay"), st.tuples(st.integers(0, 2))),
        st.tuples(st.just("push"), st.tuples(st.text(max_size=3))),
    ),
    max_size=30,
)


def recorded(events: list[tuple[str, tuple[object, ...]]]) -> tuple[Station, MemoryJournal]:
    station, clock = Station(gates=2), VirtualClock()
    journal = MemoryJournal(station)
    station.bind("turnstile", "guard", Log())
    queue = EventQueue(station, clock, journal)
    for number, (trigger, arguments) in enumerate(events):
        clock.advance(0.25)
        queue.post(getattr(station.turnstile[number % 2], trigger), *arguments)
        queue.drain()
    return station, journal


def test_an_entry_says_when_what_happened_to_whom() -> None:
    _, journal = recorded([("pay", (2,)), ("push", ("a",))])
    assert journal.entries == [
        JournalEntry(0, 0.25, "turnstile", (0,), "pay", (2,)),
        JournalEntry(1, 0.5, "turnstile", (1,), "push", ("a",)),
    ]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(EVENTS)
def test_a_journal_replays_to_the_same_state(
    events: list[tuple[str, tuple[object, ...]]],
) -> None:
    station, journal = recorded(events)
    again = Station(gates=2)
    replay(journal.entries, again, station.values())
    assert again.values() == station.values()


def test_calls_of_the_shell_and_of_other_systems_are_not_journalled() -> None:
    station, journal = recorded([])
    queue = EventQueue(station, VirtualClock(), journal)
    queue.post(list[int]().append, 1)
    queue.post(Station().turnstile[0].hit)
    assert queue.drain() == 2
    assert journal.entries == []


def test_a_replay_that_ends_elsewhere_names_the_machine() -> None:
    station, journal = recorded([("pay", (2,)), ("pay", (1,))])
    altered = dataclasses.replace(journal.entries[1], arguments=(2,))
    with pytest.raises(ReplayDiverged, match=r"leads turnstile\[1\] to .*'unlocked'.*recorded at"):
        replay([journal.entries[0], altered], Station(gates=2), station.values())


def test_a_replay_into_other_constants_diverges() -> None:
    station, journal = recorded([("pay", (2,))])
    with pytest.raises(ReplayDiverged, match="constants"):
        replay(journal.entries, Station(gates=2, fare=9), station.values())
    with pytest.raises(ReplayDiverged, match=r"leads turnstile\[1\] to None"):
        replay([], Station(), {"turnstile[0]": Station().turnstile[0].values(), "turnstile[1]": {}})


def test_an_entry_that_is_not_possible_is_refused() -> None:
    entries = [
        JournalEntry(n, 0.0, "turnstile", (0,), t, a)
        for n, t, a in ((0, "hit", ()), (1, "pay", (1,)))
    ]
    with pytest.raises(TransitionRefused):
        replay(entries, Station())
