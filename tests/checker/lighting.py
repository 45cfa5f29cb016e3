"""A system with claims that need each other to be shown by induction."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Int, Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes


class Lamps(Machine):
    """Two lamps that are switched together, and a count that goes round by twos."""

    STATES, INITIAL = ("up",), "up"

    system: Lighting

    number: int = Int("most")
    left: bool = Bool()
    right: bool = Bool()

    switch: Trigger
    count: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("switch", "up", STAY, None, "turn", "both at once"),
        Row("count", "up", STAY, None, "add", "by two"),
    )

    def turn(self) -> None:
        self.left = not self.left
        self.right = not self.right

    def add(self) -> None:
        self.number = (self.number + 2) % (self.system.most + 1)


class Lighting(ClosedSystem):
    CONSTANTS: ClassVar[dict[str, int]] = {"most": 7}
    STEPS: ClassVar[tuple[Step, ...]] = (Step("lamps", "switch"), Step("lamps", "count"))

    most: int

    lamps: Lamps = machines(Lamps)

    @always("the lamps are alike")
    def is_alike(self) -> bool:
        return self.lamps.left == self.lamps.right

    @always("the count is even")
    def is_even(self) -> bool:
        return self.lamps.number % 2 == 0

    @always("the count is never 5")
    def is_not_5(self) -> bool:
        return self.lamps.number != 5

    @always("the count is never 1")
    def is_not_1(self) -> bool:
        return self.lamps.number != 1

    @always("the count has its range")
    def is_in_range(self) -> bool:
        return self.lamps.number <= self.most

    @always("an odd count comes with light", when="is_odd")
    def is_lit(self) -> bool:
        return self.lamps.left

    def is_odd(self) -> bool:
        return not self.is_even()

    def is_low(self) -> bool:
        return self.lamps.number < 4

    def is_nothing(self) -> bool:
        return self.lamps.number < 0

    def is_more(self, number: int) -> bool:
        return self.lamps.number > number

    @sometimes("there is light")
    def has_light(self) -> bool:
        return self.lamps.left


class BrightLamps(Lamps):
    """Fails where it is switched on at 6."""

    def turn(self) -> None:
        assert self.number != 6 or not self.left or self.right, "it is never bright"
        self.left = not self.left


class BadSwitch(Lighting):
    lamps: BrightLamps = machines(BrightLamps)

    def is_dark(self) -> bool:
        return not self.lamps.left
