"""A small machine whose methods hold what can be mutated, and a closed system around it."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Ignore, Int, Machine, Row, System, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Step, always, terminal

RUNNING, STOPPED = "running", "stopped"


class Meter(Machine):
    """Counts up to `limit`, is emptied once, and stops."""

    STATES = (RUNNING, STOPPED)
    INITIAL = RUNNING
    TERMINAL = (STOPPED,)

    system: Meters

    count: int = Int("limit")
    emptied: int = Int("limit")
    is_full: bool = Bool()

    add: Trigger
    empty: Trigger
    stop: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("add",    RUNNING, STAY,    "has_room",      "add_one",  "something comes"),
        Ignore("add", RUNNING,          "not has_room",              "it is full"),
        Row("empty",  RUNNING, STAY,    "may_empty",     "take_all", "it is emptied"),
        Row("stop",   RUNNING, STOPPED, "is_over",       None,       "it was emptied, and is full"),
    )
    # fmt: on

    def has_room(self) -> bool:
        return self.count < self.system.limit and not self.is_full

    def may_empty(self) -> bool:
        return self.emptied == 0 and self.is_full

    def is_over(self) -> bool:
        return self.is_full and not self.may_empty()

    def add_one(self) -> None:
        """Count one more."""
        assert self.count >= 0, "it never counts down"
        self.count = self.next_count()
        self.is_full = self.count == self.system.limit

    def next_count(self) -> int:
        if self.is_full:
            return self.count
        if self.count > self.system.limit:
            return self.count
        return self.count + 1

    def take_all(self) -> None:
        self.count = 0
        self.emptied += 1
        self.is_full = False


class Meters(System):
    CONSTANTS: ClassVar[dict[str, int]] = {"limit": 2}

    limit: int

    meter: Meter = machines(Meter)


class ClosedMeters(Meters, ClosedSystem):
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("meter", "add"),
        Step("meter", "empty"),
        Step("meter", "stop"),
    )

    @always("a full meter has reached its limit", when="is_full")
    def has_reached_limit(self) -> bool:
        return self.meter.count == self.limit

    def is_full(self) -> bool:
        return self.meter.is_full

    @terminal("it has stopped")
    def has_stopped(self) -> bool:
        return self.meter.state == STOPPED
