"""Integers may be negative where the field says so; a bound hides no claim that is broken there."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from epochgate.fsm import STAY, DeclarationError, Int, Machine, Row, Trigger, machines
from epochgate.fsm.checker import Verdict, check, simulate
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes, terminal
from epochgate.fsm.fields import ArrayField, IntField
from tests.checker.side_by_side import SideBySide

ENGINES = ("llvm", "python", "interpreted")
OPEN = "open"


class Account(Machine):
    """Money comes and goes; the last movements are added up in ways that round."""

    STATES = (OPEN,)
    INITIAL = OPEN

    balance: int = Int("most", start=-1, low=-5)
    floor: int = Int("most", low=-9)
    rest: int = Int(2)
    half: int = Int("most", low=-3)
    shifted: int = Int(16)
    lowest: int = Int(-1, start=-1, low=-5)
    always_minus_two: int = Int(-2, start=-2, low=-2)

    deposit: Trigger
    withdraw: Trigger

    ROWS = (
        Row("deposit", OPEN, STAY, "has_room", "add_two, look", "money comes"),
        Row("withdraw", OPEN, STAY, "may_take", "take_three, look", "money goes"),
    )

    def has_room(self) -> bool:
        return self.balance + 2 <= 4

    def may_take(self) -> bool:
        return self.balance > -3 or self.balance == -4 + 2

    def add_two(self) -> None:
        self.balance += 2

    def take_three(self) -> None:
        self.balance = self.balance - 3

    def look(self) -> None:
        self.floor = -self.balance + self.always_minus_two
        self.rest = self.balance % 3
        self.half = self.balance // 2
        self.shifted = 1 << (self.balance & 3) + self.balance % 2
        self.lowest = self.balance if self.balance < self.lowest else self.lowest


class Bank(ClosedSystem):
    """One account."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 5}
    STEPS = (Step("account", "deposit"), Step("account", "withdraw"))

    account: Account = machines(Account)

    @always("the halves and the rest are those of the balance", when="has_moved")
    def is_divided(self) -> bool:
        return (
            self.account.half == self.account.balance // 2
            and self.account.rest == self.account.balance % 3
            and self.account.floor == -self.account.balance - 2
            and self.account.shifted == 1 << (self.account.balance & 3) + self.account.balance % 2
        )

    def has_moved(self) -> bool:
        return self.account.floor != 0

    @always("the account is never below its lowest")
    def is_above_lowest(self) -> bool:
        return self.account.lowest <= self.account.balance

    @sometimes("the account owes five")
    def owes_five(self) -> bool:
        return self.account.balance == -5


class SmallAccount(Machine):
    """Money goes without a look at what is there."""

    STATES = (OPEN,)
    INITIAL = OPEN

    balance: int = Int("most", start=1)

    withdraw: Trigger

    ROWS = (Row("withdraw", OPEN, STAY, None, "take", "money goes"),)

    def take(self) -> None:
        self.balance -= 1


class SmallBank(ClosedSystem):
    """A first try of a user: the claim, and a field that cannot break it."""

    CONSTANTS: ClassVar[dict[str, int]] = {"most": 3}
    STEPS = (Step("account", "withdraw"),)

    account: SmallAccount = machines(SmallAccount)

    @always("no account holds more than three")
    def is_small(self) -> bool:
        return self.account.balance <= 3

    @always("no balance is negative")
    def is_solvent(self) -> bool:
        return self.account.balance >= 0

    @terminal("never")
    def is_over(self) -> bool:
        return False


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_below_zero_alike(engine: str) -> None:
    result = check(Bank, engine=engine)
    assert (result.verdict, result.states) == (Verdict.PASS, check(Bank).states)
    assert result.states > 10


def test_every_form_computes_below_zero_alike() -> None:
    forms = SideBySide(Bank())
    seen, frontier = {forms.program.initial}, [forms.program.initial]
    while frontier:
        state = frontier.pop()
        for number in forms.possible(state):
            after = forms.taken(state, number)
            if after not in seen:
                seen.add(after)
                frontier.append(after)
    assert len(seen) == check(Bank).states


def test_a_negative_bound_is_told_with_both_ends() -> None:
    class Lower(Account):
        def may_take(self) -> bool:
            return True

    class LowerBank(Bank):
        account: Lower = machines(Lower)

    found = check(LowerBank).counterexample
    assert found is not None
    assert (found.kind, found.message) == ("range", "account.balance leaves its range -5 to 5")


@pytest.mark.parametrize("run", [*ENGINES, "simulate"])
def test_a_claim_that_is_broken_beyond_a_bound_is_reported_as_broken(run: str) -> None:
    result = simulate(SmallBank) if run == "simulate" else check(SmallBank, engine=run)
    found = result.counterexample
    assert found is not None
    assert (found.kind, found.property, len(found.steps)) == ("always", "is_solvent", 2)
    assert found.message == (
        "not always: no balance is negative (account.balance leaves its range 0 to 3)"
    )
    assert found.steps[-1].changed == {"account.balance": (0, -1)}
    verdicts = {one.name: one.verdict for one in result.properties}
    assert verdicts == {
        "is_small": Verdict.BOUNDED,
        "is_solvent": Verdict.FAIL,
        "is_over": Verdict.BOUNDED,
    }


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (Int(3, start=-1), "starts as -1, outside of 0 to 3"),
        (Int(3, low=1), "starts as 0, outside of 1 to 3"),
        (Int(1 << 62, low=-(1 << 62)), "which are more than 2\\*\\*62 values"),
    ],
)
def test_a_field_that_does_not_fit_is_refused(declared: Any, told: str) -> None:
    assert isinstance(declared, IntField | ArrayField)

    class Odd(SmallAccount):
        odd: int = declared

    class OddBank(SmallBank):
        account: Odd = machines(Odd)

    with pytest.raises(DeclarationError, match=told):
        check(OddBank)
