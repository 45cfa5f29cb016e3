"""A system with channels that are looked into, and sets."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Int, Row, Set, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes

ON, OFF = "on", "off"
LUCKY = (3, 0)


class Shelf(Environment):
    """Things in a row, and sets of those that were seen."""

    INDEX = ("shelf",)
    STATES, INITIAL = (ON, OFF), ON

    system: Library
    shelf: int

    row: Fifo[int] = Channel("last", "room")
    seen: set[int] = Set("things", start=[1])
    lent: set[int] = Set("things")
    by_kind: list[set[int]] = Array(Set("things"), "kinds")
    count: int = Int(9)
    is_whole: bool = Bool()

    put: Trigger
    lend: Trigger
    sort: Trigger
    rest: Trigger

    ROWS = (
        Row("put", ON, STAY, "fits and not is_there", "store", "a thing comes"),
        Row("lend", (ON, OFF), STAY, "is_there", "hand_out", "a thing is wanted"),
        Row("sort", ON, OFF, "has_two", "put_in_order, compare", "it is time"),
        Row("rest", OFF, ON, "is_at_rest", "forget", "it was enough"),
    )

    def fits(self) -> bool:
        return len(self.row) < self.system.room and self.state in (ON, "off")

    def is_there(self, thing: int) -> bool:
        return thing in self.row or (thing in LUCKY and thing in self.lent)

    def store(self, thing: int) -> None:
        self.row.push(thing)
        self.seen.add(thing)
        self.by_kind[thing % self.system.kinds].add(thing)

    def hand_out(self, thing: int) -> None:
        if thing not in self.row:
            self.lent.remove(thing)
        elif thing == 2:
            self.row.remove(thing)
            self.lent.add(thing)
        else:
            for n in range(self.system.room):
                if n < len(self.row) and self.row[n] == thing:
                    self.lent.add(self.row.take(n))
        self.by_kind[thing % self.system.kinds].discard(thing)

    def has_two(self) -> bool:
        return len(self.row) == 2 and self.row[0] > self.row[1]

    def put_in_order(self) -> None:
        first = self.row.take(self.one_of(range(2)))
        self.row.push(first)
        self.count = len(self.seen | self.lent) + len(self.seen - self.lent)

    def compare(self) -> None:
        both = self.seen & self.lent
        self.is_whole = self.lent <= self.seen and both != {0, 3} and not self.lent > self.seen
        if self.is_whole and self.by_kind[self.count % self.system.kinds] < self.seen:
            self.seen = self.seen ^ both
        self.lent -= {2}

    def is_at_rest(self) -> bool:
        return len(self.seen) > 1 or self.count not in (2, 4)

    def forget(self) -> None:
        self.seen = set() if self.is_whole else self.lent.copy()
        self.lent |= self.system.shelf[0].seen
        self.row.clear()


class Library(ClosedSystem):
    """Two shelves of three things."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"shelf": "shelves"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "shelves": 1,
        "things": 4,
        "last": 3,
        "room": 2,
        "kinds": 2,
    }
    STEPS = (
        Step("shelf", "put", over=("things",)),
        Step("shelf", "lend", over=("things",)),
        Step("shelf", "sort"),
        Step("shelf", "rest"),
    )

    room: int
    kinds: int
    shelves: int

    shelf: list[Shelf] = machines(Shelf)

    @always("what is on a shelf was seen, or was forgotten")
    def is_known(self) -> bool:
        return all(
            self.shelf[0].row[n] in self.shelf[0].seen or self.shelf[0].count > 0
            for n in range(self.room)
            if n < len(self.shelf[0].row)
        )

    @sometimes("everything was lent")
    def is_empty(self) -> bool:
        return self.shelf[0].lent >= {0, 1, 2} and self.shelf[0].row.empty()
