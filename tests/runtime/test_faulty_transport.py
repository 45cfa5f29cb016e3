"""The faulty transport keeps the contract of the one behind it, but for the faults it was given."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.testing.faulty_transport import Fault, FaultyTransport
from tests.runtime.test_inprocess import InProcessHarness
from tests.runtime.transport_contract import RecordingInbox, TransportContract, TransportHarness


class FaultyHarness:
    """The in-process transport, behind one that could be faulty."""

    def __init__(self, parallelism: int) -> None:
        behind = InProcessHarness(parallelism)
        self.transport = FaultyTransport(behind.transport)
        self.pump, self.kill = behind.pump, behind.kill

    def close(self) -> None:
        self.transport.close()


class TestFaultyWithoutFaults(TransportContract):
    def make(self, parallelism: int) -> TransportHarness:
        return FaultyHarness(parallelism)


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
    ],
)
def test_a_fault_without_a_meaning_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Fault("confirm", **settings)
