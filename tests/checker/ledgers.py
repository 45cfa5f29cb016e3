"""Machines whose methods read and change the same values, in an order that counts."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes

ON = "on"
WIDE = 1 << 40


class Ledger(Environment):
    """Computes of what the same statement changes."""

    STATES, INITIAL = (ON,), ON

    total: int = Int("most")
    pages: list[int] = Array(Int("most"), "most")
    queue: Fifo[int] = Channel("most", "most")

    fill: Trigger
    store: Trigger
    join: Trigger
    note: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("fill", ON, STAY, "is_empty", "put", "two entries"),
        Row("store", ON, STAY, "is_full", "keep", "the value is computed before its place"),
        Row("join", ON, STAY, "is_full", "add_up", "arguments are computed before the call"),
        Row("note", ON, STAY, "is_result", "take", "what a parameter is called does not count"),
    )

    def is_empty(self) -> bool:
        return self.queue.empty()

    def is_full(self) -> bool:
        return self.queue.size() == 2

    def put(self) -> None:
        self.queue.push(1)
        self.queue.push(2)

    def keep(self) -> None:
        self.pages[self.queue.pop()] = self.queue.size()

    def add_up(self) -> None:
        self.total = self.sum_of(self.queue.size())

    def sum_of(self, held: int) -> int:
        return self.queue.pop() + held - self.queue.size()

    def is_result(self, result: int) -> bool:
        seen = result
        return seen == 3

    def take(self, result: int) -> None:
        self.total = self.shifted(result)

    def shifted(self, p1_result: int) -> int:
        if self.total > 9:
            return 0
        return 1 << p1_result - 1


class Ledgers(ClosedSystem):
    """Checks it."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 5}
    STEPS = (
        Step("ledger", "fill"),
        Step("ledger", "store"),
        Step("ledger", "join"),
        Step("ledger", "note", over=((2, 3),)),
    )

    ledger: Ledger = machines(Ledger)

    @always("the size from before is stored, and the entry with both sizes")
    def is_right(self) -> bool:
        return self.ledger.pages[1] in (0, 2) and self.ledger.total in (0, 2, 4)

    @sometimes("all of it")
    def is_all(self) -> bool:
        return self.ledger.pages[1] == 2 and self.ledger.total == 4


class Odometer(Environment):
    """Counts far."""

    STATES, INITIAL = (ON,), ON

    miles: int = Int(WIDE, start=WIDE - 1)

    drive: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("drive", ON, STAY, "is_short", "count", "one more"),
        Row("drive", ON, STAY, "not is_short", None, "as far as it counts"),
    )

    def is_short(self) -> bool:
        return self.miles < WIDE

    def count(self) -> None:
        self.miles += 1


class Driving(ClosedSystem):
    """Computes with it: `scaled` says with what."""

    STEPS = (Step("odometer", "drive"),)

    odometer: Odometer = machines(Odometer)

    @always("it is not less than its half")
    def is_far(self) -> bool:
        return self.scaled(self.odometer.miles) >= self.odometer.miles

    def scaled(self, miles: int) -> int:
        """Method by which it is scaled."""
        if miles == 0:
            return 0
        return miles * 2


class DrivingTooFar(Driving):
    """Computes what 64 bits do not hold."""

    def scaled(self, miles: int) -> int:
        """Method by which it is scaled."""
        if miles == 0:
            return 0
        return miles * miles
