"""Systems whose environment chooses."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Channel,
    Fifo,
    Int,
    Machine,
    Row,
    Trigger,
    machines,
)
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, eventually, sometimes

ON, OFF = "on", "off"


class Till(Machine):
    """Counts what is paid, an event after the step that pays."""

    STATES, INITIAL = (ON,), ON

    system: Market

    paid: int = Int("paid_max")

    pay: Trigger

    ROWS = (Row("pay", ON, STAY, None, "count", "a customer pays"),)

    def count(self, amount: int) -> None:
        self.paid += amount


class Stall(Environment):
    """Takes any goods, and sells any number of them at any price."""

    STATES, INITIAL, TERMINAL = (ON, OFF), ON, (OFF,)

    system: Market

    stock: int = Int("room")
    price: int = Int(9)
    sold: Fifo[int] = Channel("room", 2)

    take: Trigger
    sell: Trigger
    shut: Trigger

    ROWS = (
        Row("take", ON, STAY, "fits", "store", "goods arrive"),
        Row("sell", ON, STAY, "has_some", "hand_out", "a customer comes"),
        Row("shut", ON, OFF, "not has_some", None, "nothing is left"),
    )

    def fits(self, count: int, price: int) -> bool:
        return self.stock == 0 and count + price > 1 and count <= self.system.room

    def store(self, count: int, price: int) -> None:
        self.stock = count
        self.price = price

    def has_some(self) -> bool:
        return self.stock > 0 and self.sold.size() < 2

    def hand_out(self) -> None:
        count = self.one_of(range(1, self.stock + 1))
        self.stock -= count
        self.sold.push(count)
        if self.price == 3:
            self.price = self.one_of((1, 5, 7))
        if count == 1 and self.price > 3:
            self.price = self.one_of(n for n in range(9) if n % 2 == 0 and n != self.price)
        self.system.till.pay(self.price)


class Market(ClosedSystem):
    """One stall and its till."""

    CONSTANTS: ClassVar[dict[str, int]] = {"room": 3, "paid_max": 20, "counts": 4}
    STEPS = (
        Step("stall", "take", over=("counts", range(1, 6, 2))),
        Step("stall", "sell"),
        Step("stall", "shut"),
    )

    room: int

    stall: Stall = machines(Stall)
    till: Till = machines(Till)

    @sometimes("everything is sold")
    def is_sold_out(self) -> bool:
        return self.stall.stock == 0 and self.till.paid > 8


class CheapMarket(Market):
    """Wrong: a price may be 8."""

    @always("no price is 8")
    def is_cheap(self) -> bool:
        return self.stall.price != 8


class Lamp(Environment):
    """One of several, which any other may switch."""

    INDEX = ("lamp",)
    STATES, INITIAL = (OFF, ON), OFF

    system: Lamps
    lamp: int

    times: int = Int("times_max")

    light: Trigger
    touch: Trigger
    pull: Trigger

    ROWS = (
        Row("light", OFF, ON, None, None, "it is switched on"),
        Row("light", ON, OFF, None, "count", "it is switched off"),
        Row("touch", (ON, OFF), STAY, "is_used", "switch", "a lamp switches one that it chooses"),
        Row("pull", ON, OFF, "is_dark", "pass_on", "its light goes to one that is dark"),
    )

    def count(self) -> None:
        self.times = 1 - self.times

    def is_used(self, other: int) -> bool:
        return self.system.lamp[other].state == ON or self.times == 0

    def switch(self, other: int) -> None:
        self.system.lamp[other].light()

    def is_dark(self) -> bool:
        return any(self.system.lamp[n].state == OFF for n in range(self.system.lamps))

    def pass_on(self) -> None:
        dark = self.one_of(n for n in range(self.system.lamps) if self.system.lamp[n].is_off())
        self.system.lamp[dark].light()

    def is_off(self) -> bool:
        return self.state == OFF


class Lamps(ClosedSystem):
    """Interchangeable lamps."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"lamp": "lamps"}
    CONSTANTS: ClassVar[dict[str, int]] = {"lamps": 3, "times_max": 1}
    STEPS = (Step("lamp", "touch", over=("lamps",)), Step("lamp", "pull"))

    lamps: int

    lamp: list[Lamp] = machines(Lamp)


class PoliteLamps(Lamps):
    """Wrong: others may be chosen for ever."""

    @eventually("the first lamp is switched off")
    def is_switched_off(self) -> bool:
        return self.lamp[0].times == 1
