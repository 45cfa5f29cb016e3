"""Dijkstra's detection of an end by a token: a specification of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    implements,
    leads_to,
    weakly_fair,
)
from tests.published.rings import PAIRS, THERE, Synchronous


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
    """The place of the token."""

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

    @implements("it detects an end as nodes do that see each other", Synchronous, nodes="nodes")
    def as_synchronous(self, specification: Synchronous) -> None:
        specification.watch.has_seen = self.is_detected()
        for mine, theirs in zip(self.station, specification.node, strict=True):
            theirs.is_active = mine.is_active
