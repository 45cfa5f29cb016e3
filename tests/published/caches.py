"""A cache that writes through: a specification of Lamport's book, from the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

THERE = "there"
RDY, BUSY, WAITING, DONE = "rdy", "busy", "waiting", "done"


class Store(Environment):
    """One cell, what was said last and by whom, and a queue of one request: 0 none, else the
    processor and the request. A value is 1 or 2, a request 3 to read, 4 and 5 to write.
    """

    STATES, INITIAL = (THERE,), THERE

    system: WriteThrough

    cell: int = Int(2, start=(1, 2))
    said: int = Int(5)
    speaker: int = Int(1)
    queued: int = Int(5)
    owner: int = Int(1)

    write: Trigger
    read: Trigger

    ROWS = (
        Row("write", THERE, STAY, "is_write", "take_write", "a write reaches the memory"),
        Row("read", THERE, STAY, "is_read", "take_read", "a read reaches the memory"),
    )

    def is_write(self) -> bool:
        return self.queued > 3

    def is_read(self) -> bool:
        return self.queued == 3

    def take_write(self) -> None:
        self.cell = self.queued - 3
        self.clear()

    def take_read(self) -> None:
        self.system.processor[self.owner].cached = self.cell
        self.clear()

    def clear(self) -> None:
        self.queued = 0
        self.owner = 0


class Cached(Environment):
    """A processor with a cache of one cell; 0 is nothing."""

    INDEX = ("processor",)
    STATES, INITIAL = (RDY, BUSY, WAITING, DONE), RDY

    system: WriteThrough
    processor: int

    held: int = Int(5)
    cached: int = Int(2)

    ask: Trigger
    miss: Trigger
    read: Trigger
    write: Trigger
    respond: Trigger
    evict: Trigger

    ROWS = (
        Row("ask", RDY, BUSY, None, "keep", "it wants something"),
        Row("miss", BUSY, WAITING, "is_read and not is_cached and is_free", "queue", "not here"),
        Row("read", (BUSY, WAITING), DONE, "is_read and is_cached", "take", "it is in the cache"),
        Row("write", BUSY, DONE, "not is_read and is_free", "put, queue, drop", "it is written"),
        Row("respond", DONE, RDY, None, "tell", "it hears the answer"),
        Row("evict", (RDY, BUSY, DONE), STAY, None, "forget", "the room is needed"),
    )

    def is_read(self) -> bool:
        return self.held == 3

    def is_cached(self) -> bool:
        return self.cached != 0

    def is_free(self) -> bool:
        return self.system.store.queued == 0

    def keep(self, request: int) -> None:
        self.held = request
        self.system.store.said = request
        self.system.store.speaker = self.processor

    def queue(self) -> None:
        self.system.store.queued = self.held
        self.system.store.owner = self.processor

    def take(self) -> None:
        self.held = self.cached

    def put(self) -> None:
        for i in range(self.system.processors):
            if i == self.processor or self.system.processor[i].cached != 0:
                self.system.processor[i].cached = self.held - 3

    def drop(self) -> None:
        self.held = 0

    def tell(self) -> None:
        self.system.store.said = self.held
        self.system.store.speaker = self.processor

    def forget(self) -> None:
        self.cached = 0


class Demand(Environment):
    """The demands that a processor may make."""

    INDEX = ("processor", "request")
    STATES, INITIAL = (THERE,), THERE

    system: WriteThrough
    processor: int
    request: int

    ask: Trigger

    ROWS = (Row("ask", THERE, STAY, "is_idle", "send", "the processor is ready"),)

    def is_idle(self) -> bool:
        return self.system.processor[self.processor].state == RDY

    def send(self) -> None:
        self.system.processor[self.processor].ask(self.request + 3)


class WriteThrough(ClosedSystem):
    """WriteThroughCache: two processors, one cell and two values."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"processor": "processors", "request": "requests"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processors": 2, "requests": 3}
    UNREAD: ClassVar[dict[str, str]] = {
        "store.said": "it is what others see",
        "store.speaker": "it is what others see",
    }
    STEPS = (
        Step("demand", "ask"),
        *(Step("processor", name) for name in ("respond", "miss", "read", "write", "evict")),
        Step("store", "write"),
        Step("store", "read"),
    )

    processors: int
    store: Store = machines(Store)
    processor: list[Cached] = machines(Cached)
    demand: dict[tuple[int, int], Demand] = machines(Demand)

    @always("caches have one value")
    def is_coherent(self) -> bool:
        return all(
            self.processor[i].cached == 0
            or self.processor[j].cached == 0
            or self.processor[i].cached == self.processor[j].cached
            for i in range(self.processors)
            for j in range(self.processors)
        )
