"""Nodes that detect an end, elect one of them, or agree: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    each_step,
    eventually_always,
    initially,
    leads_to,
    weakly_fair,
)

THERE = "there"
NODES: dict[str, str] = {"node": "nodes"}
PAIRS: dict[str, str] = {"node": "nodes", "other": "nodes"}


class Counter(Environment):
    """A node of the ring, and its number."""

    INDEX = ("node",)
    STATES, INITIAL = (THERE,), THERE

    system: TokenRing
    node: int

    number: int = Int("last", start=ANY)

    create: Trigger
    copy: Trigger

    ROWS = (
        Row("create", THERE, STAY, "is_first and is_equal", "add", "it is back at the first"),
        Row("copy", THERE, STAY, "not is_first and not is_equal", "take", "the one before has it"),
    )

    def before(self) -> int:
        return (self.node + self.system.nodes - 1) % self.system.nodes

    def is_first(self) -> bool:
        return self.node == 0

    def is_equal(self) -> bool:
        return self.system.counter[self.before()].number == self.number

    def add(self) -> None:
        self.number = 0 if self.number == self.system.last else self.number + 1

    def take(self) -> None:
        self.number = self.system.counter[self.before()].number


class TokenRing(ClosedSystem):
    """EWD 426: from wherever it begins, the ring comes to have one token."""

    INDEX_SETS: ClassVar[dict[str, str]] = NODES
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 6, "last": 5}
    STEPS = (Step("counter", "create", is_fair=False), Step("counter", "copy", is_fair=False))
    FAIRNESS = (weakly_fair(ANY),)

    nodes: int
    last: int
    counter: list[Counter] = machines(Counter)

    @eventually_always("there is one token")
    def is_stable(self) -> bool:
        return all(
            self.counter[i].number == self.counter[i - 1].number
            or (
                self.counter[i - 1].number == self.counter[0].number
                and (self.counter[i].number + 1 - self.counter[0].number) % (self.last + 1) == 0
            )
            for i in range(1, self.nodes)
        )


class Node(Environment):
    """Is active or not; wakes others, and falls asleep."""

    INDEX = ("node",)
    STATES, INITIAL = (THERE,), THERE

    system: Synchronous
    node: int

    is_active: bool = Bool(start=ANY)

    end: Trigger
    end_seen: Trigger

    ROWS = (
        Row("end", THERE, STAY, "is_awake", "sleep", "it has done its work"),
        Row("end_seen", THERE, STAY, "is_last", "sleep, tell", "none is left, and that is seen"),
    )

    def is_awake(self) -> bool:
        return self.is_active

    def is_last(self) -> bool:
        return (
            self.is_active
            and not self.system.watch.has_seen
            and all(
                i == self.node or not self.system.node[i].is_active
                for i in range(self.system.nodes)
            )
        )

    def sleep(self) -> None:
        self.is_active = False

    def tell(self) -> None:
        self.system.watch.has_seen = True


class Wake(Environment):
    """A node that wakes another, or itself."""

    INDEX = ("node", "other")
    STATES, INITIAL = (THERE,), THERE

    system: Synchronous
    node: int
    other: int

    wake: Trigger

    ROWS = (Row("wake", THERE, STAY, "is_active", "activate", "there is work for another"),)

    def is_active(self) -> bool:
        return self.system.node[self.node].is_active

    def activate(self) -> None:
        self.system.node[self.other].is_active = True


class Watch(Environment):
    """Sees that all have ended."""

    STATES, INITIAL = (THERE,), THERE

    system: Synchronous

    has_seen: bool = Bool(start=ANY)

    detect: Trigger

    ROWS = (Row("detect", THERE, STAY, "is_over", "note", "none is active"),)

    def is_over(self) -> bool:
        return all(not self.system.node[i].is_active for i in range(self.system.nodes))

    def note(self) -> None:
        self.has_seen = True


class Synchronous(ClosedSystem):
    """SyncTerminationDetection: nodes that wake each other at once."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIRS
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 7}
    STEPS = (
        Step("node", "end", is_fair=False),
        Step("node", "end_seen", is_fair=False),
        Step("wake", "wake", is_fair=False),
        Step("watch", "detect"),
    )

    nodes: int
    node: list[Node] = machines(Node)
    wake: dict[tuple[int, int], Wake] = machines(Wake)
    watch: Watch = machines(Watch)

    @initially("what is seen is so")
    @always("what is seen is so")
    def is_right(self) -> bool:
        return not self.watch.has_seen or self.watch.is_over()

    @leads_to("an end is seen", then="has_seen")
    def is_over(self) -> bool:
        return self.watch.is_over()

    def has_seen(self) -> bool:
        return self.watch.has_seen

    @each_step("an end is for good")
    def is_for_good(self, is_over: bool) -> bool:
        return not is_over or self.is_over()


