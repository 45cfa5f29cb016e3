"""Channels, queues and memories: specifications of Lamport's book, from the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, initially, leads_to

THERE = "there"


class Interface(Environment):
    """A value, and two bits that say whether it was taken."""

    STATES, INITIAL = (THERE,), THERE

    value: int = Int("last", start=ANY)
    is_ready: bool = Bool(start=ANY)
    is_taken: bool = Bool(start=ANY)

    receive: Trigger

    ROWS = (Row("receive", THERE, STAY, "is_full", "take", "the value is taken"),)

    def is_full(self) -> bool:
        return self.is_ready != self.is_taken

    def take(self) -> None:
        self.is_taken = not self.is_taken


class Datum(Environment):
    """A value that may be sent."""

    INDEX = ("datum",)
    STATES, INITIAL = (THERE,), THERE

    system: Interfaced
    datum: int

    send: Trigger

    ROWS = (Row("send", THERE, STAY, "is_free", "put", "the last value was taken"),)

    def is_free(self) -> bool:
        return self.system.interface.is_ready == self.system.interface.is_taken

    def put(self) -> None:
        self.system.interface.value = self.datum
        self.system.interface.is_ready = not self.system.interface.is_ready


class Interfaced(ClosedSystem):
    """AsynchInterface and Channel: a handshake for three values."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"datum": "size"}
    CONSTANTS: ClassVar[dict[str, int]] = {"size": 3}
    DERIVED: ClassVar[dict[str, str]] = {"last": "size - 1"}
    UNREAD: ClassVar[dict[str, str]] = {"interface.value": "none looks at what is sent"}
    STEPS = (Step("datum", "send"), Step("interface", "receive"))

    interface: Interface = machines(Interface)
    datum: list[Datum] = machines(Datum)

    @initially("nothing is under way")
    def is_empty(self) -> bool:
        return self.interface.is_ready == self.interface.is_taken


class End(Environment):
    """One end of the queue: the first is that of the sender."""

    INDEX = ("end",)
    STATES, INITIAL = (THERE,), THERE

    value: int = Int("last", start=ANY)
    is_ready: bool = Bool(start=ANY)
    is_taken: bool = Bool(start=ANY)

    def is_full(self) -> bool:
        return self.is_ready != self.is_taken


class Buffer(Environment):
    """Takes from the one end, and hands to the other; goes nowhere where it would be too long."""

    STATES, INITIAL = (THERE,), THERE

    system: Queue

    queue: Fifo[int] = Channel("last", "room")

    receive: Trigger
    send: Trigger
    take: Trigger

    ROWS = (
        Row("receive", THERE, STAY, "has_more and is_short", "append", "a value comes in"),
        Row("receive", THERE, STAY, "has_more and not is_short", None, "the queue would be long"),
        Row("send", THERE, STAY, "may_send", "hand_out", "the first value goes out"),
        Row("take", THERE, STAY, "is_out", "clear", "the value is taken"),
    )

    def has_more(self) -> bool:
        return self.system.end[0].is_full()

    def is_short(self) -> bool:
        return self.queue.size() < self.system.room

    def may_send(self) -> bool:
        return not self.queue.empty() and not self.system.end[1].is_full()

    def is_out(self) -> bool:
        return self.system.end[1].is_full()

    def append(self) -> None:
        self.system.end[0].is_taken = not self.system.end[0].is_taken
        self.queue.push(self.system.end[0].value)

    def hand_out(self) -> None:
        self.system.end[1].value = self.queue.pop()
        self.system.end[1].is_ready = not self.system.end[1].is_ready

    def clear(self) -> None:
        self.system.end[1].is_taken = not self.system.end[1].is_taken


class Message(Environment):
    """A message that may be sent."""

    INDEX = ("message",)
    STATES, INITIAL = (THERE,), THERE

    system: Queue
    message: int

    send: Trigger

    ROWS = (Row("send", THERE, STAY, "is_free", "put", "the last one was taken"),)

    def is_free(self) -> bool:
        return not self.system.end[0].is_full()

    def put(self) -> None:
        self.system.end[0].value = self.message
        self.system.end[0].is_ready = not self.system.end[0].is_ready


