"""Small specifications of the TLA+ examples that begin in several states."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    each_step,
    eventually,
    infinitely_often,
    initially,
    leads_to,
    weakly_fair,
)
from tests.published.puzzles import Choice, Consensus, Prisoners, Room, Solitary

THERE = "there"


class Clock(Environment):
    """Shows one of twelve hours."""

    STATES, INITIAL = (THERE,), THERE

    hour: int = Int(12, start=range(1, 13))

    tick: Trigger

    ROWS = (Row("tick", THERE, STAY, None, "go_on", "an hour has passed"),)

    def go_on(self) -> None:
        self.hour = 1 if self.hour == 12 else self.hour + 1


class HourClock(ClosedSystem):
    """HourClock: a clock that ticks."""

    STEPS = (Step("clock", "tick"),)

    clock: Clock = machines(Clock)

    @always("it shows an hour")
    def is_hour(self) -> bool:
        return 1 <= self.clock.hour <= 12


class LiveHourClock(HourClock):
    """LiveHourClock: it never stops."""

    @infinitely_often("it is one again and again")
    def is_one(self) -> bool:
        return self.clock.hour == 1

    @infinitely_often("it is twelve again and again")
    def is_twelve(self) -> bool:
        return self.clock.hour == 12


class ModularClock(Environment):
    """Counts by the remainder."""

    STATES, INITIAL = (THERE,), THERE

    hour: int = Int(12, start=range(1, 13))

    tick: Trigger

    ROWS = (Row("tick", THERE, STAY, None, "go_on", "an hour has passed"),)

    def go_on(self) -> None:
        self.hour = self.hour % 12 + 1


class HourClock2(ClosedSystem):
    """HourClock2: the same clock, written otherwise."""

    STEPS = (Step("clock", "tick"),)

    clock: ModularClock = machines(ModularClock)


class OpenChoice(Choice):
    """Begins with nothing or with any value."""

    chosen: int = Int("number", start=ANY)


class ConsensusFromAnywhere(Consensus):
    """Consensus, which begins in every state in which its invariant holds."""

    choice: OpenChoice = machines(OpenChoice)


class DimRoom(Room):
    """None knows whether the light is lit at first."""

    is_lit: bool = Bool(start=ANY)


class DimPrisoners(Prisoners):
    """Prisoner, with a light that may be lit at first: each lights it twice."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "prisoners": 3,
        "signals": 2,
        "enough": 5,
        "most": 6,
        "everyone": 7,
    }

    room: DimRoom = machines(DimRoom)


class DimSolitary(Solitary):
    """PrisonerSolo, with a light that may be lit at first."""

    room: DimRoom = machines(DimRoom)


class Table(Environment):
    """The table: what is offered, by what it lacks, and who smokes; 0 is nothing and none."""

    STATES, INITIAL = (THERE,), THERE

    lacking: int = Int("kinds", start=range(1, 4))
    smoker: int = Int("kinds")

    smoke: Trigger

    ROWS = (Row("smoke", THERE, STAY, "is_offered", "take", "one has the rest"),)

    def is_offered(self) -> bool:
        return self.lacking > 0

    def take(self) -> None:
        self.smoker = self.lacking
        self.lacking = 0


class Offer(Environment):
    """The next offer of the dealer."""

    INDEX = ("offer",)
    STATES, INITIAL = (THERE,), THERE

    system: Smokers
    offer: int

    stop: Trigger

    ROWS = (Row("stop", THERE, STAY, "is_gone", "put", "one has smoked, and this comes"),)

    def is_gone(self) -> bool:
        return self.system.table.lacking == 0

    def put(self) -> None:
        self.system.table.smoker = 0
        self.system.table.lacking = self.offer + 1


