"""Philosophers who hand forks to each other: a specification of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    infinitely_often,
    weakly_fair,
)

THERE = "there"
LOOP, EAT, THINK = "loop", "eat", "think"


class Fork(Environment):
    """Lies with the philosopher of its number or with the one before; all but fork 1 begin with the
    former.
    """

    INDEX = ("seat",)
    STATES, INITIAL = (THERE,), THERE

    seat: int

    is_moved: bool = Bool()
    is_clean: bool = Bool()

    def is_own(self) -> bool:
        return self.is_moved == (self.seat == 1)

    def hand_over(self) -> None:
        self.is_moved = not self.is_moved
        self.is_clean = True


class Philosopher(Environment):
    """Hands over dirty forks, and eats with two clean ones."""

    INDEX = ("seat",)
    STATES, INITIAL = (LOOP, EAT, THINK), LOOP

    system: Philosophers
    seat: int

    is_hungry: bool = Bool(start=True)

    loop: Trigger
    eat: Trigger
    think: Trigger

    ROWS = (
        Row("loop", LOOP, EAT, "wants_to_eat and may_eat", None, "it has two clean forks"),
        Row("loop", LOOP, STAY, "wants_to_eat and not may_eat", "hand_on", "a fork is missing"),
        Row("loop", LOOP, THINK, "not wants_to_eat", "hand_on", "it is not hungry"),
        Row("eat", EAT, LOOP, None, "dine", "it eats, and makes the forks dirty"),
        Row("think", THINK, LOOP, None, "wake", "it is hungry again"),
    )

    def right(self) -> int:
        return (self.seat + 1) % self.system.seats

    def wants_to_eat(self) -> bool:
        return self.is_hungry

    def has_left(self) -> bool:
        return self.system.fork[self.seat].is_own()

    def has_right(self) -> bool:
        return not self.system.fork[self.right()].is_own()

    def may_eat(self) -> bool:
        return (
            self.has_left()
            and self.has_right()
            and self.system.fork[self.seat].is_clean
            and self.system.fork[self.right()].is_clean
        )

    def hand_on(self) -> None:
        if self.has_left() and not self.system.fork[self.seat].is_clean:
            self.system.fork[self.seat].hand_over()
        elif self.has_right() and not self.system.fork[self.right()].is_clean:
            self.system.fork[self.right()].hand_over()

    def dine(self) -> None:
        self.is_hungry = False
        self.system.fork[self.seat].is_clean = False
        self.system.fork[self.right()].is_clean = False

    def wake(self) -> None:
        self.is_hungry = True


class Philosophers(ClosedSystem):
    """DiningPhilosophers: five of them, by the rules of Chandy and Misra."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"seat": "seats"}
    CONSTANTS: ClassVar[dict[str, int]] = {"seats": 5}
    STEPS = (
        Step("philosopher", "loop", is_fair=False),
        Step("philosopher", "eat", is_fair=False),
        Step("philosopher", "think", is_fair=False),
    )
    FAIRNESS = (
        weakly_fair("philosopher.loop", "philosopher.eat", "philosopher.think", each="seat"),
    )

    seats: int
    fork: list[Fork] = machines(Fork)
    philosopher: list[Philosopher] = machines(Philosopher)

    @always("neighbours do not eat at the same time")
    def is_exclusive(self) -> bool:
        return all(
            self.philosopher[i].state != EAT or self.philosopher[(i + 1) % self.seats].state != EAT
            for i in range(self.seats)
        )

    @infinitely_often("a philosopher eats again and again", each="seat")
    def has_eaten(self, seat: int) -> bool:
        return not self.philosopher[seat].is_hungry
