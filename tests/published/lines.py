"""The alternating bit protocol, with lines that lose and without: specifications of Lamport's book,
from the TLA+ examples.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    implements,
    initially,
    leads_to,
)

THERE = "there"


class Bits(Environment):
    """The alternating bit where lines are left out."""

    STATES, INITIAL = (THERE,), THERE

    sent_bit: bool = Bool(start=ANY)
    known_bit: bool = Bool(start=ANY)
    heard_bit: bool = Bool(start=ANY)
    sent: bool = Bool(start=ANY)
    heard: bool = Bool(start=ANY)

    receive: Trigger
    hear: Trigger

    ROWS = (
        Row("receive", THERE, STAY, "is_new", "take", "the value arrives"),
        Row("hear", THERE, STAY, "is_unknown", "learn", "the answer arrives"),
    )

    def is_new(self) -> bool:
        return self.heard_bit != self.sent_bit

    def is_unknown(self) -> bool:
        return self.heard_bit != self.known_bit

    def take(self) -> None:
        self.heard_bit = self.sent_bit
        self.heard = self.sent

    def learn(self) -> None:
        self.known_bit = self.heard_bit


class NewBit(Environment):
    """A new value that may be sent."""

    INDEX = ("news",)
    STATES, INITIAL = (THERE,), THERE

    system: BareBits
    news: int

    send: Trigger

    ROWS = (Row("send", THERE, STAY, "is_known", "put", "the last one has arrived"),)

    def is_known(self) -> bool:
        return self.system.bits.sent_bit == self.system.bits.known_bit

    def put(self) -> None:
        self.system.bits.sent = self.news == 1
        self.system.bits.sent_bit = not self.system.bits.sent_bit


class BareBits(ClosedSystem):
    """ABCorrectness: what the protocol has to come to."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"news": "kinds"}
    CONSTANTS: ClassVar[dict[str, int]] = {"kinds": 2}
    UNREAD: ClassVar[dict[str, str]] = {"bits.heard": "it is what others see"}
    STEPS = (Step("news", "send"), Step("bits", "receive"), Step("bits", "hear"))

    bits: Bits = machines(Bits)
    news: list[NewBit] = machines(NewBit)

    @initially("all is known")
    def is_quiet(self) -> bool:
        return (
            self.bits.sent_bit == self.bits.known_bit and self.bits.sent_bit == self.bits.heard_bit
        )


class Line(Environment):
    """The sender's bits, the receiver's, and two lines that lose: a message is twice its bit, plus
    its value.
    """

    STATES, INITIAL = (THERE,), THERE

    system: AlternatingBit

    messages: Fifo[int] = Channel("message", "room")
    answers: Fifo[int] = Channel("bit", "room")
    sent_bit: int = Int("bit", start=ANY)
    known_bit: int = Int("bit", start=ANY)
    heard_bit: int = Int("bit", start=ANY)
    sent: int = Int("bit", start=ANY)
    heard: int = Int("bit", start=ANY)

    send_again: Trigger
    receive: Trigger
    answer: Trigger
    hear: Trigger
    lose_first: Trigger
    lose_second: Trigger
    lose_first_answer: Trigger
    lose_second_answer: Trigger

    ROWS = (
        Row("send_again", THERE, STAY, "is_waiting and has_room", "put", "no answer has come"),
        Row("send_again", THERE, STAY, "is_waiting and not has_room", None, "it would be long"),
        Row("receive", THERE, STAY, "has_message", "take", "a message arrives"),
        Row("answer", THERE, STAY, "may_answer", "put_answer", "what came last is answered"),
        Row("answer", THERE, STAY, "not may_answer", None, "the line would be long"),
        Row("hear", THERE, STAY, "has_answer", "take_answer", "an answer arrives"),
        Row("lose_first", THERE, STAY, "has_message", "drop", "a message is lost"),
        Row("lose_second", THERE, STAY, "has_two", "turn, drop", "the second one is lost"),
        Row("lose_first_answer", THERE, STAY, "has_answer", "drop_answer", "an answer is lost"),
        Row("lose_second_answer", THERE, STAY, "has_two_answers", "turn_answers", "the second is"),
    )

    def is_waiting(self) -> bool:
        return self.known_bit != self.sent_bit

    def has_room(self) -> bool:
        return self.messages.size() < self.system.room

    def may_answer(self) -> bool:
        return self.answers.size() < self.system.room

    def has_message(self) -> bool:
        return not self.messages.empty()

    def has_answer(self) -> bool:
        return not self.answers.empty()

    def has_two(self) -> bool:
        return self.messages.size() == 2

    def has_two_answers(self) -> bool:
        return self.answers.size() == 2

    def put(self) -> None:
        self.messages.push(2 * self.sent_bit + self.sent)

    def take(self) -> None:
        message = self.messages.pop()
        self.heard_bit = message // 2
        self.heard = message % 2

    def put_answer(self) -> None:
        self.answers.push(self.heard_bit)

    def take_answer(self) -> None:
        self.known_bit = self.answers.pop()

    def drop(self) -> None:
        self.messages.pop()

    def turn(self) -> None:
        self.messages.push(self.messages.pop())

    def drop_answer(self) -> None:
        self.answers.pop()

    def turn_answers(self) -> None:
        self.answers.push(self.answers.pop())
        self.answers.pop()


class News(Environment):
    """A new value that may be sent."""

    INDEX = ("news",)
    STATES, INITIAL = (THERE,), THERE

    system: AlternatingBit
    news: int

    send: Trigger

    ROWS = (
        Row("send", THERE, STAY, "is_known and has_room", "put", "the last one has arrived"),
        Row("send", THERE, STAY, "is_known and not has_room", None, "the line would be long"),
    )

    def is_known(self) -> bool:
        return not self.system.line.is_waiting()

    def has_room(self) -> bool:
        return self.system.line.has_room()

    def put(self) -> None:
        self.system.line.sent = self.news
        self.system.line.sent_bit = 1 - self.system.line.sent_bit
        self.system.line.put()


class AlternatingBit(ClosedSystem):
    """AlternatingBit: values that arrive over lines that lose."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"news": "kinds"}
    CONSTANTS: ClassVar[dict[str, int]] = {"kinds": 2, "room": 2, "bit": 1, "message": 3}
    STEPS = (
        Step("news", "send", is_fair=False),
        Step("line", "send_again"),
        Step("line", "receive", is_fair=False, is_strongly_fair=True),
        Step("line", "answer"),
        Step("line", "hear", is_fair=False, is_strongly_fair=True),
        Step("line", "lose_first", is_fair=False),
        Step("line", "lose_second", is_fair=False),
        Step("line", "lose_first_answer", is_fair=False),
        Step("line", "lose_second_answer", is_fair=False),
    )

    room: int
    line: Line = machines(Line)
    news: list[News] = machines(News)

    @initially("all is known")
    def is_quiet(self) -> bool:
        return (
            self.line.sent_bit == self.line.known_bit and self.line.sent_bit == self.line.heard_bit
        )

    @leads_to("a value arrives, once it is sent", then="is_heard", each="news")
    def is_sent(self, news: int) -> bool:
        return self.line.sent == news and self.line.is_waiting()

    def is_heard(self, news: int) -> bool:
        return self.line.heard == news

    @implements("nothing happens but what does without lines", BareBits)
    def as_bits(self, specification: BareBits) -> None:
        for name in ("sent_bit", "known_bit", "heard_bit", "sent", "heard"):
            setattr(specification.bits, name, bool(getattr(self.line, name)))