class Smokers(ClosedSystem):
    """CigaretteSmokers: three smokers and a dealer."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"offer": "kinds"}
    CONSTANTS: ClassVar[dict[str, int]] = {"kinds": 3}
    STEPS = (Step("table", "smoke"), Step("offer", "stop"))

    table: Table = machines(Table)
    offer: list[Offer] = machines(Offer)

    @always("none smokes while something is offered")
    def is_exclusive(self) -> bool:
        return self.table.smoker == 0 or self.table.lacking == 0


class Cat(Environment):
    """A cat in a row of boxes, and the box that is looked into: one of those in between."""

    STATES, INITIAL = (THERE,), THERE

    system: Boxes

    cat: int = Int("last", start=ANY)
    seen: int = Int("inner", start=ANY)
    goes_right: bool = Bool(start=ANY)

    left: Trigger
    right: Trigger

    ROWS = (
        Row("left", THERE, STAY, "has_left", "go_left, look", "the cat goes left"),
        Row("right", THERE, STAY, "has_right", "go_right, look", "the cat goes right"),
    )

    def has_left(self) -> bool:
        return self.cat > 0

    def has_right(self) -> bool:
        return self.cat < self.system.last

    def go_left(self) -> None:
        self.cat -= 1

    def go_right(self) -> None:
        self.cat += 1

    def look(self) -> None:
        if self.goes_right and self.seen < self.system.inner:
            self.seen += 1
        elif not self.goes_right and self.seen > 0:
            self.seen -= 1
        else:
            self.goes_right = not self.goes_right


class Boxes(ClosedSystem):
    """Cat: the cat is found at last."""

    CONSTANTS: ClassVar[dict[str, int]] = {"last": 4}
    DERIVED: ClassVar[dict[str, str]] = {"inner": "last - 2"}
    STEPS = (Step("cat", "left", is_fair=False), Step("cat", "right", is_fair=False))
    FAIRNESS = (weakly_fair("cat.left", "cat.right"),)

    last: int
    inner: int
    cat: Cat = machines(Cat)

    @eventually("the cat is seen")
    def is_found(self) -> bool:
        return self.cat.cat == self.cat.seen + 1


class Can(Environment):
    """Beans of two colours."""

    STATES, INITIAL = (THERE,), THERE

    black: int = Int("most", start=ANY)
    white: int = Int("most", start=ANY)

    take_white: Trigger
    take_black: Trigger
    take_both: Trigger
    end: Trigger

    ROWS = (
        Row("take_white", THERE, STAY, "has_whites", "turn", "two white ones give a black one"),
        Row("take_black", THERE, STAY, "has_blacks", "drop", "two black ones give a black one"),
        Row("take_both", THERE, STAY, "has_both", "drop", "the white one goes back"),
        Row("end", THERE, STAY, "is_last", None, "one is left"),
    )

    def has_whites(self) -> bool:
        return self.white >= 2

    def has_blacks(self) -> bool:
        return self.black >= 2

    def has_both(self) -> bool:
        return self.black >= 1 and self.white >= 1

    def is_last(self) -> bool:
        return self.black + self.white == 1

    def turn(self) -> None:
        self.white -= 2
        self.black += 1

    def drop(self) -> None:
        self.black -= 1


class CoffeeCan(ClosedSystem):
    """CoffeeCan: beans are taken until one is left."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 100}
    STEPS = (
        Step("can", "take_white", is_fair=False),
        Step("can", "take_black", is_fair=False),
        Step("can", "take_both", is_fair=False),
        Step("can", "end", is_fair=False),
    )
    FAIRNESS = (weakly_fair(ANY),)

    most: int
    can: Can = machines(Can)

    @initially("there are some beans, and not too many")
    def is_filled(self) -> bool:
        return 1 <= self.can.black + self.can.white <= self.most

    def count(self) -> int:
        return self.can.black + self.can.white

    @each_step("there are fewer beans")
    def is_fewer(self, count: int) -> bool:
        return self.count() < count

    @each_step("an even number of white beans stays even, and an odd one odd")
    def is_kept(self, is_even: bool) -> bool:
        return self.is_even() == is_even

    @eventually("one bean is left")
    def is_over(self) -> bool:
        return self.can.black + self.can.white == 1

    @leads_to("an even number of white beans ends with a black one", then="is_black")
    def is_even(self) -> bool:
        return self.can.white % 2 == 0

    def is_black(self) -> bool:
        return self.can.black == 1 and self.can.white == 0

    @leads_to("an odd number of white beans ends with a white one", then="is_white")
    def is_odd(self) -> bool:
        return self.can.white % 2 == 1

    def is_white(self) -> bool:
        return self.can.black == 0 and self.can.white == 1


class Grid(Environment):
    """Cells of a square of four by four, as bits."""

    STATES, INITIAL = (THERE,), THERE

    cells: int = Int(65535, start=ANY)

    live: Trigger

    ROWS = (Row("live", THERE, STAY, None, "step", "a generation passes"),)

    def at(self, x: int, y: int) -> int:
        if x < 0 or y < 0 or x > 3 or y > 3:
            return 0
        return self.cells >> (4 * y + x & 15) & 1

    def around(self, x: int, y: int) -> int:
        above = self.at(x - 1, y - 1) + self.at(x, y - 1) + self.at(x + 1, y - 1)
        below = self.at(x - 1, y + 1) + self.at(x, y + 1) + self.at(x + 1, y + 1)
        return above + self.at(x - 1, y) + self.at(x + 1, y) + below

    def step(self) -> None:
        following = 0
        for y in range(4):
            for x in range(4):
                score = self.around(x, y)
                if score == 3 or (score == 2 and self.at(x, y) == 1):
                    following += 1 << 4 * y + x
        self.cells = following


class GameOfLife(ClosedSystem):
    """GameOfLife: from each of the 65,536 grids."""

    STEPS = (Step("grid", "live"),)

    grid: Grid = machines(Grid)
