"""A small machine for the tests: a turnstile that takes coins and lets people through."""

from __future__ import annotations

import types
from typing import Any, ClassVar, cast

from epochgate.fsm import (
    STAY,
    Array,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    machines,
    output,
)

LOCKED, UNLOCKED, BROKEN = "locked", "unlocked", "broken"


class GuardPort(Port):
    """The guard of the gate."""

    def passed(self, count: int) -> None: ...
    def tampered(self) -> None: ...


class Turnstile(Machine):
    INDEX = ("gate",)
    STATES = (LOCKED, UNLOCKED, BROKEN)
    INITIAL = LOCKED
    TERMINAL = (BROKEN,)

    system: Station
    gate: int
    guard: GuardPort = output(GuardPort)

    coins: int = Int("coins")
    is_free: bool = Bool()
    passed: list[int] = Array(Int("people"), "gates")
    lost: list[Fifo[Opaque]] = Array(Channel("thing", "things"), "gates")
    queue: Fifo[Opaque] = Channel("person", "people")

    pay: Trigger
    push: Trigger
    hit: Trigger

    # fmt: off
    ROWS = (
        Row("pay",     LOCKED,             UNLOCKED, "is_enough",     "take",  "the fare is paid"),
        Row("pay",     LOCKED,             STAY,     "not is_enough", "take",  "more is due"),
        Row("pay",     UNLOCKED,           UNLOCKED, None,            "take",  "for the next"),
        Row("push",    UNLOCKED,           LOCKED,   None, "count, report",    "one for each fare"),
        Row("push",    LOCKED,             STAY,     "is_open",       "count", "the day is free"),
        Ignore("push", LOCKED,                       "not is_open",            "the bar stays put"),
        Row("hit",     (LOCKED, UNLOCKED), BROKEN,   None,            "tell",  "it is not solid"),
        Ignore("hit",  BROKEN,                       None,                     "it is broken"),
    )
    # fmt: on

    def is_enough(self, coin: int) -> bool:
        return self.coins + coin >= self.system.fare

    def is_open(self) -> bool:
        return self.is_free

    def take(self, coin: int) -> None:
        self.coins += coin

    def count(self, person: Opaque) -> None:
        self.passed[self.gate] += 1
        self.queue.push(person)

    def report(self) -> None:
        self.coins = 0
        self.guard.passed(self.passed[self.gate])

    def tell(self) -> None:
        self.guard.tampered()


class Station(System):
    INDEX_SETS: ClassVar[dict[str, str]] = {"gate": "gates"}
    CONSTANTS: ClassVar[dict[str, int]] = {"gates": 1, "fare": 2}

    gates: int
    fare: int

    turnstile: list[Turnstile] = machines(Turnstile)


class Log:
    """Listens to the guards' ports and remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def passed(self, gate: int, count: int) -> None:
        self.heard.append(("passed", gate, count))

    def tampered(self, gate: int) -> None:
        self.heard.append(("tampered", gate))


def declared(
    name: str, body: dict[str, Any], base: type[Machine] = Machine, *others: type[Machine]
) -> type[Machine]:
    """A machine class made by a test; its methods have no source of their own to check."""
    made = types.new_class(name, (base, *others), {"unchecked": True}, lambda ns: ns.update(body))
    return cast(type[Machine], made)
