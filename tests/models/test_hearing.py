"""Each message of a machine to the outside is heard: each argument makes a difference in some
closed system, or a reason says why it need not.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from epochgate.fsm import STAY, Channel, Fifo, Int, Machine, Port, Row, Trigger, machines, output
from epochgate.fsm.closed import ClosedSystem, Environment, Step
from epochgate.models.catalogue import MACHINES
from epochgate.models.closed.catalogue import SYSTEMS
from tests.models.hearing import Message, messages, running, table
from tests.models.unheard import NOTHING, REASONS


class Told(Port):
    """Two numbers, and that there is more."""

    def numbers(self, one: int, other: int) -> None:
        """One is kept, and the other handed on."""

    def more(self) -> None:
        """Nothing comes of it."""


class Speaker(Machine):
    STATES = ("speaking", "silent")
    INITIAL = "speaking"
    TERMINAL = ("silent",)

    told = output(Told)

    speak: Trigger

    ROWS = (Row("speak", "speaking", "silent", None, "tell", "it has something to say"),)

    def tell(self) -> None:
        self.told.numbers(0, 1)
        self.told.more()


class Listener(Environment):
    """Copies one number into a field that nothing reads, and puts the other into a channel."""

    STATES = ("listening",)
    INITIAL = "listening"

    system: Conversation
    one: int = Int(1)
    copy: int = Int(1)
    others: Fifo[int] = Channel("most", "length")

    take: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take", "listening", STAY, "has_other", "take_other", "the number has arrived"),
    )

    def has_other(self) -> bool:
        return not self.others.empty()

    def take_other(self) -> None:
        self.copy = self.one
        self.others.pop()

    def numbers(self, one: int, other: int) -> None:
        self.one = one
        self.others.push(other)

    def more(self) -> None:
        pass


class AttentiveListener(Listener):
    """Insists on the number that comes out of the channel."""

    def take_other(self) -> None:
        self.check(self.others.pop())

    def check(self, number: int) -> None:
        assert number > 0


class Conversation(ClosedSystem):
    STEPS = (Step("speaker", "speak"), Step("listener", "take"))
    CONSTANTS: ClassVar[dict[str, int]] = {"most": 1, "length": 1}
    WIRING: ClassVar[dict[str, str]] = {"speaker.told": "listener"}

    speaker: Speaker = machines(Speaker)
    listener: Listener = machines(Listener)


class AttentiveConversation(Conversation):
    listener: Listener = machines(AttentiveListener)


def test_a_value_that_ends_in_a_field_which_nothing_looks_at_is_unheard() -> None:
    assert messages([Conversation]) == [
        Message("Speaker", "told", "more", (), (), is_nothing=True),
        Message("Speaker", "told", "numbers", ("one", "other"), ("one", "other"), False),
    ]


def test_a_value_is_heard_where_one_system_looks_at_it_however_it_gets_there() -> None:
    _, numbers = messages([Conversation, AttentiveConversation])
    assert numbers.unheard == ("one",)


def test_the_table_counts_messages_and_arguments() -> None:
    assert [*table(messages([AttentiveConversation]))] == [
        "Speaker.told.more()  nothing happens",
        "Speaker.told.numbers([one], other)",
        "2 messages, 1 of them nothing happens at in any system",
        "2 arguments, 1 of them [in brackets] nothing looks at",
    ]


@pytest.fixture(scope="module")
def found() -> list[Message]:
    return messages(SYSTEMS.values())


def test_each_port_of_the_machines_that_run_leads_somewhere(found: list[Message]) -> None:
    wired = {(message.machine, message.port, message.name) for message in found}
    assert {
        (running(machine, port, message), port, message)
        for machine in MACHINES.values()
        for port, field in machine.PORTS.items()
        for message in field.port.messages()
    } <= wired


def test_each_argument_of_each_message_is_heard_or_a_reason_says_why_not(
    found: list[Message],
) -> None:
    unheard = {f"{message.key}: {name}" for message in found for name in message.unheard}
    assert unheard == REASONS.keys()


def test_each_message_makes_a_difference_or_a_reason_says_why_not(found: list[Message]) -> None:
    assert {message.key for message in found if message.is_nothing} == NOTHING.keys()
