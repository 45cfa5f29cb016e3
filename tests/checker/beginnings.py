"""Systems that begin in one of many states."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    initially,
    sometimes,
)

ON, OFF = "on", "off"


class Ring(Environment):
    """Dijkstra's K-state machines, whatever they hold at first."""

    STATES, INITIAL = (ON,), ON

    system: TokenRing

    held: list[int] = Array(Int("top", start=ANY), "size")

    move_first: Trigger
    move: Trigger

    ROWS = (
        Row("move_first", ON, STAY, "has_come_round", "count", "the token is with the first"),
        Row("move", ON, STAY, "is_anywhere", "pass_on", "the token is with another"),
    )

    def has_come_round(self) -> bool:
        return self.held[0] == self.held[self.system.size - 1]

    def is_anywhere(self) -> bool:
        return any(self.held[n] != self.held[n - 1] for n in range(1, self.system.size))

    def count(self) -> None:
        self.held[0] = (self.held[0] + 1) % (self.system.top + 1)

    def pass_on(self) -> None:
        is_moved = False
        for n in range(1, self.system.size):
            if self.held[n] != self.held[n - 1] and not is_moved:
                self.held[n] = self.held[n - 1]
                is_moved = True


class TokenRing(ClosedSystem):
    """A ring that finds to one token from every state."""

    CONSTANTS: ClassVar[dict[str, int]] = {"size": 3, "top": 3}
    STEPS = (Step("ring", "move_first"), Step("ring", "move"))

    size: int
    top: int

    ring: Ring = machines(Ring)

    @eventually("one token is left")
    def is_settled(self) -> bool:
        return all(self.ring.held[n] == self.ring.held[0] for n in range(self.size))


class Cell(Environment):
    """Lives or not, and dies alone."""

    INDEX = ("cell",)
    STATES, INITIAL = (ON, OFF), ON
    STARTS = (ON, OFF)
    TERMINAL = (OFF,)

    system: Cells
    cell: int

    age: int = Int("age_max", start=(1, 2))
    is_fed: bool = Bool(start=ANY)

    die: Trigger

    ROWS = (Row("die", ON, OFF, "is_old", "stop", "it is old"),)

    def is_old(self) -> bool:
        return self.age == 2 and not self.is_fed

    def stop(self) -> None:
        self.age = 0


class Cells(ClosedSystem):
    """Some cells, of which one is fed."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"cell": "cells"}
    CONSTANTS: ClassVar[dict[str, int]] = {"cells": 2, "age_max": 2}
    STEPS = (Step("cell", "die"),)

    cells: int

    cell: list[Cell] = machines(Cell)

    @initially("one of them is fed")
    def is_one_fed(self) -> bool:
        return any(self.cell[c].is_fed for c in range(self.cells))

    @sometimes("one has died")
    def is_one_dead(self) -> bool:
        return any(self.cell[c].age == 0 for c in range(self.cells))


class HopefulCells(Cells):
    """Wrong: a cell that is not fed dies."""

    @always("every cell lives, or began dead")
    def is_alive(self) -> bool:
        return all(self.cell[c].age > 0 for c in range(self.cells))


class Shares(Cells):
    """Claims that fail where they divide by 0, and in a method that they call."""

    age_max: int

    @always("the first cell is not much older")
    def is_young(self) -> bool:
        return self.cell[1].is_fed and self.cell[0].age // self.cell[1].age <= 1

    @always("the shares of those that are fed are even")
    def is_even(self) -> bool:
        total = 0
        for c in range(self.cells):
            if self.cell[c].is_fed:
                total += self.share(self.cell[c].age)
        return total % 2 == 0

    def share(self, age: int) -> int:
        if age == 0:
            return 7
        assert age < self.age_max
        return 12 // (age - 1)
