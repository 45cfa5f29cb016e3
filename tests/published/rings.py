"""Nodes that detect an end, elect one of them, or agree: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
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


class Station(Environment):
    """A node of Dijkstra's ring, EWD 840: active or not, black or white.

    It passes the token on for one of three reasons; TLC takes the step once for each.
    """

    INDEX = ("node",)
    STATES, INITIAL = (THERE,), THERE

    system: Probe
    node: int

    is_active: bool = Bool(start=ANY)
    is_black: bool = Bool(start=ANY)

    pass_idle: Trigger
    pass_black: Trigger
    pass_tainted: Trigger
    begin_tainted: Trigger
    begin_black: Trigger
    end: Trigger

    ROWS = (
        Row("pass_idle", THERE, STAY, "has_token and not is_awake", "hand_on", "it is idle"),
        Row("pass_black", THERE, STAY, "has_token and is_dark", "hand_on", "it is black"),
        Row("pass_tainted", THERE, STAY, "has_token and is_tainted", "hand_on", "the token is"),
        Row("begin_tainted", THERE, STAY, "begins and is_tainted", "start", "a probe has failed"),
        Row("begin_black", THERE, STAY, "begins and is_dark", "start", "it has sent meanwhile"),
        Row("end", THERE, STAY, "is_awake", "sleep", "it has done its work"),
    )

    def has_token(self) -> bool:
        return self.node > 0 and self.system.token.place == self.node

    def begins(self) -> bool:
        return self.node == 0 and self.system.token.place == 0

    def is_awake(self) -> bool:
        return self.is_active

    def is_dark(self) -> bool:
        return self.is_black

    def is_tainted(self) -> bool:
        return self.system.token.is_black

    def hand_on(self) -> None:
        self.system.token.place -= 1
        self.system.token.is_black = self.system.token.is_black or self.is_black
        self.is_black = False

    def start(self) -> None:
        self.system.token.place = self.system.nodes - 1
        self.system.token.is_black = False
        self.is_black = False

    def sleep(self) -> None:
        self.is_active = False


class Call(Environment):
    """A node that wakes another."""

    INDEX = ("node", "other")
    STATES, INITIAL = (THERE,), THERE

    system: Probe
    node: int
    other: int

    wake: Trigger

    ROWS = (Row("wake", THERE, STAY, "may_wake", "activate", "there is work for another"),)

    def may_wake(self) -> bool:
        return self.node != self.other and self.system.station[self.node].is_active

    def activate(self) -> None:
        self.system.station[self.other].is_active = True
        if self.other > self.node:
            self.system.station[self.node].is_black = True


class Token(Environment):
    """Where the token is."""

    STATES, INITIAL = (THERE,), THERE

    place: int = Int("last", start=ANY)
    is_black: bool = Bool(start=True)


class Probe(ClosedSystem):
    """EWD 840: a token that goes round detects that all nodes have ended."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIRS
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 3}
    DERIVED: ClassVar[dict[str, str]] = {"last": "nodes - 1"}
    TOKEN_STEPS = ("pass_idle", "pass_black", "pass_tainted", "begin_tainted", "begin_black")
    STEPS = (
        *(Step("station", trigger, is_fair=False) for trigger in TOKEN_STEPS),
        Step("call", "wake", is_fair=False),
        Step("station", "end", is_fair=False),
    )
    FAIRNESS = (weakly_fair(*(f"station.{trigger}" for trigger in TOKEN_STEPS)),)

    nodes: int
    station: list[Station] = machines(Station)
    call: dict[tuple[int, int], Call] = machines(Call)
    token: Token = machines(Token)

    @always("an end that is detected is one")
    def is_right(self) -> bool:
        return not self.is_detected() or self.is_over()

    @leads_to("an end is detected", then="is_detected")
    def is_over(self) -> bool:
        return all(not self.station[i].is_active for i in range(self.nodes))

    def is_detected(self) -> bool:
        return (
            self.token.place == 0
            and not self.token.is_black
            and not self.station[0].is_black
            and not self.station[0].is_active
        )