class Queue(ClosedSystem):
    """InnerFIFO: a queue between two channels."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"message": "kinds", "end": "ends"}
    CONSTANTS: ClassVar[dict[str, int]] = {"kinds": 3, "ends": 2, "room": 3}
    DERIVED: ClassVar[dict[str, str]] = {"last": "kinds - 1"}
    STEPS = (
        Step("message", "send"),
        Step("buffer", "receive"),
        Step("buffer", "send"),
        Step("buffer", "take"),
    )

    room: int
    ends: int
    end: list[End] = machines(End)
    buffer: Buffer = machines(Buffer)
    message: list[Message] = machines(Message)

    @initially("nothing is under way")
    def is_empty(self) -> bool:
        return all(not self.end[i].is_full() for i in range(self.ends))


RDY, BUSY, DONE = "rdy", "busy", "done"


class Memory(Environment):
    """Three cells of a bit each, and what was said last, by whom: 0 nothing, 1 and 2 a value, 3 to
    5 a read of a cell, 6 to 11 a write.
    """

    STATES, INITIAL = (THERE,), THERE

    cells: list[int] = Array(Int(1, start=ANY), "places")
    said: int = Int(11)
    speaker: int = Int(1)


class Processor(Environment):
    """Waits for the answer to a request."""

    INDEX = ("processor",)
    STATES, INITIAL = (RDY, BUSY, DONE), RDY

    system: Memories
    processor: int

    held: int = Int(11)

    ask: Trigger
    do: Trigger
    respond: Trigger

    ROWS = (
        Row("ask", RDY, BUSY, None, "keep", "it wants something"),
        Row("do", BUSY, DONE, "is_read", "read", "a cell is read"),
        Row("do", BUSY, DONE, "not is_read", "write", "a cell is written"),
        Row("respond", DONE, RDY, None, "tell", "it hears the answer"),
    )

    def is_read(self) -> bool:
        return self.held < 6

    def keep(self, request: int) -> None:
        self.held = request
        self.system.memory.said = request
        self.system.memory.speaker = self.processor

    def read(self) -> None:
        self.held = self.system.memory.cells[self.held - 3] + 1

    def write(self) -> None:
        self.system.memory.cells[(self.held - 6) // 2] = (self.held - 6) % 2
        self.held = 0

    def tell(self) -> None:
        self.system.memory.said = self.held
        self.system.memory.speaker = self.processor


class Request(Environment):
    """The requests that a processor may make."""

    INDEX = ("processor", "request")
    STATES, INITIAL = (THERE,), THERE

    system: Memories
    processor: int
    request: int

    ask: Trigger

    ROWS = (Row("ask", THERE, STAY, "is_idle", "send", "the processor is ready"),)

    def is_idle(self) -> bool:
        return self.system.processor[self.processor].state == RDY

    def send(self) -> None:
        self.system.processor[self.processor].ask(self.request + 3)


class Memories(ClosedSystem):
    """InternalMemory: two processors read and write three cells."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"processor": "processors", "request": "requests"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processors": 2, "requests": 9, "places": 3}
    UNREAD: ClassVar[dict[str, str]] = {
        "memory.said": "it is what others see",
        "memory.speaker": "it is what others see",
    }
    STEPS = (
        Step("request", "ask"),
        Step("processor", "do"),
        Step("processor", "respond"),
    )

    memory: Memory = machines(Memory)
    processor: list[Processor] = machines(Processor)
    request: dict[tuple[int, int], Request] = machines(Request)


class LiveMemories(Memories):
    """LiveInternalMemory: each request is answered."""

    STEPS = (
        Step("request", "ask", is_fair=False),
        Step("processor", "do"),
        Step("processor", "respond"),
    )

    @leads_to("a request is answered", then="is_ready", each="processor")
    def is_busy(self, processor: int) -> bool:
        return self.processor[processor].state == BUSY

    def is_ready(self, processor: int) -> bool:
        return self.processor[processor].state == RDY
