"""A journal of processed events leads a fresh system to the same state, or says that it does
not.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.fsm import (
    EventQueue,
    JournalEntry,
    MemoryJournal,
    ReplayDiverged,
    System,
    TransitionRefused,
    VirtualClock,
    machines,
    replay,
)
from tests.checker.relay import Relay, Runner, Track
from tests.fsm.turnstile import Log, Station, Turnstile

PASSED, TAMPERED = (Turnstile.EFFECTS["guard"][message] for message in ("passed", "tampered"))


class ProtocolOfRelay(System):
    """The protocol's machines of the relay, without their environment."""

    INDEX_SETS: ClassVar[dict[str, str]] = Relay.INDEX_SETS
    CONSTANTS: ClassVar[dict[str, int]] = Relay.CONSTANTS

    runner: list[Runner] = machines(Runner)
    track: Track = machines(Track)


def recorded_relay() -> tuple[Relay, MemoryJournal]:
    """One step of the closed system, in a journal."""
    relay = Relay()
    journal = relay.journal = MemoryJournal(relay)
    relay.take(Relay.STEPS[0], relay.runner[0])
    return relay, journal


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


def test_an_entry_holds_the_effects_of_its_step() -> None:
    _, journal = recorded([("pay", (2,)), ("pay", (2,)), ("push", ("a",))])
    assert [entry.effects for entry in journal.entries] == [(), (), (PASSED((0, 1)),)]


def test_a_trigger_that_an_action_fires_belongs_to_the_entry_of_its_event() -> None:
    relay, journal = recorded_relay()
    assert [(entry.machine, entry.index, entry.trigger) for entry in journal.entries] == [
        ("runner", (0,), "start"),
        ("runner", (1,), "applaud"),
        ("runner", (2,), "applaud"),
        ("runner", (0,), "applaud"),
    ]
    assert [len(entry.effects) for entry in journal.entries] == [3, 1, 1, 1]
    again = ProtocolOfRelay()
    replay(journal.entries, again)
    assert again.track.values() == relay.track.values()


def test_a_replay_whose_effects_differ_names_the_entry_and_both() -> None:
    station, journal = recorded([("pay", (2,)), ("pay", (2,)), ("push", ("a",))])
    altered = dataclasses.replace(journal.entries[2], effects=(PASSED((0, 2)),))
    told = (
        r"entry 2, turnstile\.push: its effects are \[Turnstile\[0\]\.guard\.passed\(count=1\)\], "
        r"but \[Turnstile\[0\]\.guard\.passed\(count=2\)\] were recorded"
    )
    with pytest.raises(ReplayDiverged, match=told):
        replay([*journal.entries[:2], altered], Station(gates=2), station.values())


@settings(max_examples=100, derandomize=True, database=None)
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
        JournalEntry(n, 0.0, "turnstile", (0,), t, a, effects)
        for n, t, a, effects in ((0, "hit", (), (TAMPERED((0,)),)), (1, "pay", (1,), ()))
    ]
    with pytest.raises(TransitionRefused):
        replay(entries, Station())
