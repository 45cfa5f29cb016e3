"""The alternating bit protocol: each value gets over a wire that loses messages.

The sender repeats a value, with a bit, until the bit is acknowledged; then it takes the next value
and turns the bit over. After the specification of the same name in chapter 14 of "Specifying
Systems" (L. Lamport, 2002), step by step, with channels that hold as much as TLC's model of it.
`epochgate check examples.alternating_bit:AlternatingBit` checks it.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Port,
    Row,
    Trigger,
    machines,
    output,
)
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, implements, leads_to


class ToReceiver(Port):
    """The messages of the sender."""

    def message(self, bit: int, value: int) -> None:
        """Carry a value and its bit to the receiver."""


class ToSender(Port):
    """The messages of the receiver."""

    def acknowledged(self, bit: int) -> None:
        """Carry the bit of the newest message to the sender."""


class Sender(Machine):
    """Repeats a value until it is acknowledged."""

    STATES, INITIAL = ("ready", "waiting"), "ready"

    bit: int = Int(1)
    value: int = Int("value_max")
    receiver: ToReceiver = output(ToReceiver)

    send: Trigger
    resend: Trigger
    acknowledged: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send", "ready", "waiting", None, "take, transmit", "a new value"),
        Row("resend", "waiting", STAY, None, "transmit", "perhaps it was lost"),
        Row("acknowledged", "waiting", "ready", "is_mine", None, "it has arrived"),
        Ignore("acknowledged", "waiting", "not is_mine", "of the value before"),
        Ignore("acknowledged", "ready", "is_mine", "once more"),
    )

    def is_mine(self, bit: int) -> bool:
        return bit == self.bit

    def take(self, value: int) -> None:
        self.bit = 1 - self.bit
        self.value = value

    def transmit(self) -> None:
        self.receiver.message(self.bit, self.value)


class Receiver(Machine):
    """Keeps the newest value, and says which it is as often as it is asked to."""

    STATES, INITIAL = ("open",), "open"

    bit: int = Int(1)
    value: int = Int("value_max")
    sender: ToSender = output(ToSender)

    message: Trigger
    acknowledge: Trigger

    ROWS = (
        Row("message", "open", STAY, None, "take", "a value, perhaps once more"),
        Row("acknowledge", "open", STAY, None, "answer", "perhaps the last one was lost"),
    )

    def take(self, bit: int, value: int) -> None:
        self.bit = bit
        self.value = value

    def answer(self) -> None:
        self.sender.acknowledged(self.bit)


class User(Environment):
    """Has one value to send, any number of times."""

    system: AlternatingBit
    choice: int

    INDEX, STATES, INITIAL = ("choice",), ("there",), "there"

    give: Trigger

    ROWS = (Row("give", "there", STAY, "may_give", "hand_over", "a value to send"),)

    def may_give(self) -> bool:
        return self.system.sender.state == "ready" and self.system.wire.has_room()

    def hand_over(self) -> None:
        self.system.sender.send(self.choice)


class Wire(Environment):
    """Keeps messages in order, loses some, and lets both sides lose patience."""

    system: AlternatingBit

    STATES, INITIAL = ("up",), "up"

    sent_bits: Fifo[int] = Channel("bit_max", "room")
    sent_values: Fifo[int] = Channel("value_max", "room")
    answers: Fifo[int] = Channel("bit_max", "room")

    deliver: Trigger
    answer: Trigger
    resend: Trigger
    acknowledge: Trigger
    lose_first: Trigger
    lose_last: Trigger
    lose_first_answer: Trigger
    lose_last_answer: Trigger

    ROWS = (
        Row("deliver", "up", STAY, "has_message", "bring_message", "a message arrives"),
        Row("answer", "up", STAY, "has_answer", "bring_answer", "an answer arrives"),
        Row("resend", "up", STAY, "is_late", "remind_sender", "the sender loses patience"),
        Row("acknowledge", "up", STAY, "can_answer", "remind_receiver", "the receiver answers"),
        Row("lose_first", "up", STAY, "has_message", "drop_first", "a message is lost"),
        Row("lose_last", "up", STAY, "has_messages", "drop_last", "a later message is lost"),
        Row("lose_first_answer", "up", STAY, "has_answer", "drop_first_answer", "one is lost"),
        Row("lose_last_answer", "up", STAY, "has_answers", "drop_last_answer", "one is lost"),
    )

    def has_room(self) -> bool:
        return self.sent_bits.size() < self.system.room

    def has_message(self) -> bool:
        return not self.sent_bits.empty()

    def has_messages(self) -> bool:
        return self.sent_bits.size() == 2

    def has_answer(self) -> bool:
        return not self.answers.empty()

    def has_answers(self) -> bool:
        return self.answers.size() == 2

    def is_late(self) -> bool:
        return self.system.sender.state == "waiting" and self.has_room()

    def can_answer(self) -> bool:
        return self.answers.size() < self.system.room

    def message(self, bit: int, value: int) -> None:
        self.sent_bits.push(bit)
        self.sent_values.push(value)

    def acknowledged(self, bit: int) -> None:
        self.answers.push(bit)

    def bring_message(self) -> None:
        self.system.receiver.message(self.sent_bits.pop(), self.sent_values.pop())

    def bring_answer(self) -> None:
        self.system.sender.acknowledged(self.answers.pop())

    def remind_sender(self) -> None:
        self.system.sender.resend()

    def remind_receiver(self) -> None:
        self.system.receiver.acknowledge()

    def drop_first(self) -> None:
        self.sent_bits.pop()
        self.sent_values.pop()

    def drop_last(self) -> None:
        bit = self.sent_bits.pop()
        value = self.sent_values.pop()
        self.drop_first()
        self.message(bit, value)

    def drop_first_answer(self) -> None:
        self.answers.pop()

    def drop_last_answer(self) -> None:
        bit = self.answers.pop()
        self.answers.pop()
        self.answers.push(bit)


class Transfer(Machine):
    """One value after the other gets from here to there, as if there were no wire."""

    STATES, INITIAL = ("ready", "sent", "arrived"), "ready"

    bit: int = Int(1)
    value: int = Int("value_max")
    received: int = Int("value_max")

    send: Trigger
    arrive: Trigger
    confirm: Trigger

    ROWS = (
        Row("send", "ready", "sent", None, "take", "a new value"),
        Row("arrive", "sent", "arrived", None, "copy", "it is received"),
        Row("confirm", "arrived", "ready", None, None, "the sender knows"),
    )

    def take(self, value: int) -> None:
        self.bit = 1 - self.bit
        self.value = value

    def copy(self) -> None:
        self.received = self.value


class Handover(ClosedSystem):
    """The purpose of the protocol: its specification."""

    CONSTANTS: ClassVar[dict[str, int]] = {"choices": 2}
    DERIVED: ClassVar[dict[str, str]] = {"value_max": "choices - 1"}
    STEPS = (
        Step("transfer", "send", over=("choices",), is_fair=False),
        Step("transfer", "arrive"),
        Step("transfer", "confirm"),
    )
    UNREAD: ClassVar[dict[str, str]] = {
        "transfer.received": "what implements this has to have it",
    }

    transfer: Transfer = machines(Transfer)


class AlternatingBit(ClosedSystem):
    """Values in some number, and channels with room for two messages each."""

    room: int

    INDEX_SETS: ClassVar[dict[str, str]] = {"choice": "choices"}
    CONSTANTS: ClassVar[dict[str, int]] = {"choices": 2, "room": 2, "bit_max": 1}
    DERIVED: ClassVar[dict[str, str]] = {"value_max": "choices - 1"}
    WIRING: ClassVar[dict[str, str]] = {"sender.receiver": "wire", "receiver.sender": "wire"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("user", "give", is_fair=False),
        Step("wire", "resend"),
        Step("wire", "acknowledge"),
        Step("wire", "deliver", is_strongly_fair=True),
        Step("wire", "answer", is_strongly_fair=True),
        Step("wire", "lose_first", is_fair=False),
        Step("wire", "lose_last", is_fair=False),
        Step("wire", "lose_first_answer", is_fair=False),
        Step("wire", "lose_last_answer", is_fair=False),
    )

    user: list[User] = machines(User)
    sender: Sender = machines(Sender)
    receiver: Receiver = machines(Receiver)
    wire: Wire = machines(Wire)

    @always("what was acknowledged has arrived", when="is_ready")
    def has_arrived(self) -> bool:
        return self.receiver.value == self.sender.value

    def is_ready(self) -> bool:
        return self.sender.state == "ready"

    @leads_to("the sender gets on to the next value", then="is_ready")
    def is_waiting(self) -> bool:
        return self.sender.state == "waiting"

    @implements("each value gets over once, and in order", Handover, choices="choices")
    def as_handover(self, specification: Handover) -> None:
        transfer = specification.transfer
        transfer.bit = self.sender.bit
        transfer.value = self.sender.value
        transfer.received = self.receiver.value
        if self.sender.state == "ready":
            transfer.state = "ready"
        else:
            transfer.state = "arrived" if self.receiver.bit == self.sender.bit else "sent"
