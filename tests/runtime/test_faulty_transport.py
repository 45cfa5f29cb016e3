"""The faulty transport keeps the contract of the one behind it, but for the faults it was given."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.testing.faulty_transport import RELEASE, Fate, Fault, FaultyTransport
from tests.runtime.test_inprocess import InProcessHarness
from tests.runtime.transport_contract import RecordingInbox, TransportContract, TransportHarness


class FaultyHarness:
    """The in-process transport, behind one that could be faulty."""

    def __init__(self, parallelism: int, *faults: Fault) -> None:
        behind = InProcessHarness(parallelism)
        self.transport = FaultyTransport(behind.transport, faults)
        self.pump, self.kill = behind.pump, behind.kill

    def close(self) -> None:
        self.transport.close()


class TestFaultyWithoutFaults(TransportContract):
    def make(self, parallelism: int) -> TransportHarness:
        return FaultyHarness(parallelism)


def acknowledged(*faults: Fault, doomed: Fate | None = None) -> list[Any]:
    """Return what the driver hears of a barrier, with what is late at the end."""
    harness, inbox = FaultyHarness(1, *faults), RecordingInbox()
    transport = harness.transport
    transport.open(inbox)
    transport.deploy(0, 0)
    harness.pump(lambda: bool(inbox.connections), 1)
    process = inbox.connections[0][1]
    transport.send(0, process, ["restore", 0, 0, None])
    if doomed is not None:
        transport.doom("acknowledge", doomed)
    transport.send(0, process, ["barrier", 1])
    harness.pump(lambda: False, 1)
    inbox.messages[process].append(["late:"])
    while transport.late:
        transport.let_arrive(0)
    assert [strike.identity for strike in transport.strikes] == [process]
    harness.close()
    return [
        message for message in inbox.messages[process] if message[0] not in ("initialize", "run")
    ]


WHOLE = ["acknowledge", 1, False, {"echo": b""}, []]
FATED: list[tuple[Fate, list[Any]]] = [
    ("lost", [["late:"]]),
    ("late", [["late:"], WHOLE]),
    ("repeated", [WHOLE, ["late:"], WHOLE]),
    ("declined", [["decline", 1, "by order of the test"], ["late:"]]),
    ("garbled", [["acknowledge"], ["late:"]]),
]


@pytest.mark.parametrize(("fate", "heard"), FATED, ids=lambda value: str(value)[:10])
def test_the_next_acknowledgement_meets_its_fate(fate: Fate, heard: list[Any]) -> None:
    assert acknowledged(doomed=fate) == heard


@pytest.mark.parametrize(("fate", "heard"), FATED, ids=lambda value: str(value)[:10])
def test_a_counted_acknowledgement_meets_the_same_fate(fate: Fate, heard: list[Any]) -> None:
    until = RELEASE if fate in ("late", "repeated") else ""
    assert acknowledged(Fault("acknowledge", 1, fate, to="driver", until=until)) == heard


def test_an_unknown_fate_is_refused() -> None:
    transport, _, _ = opened()
    with pytest.raises(ValueError, match="cannot be 'burnt'"):
        transport.doom("event", "burnt")  # type: ignore[arg-type]  # what is refused


def test_a_fate_that_no_message_has_met_is_forgotten_when_asked_to() -> None:
    transport, wire, _ = opened()
    transport.doom("event", "lost")
    transport.calm()
    transport.send(0, 1, ["event", 0, 1, "x"])
    assert wire.sent == [(0, ["event", 0, 1, "x"])]


def test_the_next_event_is_one_to_a_task_of_whichever_subtask() -> None:
    transport, wire, inbox = opened()
    transport.doom("event", "lost")
    wire.inbox.received(1, 2, [["event", 0, "up"]])
    transport.send(1, 2, ["event", 0, 1, "x"])
    transport.send(0, 1, ["event", 0, 1, "y"])
    assert wire.sent == [(0, ["event", 0, 1, "y"])]
    assert inbox.messages[2] == [["event", 0, "up"]]


def test_what_was_heard_is_heard_again_though_it_was_lost() -> None:
    transport, wire, inbox = opened(Fault("confirm", 2, "lost", to="driver"))
    wire.inbox.received(0, 1, [["confirm", 0, 1], ["confirm", 0, 2], ["event", 0, "up"]])
    transport.repeat(-1)
    assert inbox.messages[1] == [["confirm", 0, 1], ["event", 0, "up"], ["confirm", 0, 2]]


class Wire(Transport):
    """Keeps what is sent, and hears what it is told."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []
        self.inbox: TaskInbox

    def open(self, inbox: TaskInbox) -> None:
        self.inbox = inbox

    def send(self, subtask: int, identity: int, message: Message) -> None:
        self.sent.append((subtask, message))

    def deploy(self, subtask: int, attempt: int) -> None: ...
    def flush(self) -> None: ...
    def end(self, subtask: int, identity: int, reason: str) -> None: ...
    def close(self) -> None: ...


