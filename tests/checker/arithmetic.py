"""A system that computes with whatever there is to compute with."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Int, Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

ON = "on"
PRICES = (7, 0, 3, 250)
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


class Abacus(Machine):
    """Keeps what it computes of two numbers."""

    STATES, INITIAL = (ON,), ON
    STEPS_OF = (1, 3, 5, 7)

    system: Arithmetic

    left: int = Int("most", low=-4)
    right: int = Int("most", low=-4)
    results: list[int] = Array(Int(999, low=-999), "results")
    hand: int = Int("most", low=-4, wraps=True)

    reckon: Trigger
    turn: Trigger

    ROWS = (
        Row("reckon", ON, STAY, None, "note, divide, shift, compare, look_up", "a pair comes"),
        Row("turn", ON, STAY, None, "move_hand", "the hand moves"),
    )

    def note(self, left: int, right: int) -> None:
        self.left = left
        self.right = right

    def divide(self) -> None:
        if self.right != 0:
            self.results[0] = self.left // self.right
            self.results[1] = self.left % self.right
        above = self.right + 5
        self.results[2] = 77 // above - 77 % above

    def shift(self) -> None:
        self.results[3] = self.left << max(0, self.right)
        self.results[4] = self.left >> abs(self.right)
        self.results[5] = 1 << min(abs(self.left), 9)

    def compare(self) -> None:
        self.results[6] = min(self.left, self.right, 2)
        self.results[7] = max(self.left, -self.right) - abs(self.left - self.right)

    def look_up(self) -> None:
        self.results[8] = PRICES[self.left & 3] - (4, -9)[self.right % 2]
        self.results[9] = PRIMES[max(self.left, 0)] + self.STEPS_OF[abs(self.right) % 4]

    def move_hand(self, by: int, again: int) -> None:
        self.hand += by
        self.hand -= again * 3


class Pairs(Environment):
    """Brings every pair."""

    STATES, INITIAL = (ON,), ON

    system: Arithmetic

    bring: Trigger

    ROWS = (Row("bring", ON, STAY, None, "hand_on", "a pair is chosen"),)

    def hand_on(self, left: int, right: int) -> None:
        self.system.abacus.reckon(left, right)
        self.system.abacus.turn(left, right)


class Arithmetic(ClosedSystem):
    """Small numbers of either sign."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 4, "results": 10}
    STEPS = (Step("pairs", "bring", over=(range(-4, 5), range(-4, 5))),)
    UNREAD: ClassVar[dict[str, str]] = {"abacus.results": "the engines are compared by it"}

    abacus: Abacus = machines(Abacus)
    pairs: Pairs = machines(Pairs)


class Divider(Environment):
    """Divides by anything."""

    STATES, INITIAL = (ON,), ON

    system: Dividing

    by: int = Int(2, low=-1, start=ANY)
    share: int = Int(9, low=-9)

    share_out: Trigger
    shift_out: Trigger

    ROWS = (
        Row("share_out", ON, STAY, None, "divide", "something is shared"),
        Row("shift_out", ON, STAY, "is_odd", "shift", "something is shifted"),
    )

    def is_odd(self) -> bool:
        return self.by % 2 == 1

    def divide(self) -> None:
        self.share = 9 % self.by

    def shift(self) -> None:
        self.share = 4 >> self.by


class Dividing(ClosedSystem):
    """Wrong: may divide by 0."""

    STEPS = (Step("divider", "share_out"),)
    UNTAKEN: ClassVar[dict[str, str]] = {"divider.shift_out": "another system shifts"}
    divider: Divider = machines(Divider)


class Shifting(ClosedSystem):
    """Wrong: may shift by less than 0."""

    STEPS = (Step("divider", "shift_out"),)
    UNTAKEN: ClassVar[dict[str, str]] = {"divider.share_out": "another system divides"}
    divider: Divider = machines(Divider)

    @always("the share is not negative")
    def is_positive(self) -> bool:
        return self.divider.share >= 0