class Peer(Environment):
    """Is active or not, and has messages under way to it."""

    INDEX = ("node",)
    STATES, INITIAL = (THERE,), THERE

    system: Asynchronous
    node: int

    is_active: bool = Bool(start=ANY)
    pending: int = Int("most")

    end: Trigger
    end_seen: Trigger
    receive: Trigger

    ROWS = (
        Row("end", THERE, STAY, "is_awake", "sleep", "it has done its work"),
        Row("end_seen", THERE, STAY, "is_last", "sleep, tell", "none is left, and that is seen"),
        Row("receive", THERE, STAY, "has_message", "take", "a message arrives"),
    )

    def is_awake(self) -> bool:
        return self.is_active

    def is_last(self) -> bool:
        return (
            self.is_active
            and not self.system.watch.has_seen
            and all(
                (i == self.node or not self.system.peer[i].is_active)
                and self.system.peer[i].pending == 0
                for i in range(self.system.nodes)
            )
        )

    def has_message(self) -> bool:
        return self.pending > 0

    def sleep(self) -> None:
        self.is_active = False

    def tell(self) -> None:
        self.system.watch.has_seen = True

    def take(self) -> None:
        self.pending -= 1
        self.is_active = True


class Letter(Environment):
    """A node that sends to another, or to itself; nothing is sent where too much is under way."""

    INDEX = ("node", "other")
    STATES, INITIAL = (THERE,), THERE

    system: Asynchronous
    node: int
    other: int

    send: Trigger

    ROWS = (
        Row("send", THERE, STAY, "is_active and is_short", "put", "there is work for another"),
        Row("send", THERE, STAY, "is_active and not is_short", None, "too much is under way"),
    )

    def is_active(self) -> bool:
        return self.system.peer[self.node].is_active

    def is_short(self) -> bool:
        return self.system.peer[self.other].pending < self.system.most

    def put(self) -> None:
        self.system.peer[self.other].pending += 1


class Watcher(Environment):
    """Sees that all have ended and nothing is under way."""

    STATES, INITIAL = (THERE,), THERE

    system: Asynchronous

    has_seen: bool = Bool(start=ANY)

    detect: Trigger

    ROWS = (Row("detect", THERE, STAY, "is_over", "note", "none is active"),)

    def is_over(self) -> bool:
        return all(
            not self.system.peer[i].is_active and self.system.peer[i].pending == 0
            for i in range(self.system.nodes)
        )

    def note(self) -> None:
        self.has_seen = True


class Asynchronous(ClosedSystem):
    """AsyncTerminationDetection: nodes that send each other messages."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIRS
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 4, "most": 3}
    STEPS = (
        Step("peer", "end", is_fair=False),
        Step("peer", "end_seen", is_fair=False),
        Step("peer", "receive", is_fair=False),
        Step("letter", "send", is_fair=False),
        Step("watch", "detect"),
    )

    nodes: int
    most: int
    peer: list[Peer] = machines(Peer)
    letter: dict[tuple[int, int], Letter] = machines(Letter)
    watch: Watcher = machines(Watcher)

    @initially("what is seen is so")
    @always("what is seen is so")
    def is_right(self) -> bool:
        return not self.watch.has_seen or self.watch.is_over()

    @leads_to("an end is seen", then="has_seen")
    def is_over(self) -> bool:
        return self.watch.is_over()

    def has_seen(self) -> bool:
        return self.watch.has_seen

    @each_step("an end is for good")
    def is_for_good(self, is_over: bool) -> bool:
        return not is_over or self.is_over()
