"""A die with a way to be thrown that fails, before ways that do not."""

from __future__ import annotations

from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, implements

HELD, THROWN = "held", "thrown"


class Die(Environment):
    """It is thrown once, and turned."""

    STATES, INITIAL, TERMINAL = (HELD, THROWN), HELD, (THROWN,)

    shown: int = Int(3)

    turn: Trigger
    throw: Trigger

    ROWS = (
        Row(
            "turn", (HELD, THROWN), STAY, "is_six", None, "how often a 6 goes into it is not known"
        ),
        Row("throw", HELD, THROWN, None, "show", "a number comes up"),
    )

    def is_six(self) -> bool:
        return 6 // self.shown == 6

    def show(self) -> None:
        thrown = self.one_of(range(1, 4))
        assert thrown != 1, "1 is never thrown"
        self.shown = thrown


class Throw(ClosedSystem):
    """A die, with claims for an inductive check."""

    STEPS = (Step("die", "turn"), Step("die", "throw"))

    die: Die = machines(Die)

    def is_not_3(self) -> bool:
        return self.die.shown != 3

    def is_small(self) -> bool:
        return self.die.shown <= 3


class FairDie(Die):
    """Is turned at any time once it was thrown."""

    ROWS = (
        Row("turn", THROWN, STAY, None, None, "it changes nothing"),
        Row("throw", HELD, THROWN, None, "show", "a number comes up"),
    )


class FairThrow(Throw):
    """No guard of it fails, and a way to throw it does."""

    die: FairDie = machines(FairDie)


class GoodDie(FairDie):
    """Never fails."""

    def show(self) -> None:
        self.shown = self.one_of(range(2, 4))


class GoodThrow(ClosedSystem):
    """Implements the other."""

    STEPS = (Step("die", "turn"), Step("die", "throw"))

    die: GoodDie = machines(GoodDie)

    @implements("it shows what a die does", Throw)
    def as_throw(self, specification: Throw) -> None:
        specification.die.state = self.die.state
        specification.die.shown = self.die.shown
