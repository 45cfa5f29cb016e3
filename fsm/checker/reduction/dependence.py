"""The dependence of cases on each other, and which may make a condition hold.

Two cases depend on each other unless in every state in which both are possible neither changes what
the other does, and both orders lead to the same state. Sets of cases are kept as numbers, a bit for
each case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from epochgate.fsm.checker.compiler.ir import Expr
from epochgate.fsm.checker.reduction.cases import Append, Case, Cases, Table, Taken, Write
from epochgate.fsm.checker.reduction.values import Head, Token, values


@dataclass(frozen=True)
class Within:
    """A cell has one of these values."""

    cell: str
    mask: int


@dataclass(frozen=True)
class Holds:
    """A condition on several cells holds, or does not."""

    condition: Expr
    expected: bool


@dataclass(frozen=True)
class Hidden:
    """Something about these cells, which is not known."""

    cells: frozenset[str]


Condition = Within | Holds | Hidden
Writers = dict[tuple[Write, int | None], int]
"""Of one cell: the cases that write it alike with the same values before."""


class Dependence:
    """Cases, their conditions, and what they have to do with each other."""

    def __init__(self, cases: Cases) -> None:
        self.cases, self._paths = cases.found, cases.paths
        self._writers: dict[str, Writers] = defaultdict(lambda: defaultdict(int))
        self._masks: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        """Of one cell: the cases that demand one of these values of it."""
        self._expecting: dict[Holds, int] = defaultdict(int)
        for number, case in enumerate(self.cases):
            for cell, write in case.writes.items():
                self._writers[cell][write, case.within.get(cell)] |= 1 << number
            for cell, mask in case.within.items():
                self._masks[cell][mask] |= 1 << number
            for condition, expected in case.holds:
                self._expecting[Holds(condition, expected)] |= 1 << number
        self.conditions: list[Condition] = []
        """All that occur, each once."""
        self.of_case: list[list[int]] = []
        """The numbers of the conditions of each case."""
        numbers: dict[Condition, int] = {}
        for case in self.cases:
            self.of_case.append([numbers.setdefault(one, len(numbers)) for one in conditions(case)])
        self.conditions = [*numbers]
        self.enabling = [self._may_make(condition) for condition in self.conditions]
        """For each condition the cases that may make it hold where it does not."""
        self.dependent = self._all_dependent()
        """For each case those that depend on it."""

    def writes_of(self, cell: str) -> list[Write]:
        """Return every way in which some case writes a cell."""
        return [write for write, _ in self._writers.get(cell, {})]

    def _writing(self, cell: str) -> int:
        return _union(self._writers.get(cell, {}).values())

    # Conditions

    def _may_make(self, condition: Condition) -> int:
        if isinstance(condition, Within):
            outside = self._paths.all_values(condition.cell) & ~condition.mask
            return self._crossing(condition.cell, outside, condition.mask)
        return _union(self._writing(cell) for cell in self._cells(condition))

    def _may_break(self, condition: Condition, length_min: dict[str, int]) -> int:
        """The cases that may make a condition not hold where it does."""
        if isinstance(condition, Within):
            outside = self._paths.all_values(condition.cell) & ~condition.mask
            return self._crossing(condition.cell, condition.mask, outside)
        if isinstance(condition, Holds):
            tokens = self._paths.tokens(condition.condition)
            return _union(self._changing(token, length_min) for token in tokens)
        return _union(self._writing(cell) for cell in condition.cells)

    def _cells(self, condition: Holds | Hidden) -> Iterator[str]:
        if isinstance(condition, Hidden):
            yield from condition.cells
            return
        for token in self._paths.tokens(condition.condition):
            yield token.items if isinstance(token, Head) else token

    def _crossing(self, cell: str, before: int, after: int) -> int:
        """The cases that may take a cell from one set of values to another."""
        found = 0
        for (write, mask), cases in self._writers.get(cell, {}).items():
            possible = before if mask is None else before & mask
            if not isinstance(write, Table):
                found |= cases if possible else 0
            elif any(possible >> v & 1 and after >> then & 1 for v, then in write.after):
                found |= cases
        return found

    def _changing(self, token: Token, length_min: dict[str, int]) -> int:
        """The cases that may change what is read, where channels have at least these items."""
        if not isinstance(token, Head):
            return self._writing(token)
        is_there = length_min.get(token.items, 0) >= token.count
        return _union(
            cases
            for (write, _), cases in self._writers.get(token.items, {}).items()
            if not (is_there and isinstance(write, Append))
        )

    # Cases

    def _all_dependent(self) -> list[int]:
        found = [self._disturbing(number) for number in range(len(self.cases))]
        for number, others in enumerate(found):
            for other in bits(others):
                found[other] |= 1 << number
        return [
            others & ~self._excluded(number) & ~(1 << number) for number, others in enumerate(found)
        ]

    def _disturbing(self, number: int) -> int:
        """The cases that may change what a case does, or whether, or what both lead to."""
        case = self.cases[number]
        length_min = {
            items: min(values(case.within.get(channel.length, 1)), default=0)
            for items, channel in self._paths.channels.items()
        }
        found = _union(
            self._may_break(self.conditions[one], length_min) for one in self.of_case[number]
        )
        found |= _union(self._changing(token, length_min) for token in case.reads)
        for cell, write in case.writes.items():
            mask = case.within.get(cell)
            for (other, before), cases in self._writers[cell].items():
                if not self._commute(cell, (write, mask), (other, before)):
                    found |= cases
        return found

    def _commute(
        self, cell: str, one: tuple[Write, int | None], other: tuple[Write, int | None]
    ) -> bool:
        """Return whether two writes give the same in both orders, where both are possible."""
        (write, mask), (last, before) = one, other
        if {type(write), type(last)} == {Append, Taken}:
            return True
        if not (isinstance(write, Table) and isinstance(last, Table)):
            return False
        first, second = dict(write.after), dict(last.after)
        every = self._paths.all_values(cell)
        both = (every if mask is None else mask) & (every if before is None else before)
        missing = -1
        return all(
            second.get(first[value], missing) == first.get(second[value], missing) != missing
            for value in values(both)
        )

    def _excluded(self, number: int) -> int:
        """The cases that are possible in no state in which this one is."""
        case = self.cases[number]
        found = 0
        for cell, mask in case.within.items():
            for other, cases in self._masks[cell].items():
                if not mask & other:
                    found |= cases
        for condition, expected in case.holds:
            found |= self._expecting.get(Holds(condition, not expected), 0)
        return found


def conditions(case: Case) -> Iterator[Condition]:
    """Yield all conditions of a case."""
    for cell, mask in case.within.items():
        yield Within(cell, mask)
    for condition, expected in case.holds:
        yield Holds(condition, expected)
    if case.hidden:
        yield Hidden(case.hidden)


def bits(cases: int) -> Iterator[int]:
    """Yield the numbers of the cases in a set."""
    while cases:
        lowest = cases & -cases
        yield lowest.bit_length() - 1
        cases ^= lowest


def _union(sets: Iterable[int]) -> int:
    found = 0
    for one in sets:
        found |= one
    return found