def opened(*faults: Fault) -> tuple[FaultyTransport, Wire, RecordingInbox]:
    wire, inbox = Wire(), RecordingInbox()
    transport = FaultyTransport(wire, faults)
    transport.open(inbox)
    return transport, wire, inbox


def test_messages_are_counted_for_each_subtask_by_its_tag() -> None:
    transport, wire, _ = opened(Fault("event", 2, "lost", to="task"))
    for number in (1, 2, 3):
        for subtask in (0, 1):
            transport.send(subtask, subtask + 1, ["barrier", number])
            transport.send(subtask, subtask + 1, ["event", 0, number, "x"])
    for subtask in (0, 1):
        events = [m[2] for s, m in wire.sent if (s, m[0]) == (subtask, "event")]
        barriers = [m[1] for s, m in wire.sent if (s, m[0]) == (subtask, "barrier")]
        assert (events, barriers) == ([1, 3], [1, 2, 3])
    assert [(s.subtask, s.identity) for s in transport.strikes] == [(0, 1), (1, 2)]


def test_a_fault_of_one_subtask_spares_the_others() -> None:
    transport, wire, _ = opened(Fault("event", 1, "repeated", to="task", subtask=1))
    for subtask in (0, 1):
        transport.send(subtask, 7, ["event", 0, 1, "x"])
    assert [subtask for subtask, _ in wire.sent] == [0, 1, 1]


def test_an_event_to_a_task_is_not_one_from_it() -> None:
    transport, wire, inbox = opened(Fault("event", 1, "lost", to="driver"))
    transport.send(0, 1, ["event", 0, 1, "down"])
    wire.inbox.received(0, 1, [["event", 0, "up"], ["event", 0, "up again"]])
    assert wire.sent == [(0, ["event", 0, 1, "down"])]
    assert inbox.messages[1] == [["event", 0, "up again"]]


@pytest.mark.parametrize("direction", ["task", "driver"])
def test_what_is_late_comes_right_after_what_it_waits_for(direction: str) -> None:
    transport, wire, inbox = opened(Fault("confirm", 1, "late", to="driver", until="event"))
    wire.inbox.received(0, 1, [["confirm", 0, 1], ["acknowledge", 1, False, {}, []]])
    assert inbox.messages[1] == [["acknowledge", 1, False, {}, []]]
    if direction == "task":
        transport.send(0, 1, ["event", 0, 2, "x"])
    else:
        wire.inbox.received(0, 1, [["event", 0, "x"]])
    assert inbox.messages[1][-1] == ["confirm", 0, 1]


def test_what_waits_for_its_own_kind_does_not_come_by_itself() -> None:
    _, wire, inbox = opened(Fault("confirm", 1, "late", to="driver", until="confirm"))
    wire.inbox.received(0, 1, [["confirm", 0, 1]])
    assert inbox.messages == {}
    wire.inbox.received(0, 1, [["confirm", 0, 2]])
    assert inbox.messages[1] == [["confirm", 0, 2], ["confirm", 0, 1]]


def test_what_is_late_never_comes_once_it_is_closed() -> None:
    transport, wire, inbox = opened(Fault("confirm", 1, "late", to="driver", until="event"))
    wire.inbox.received(0, 1, [["confirm", 0, 1]])
    transport.close()
    transport.send(0, 1, ["event", 0, 1, "x"])
    assert inbox.messages == {}


@pytest.mark.parametrize("garbled", [[], [["no", "tag"]], [None]])
def test_a_message_without_a_form_passes(garbled: Any) -> None:
    _, wire, inbox = opened(Fault("confirm", 1, "lost", to="driver"))
    wire.inbox.received(0, 1, [garbled])
    assert inbox.messages[1] == [garbled]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"at": 0, "fate": "lost", "to": "task"}, "counted from 1"),
        ({"at": 1, "fate": "late", "to": "driver"}, "says when"),
        ({"at": 1, "fate": "lost", "to": "driver", "until": "event"}, "says when"),
        ({"at": 1, "fate": "late", "to": "task", "until": "event"}, "only what goes to the driver"),
        ({"at": 1, "fate": "repeated", "to": "task", "until": "event"}, "only what goes to the"),
        ({"at": 1, "fate": "garbled", "to": "task"}, "only what goes to the driver"),
        ({"at": 1, "fate": "declined", "to": "driver"}, "only an acknowledgement"),
    ],
)
def test_a_fault_without_a_meaning_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Fault("confirm", **settings)
