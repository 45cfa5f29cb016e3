"""Writes down for the search what the cases of a program have to do with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from epochgate.fsm.checker.compiler.ir import (
    Cell,
    Expr,
    Function,
    Load,
    Op,
    Program,
    Reduction,
    fold,
    select,
)
from epochgate.fsm.checker.compiler.layout import FifoCells, Layout
from epochgate.fsm.checker.reduction import stubborn
from epochgate.fsm.checker.reduction.cases import OBSERVER, Cases, Table
from epochgate.fsm.checker.reduction.dependence import (
    Condition,
    Dependence,
    Hidden,
    Within,
    bits,
)
from epochgate.fsm.checker.reduction.paths import SMALL_MAX
from epochgate.fsm.closed import Property

RANK_BITS = 62
"""Of one function that orders states."""
RANKS_MAX = 4


def channels_of(layout: Layout) -> list[FifoCells]:
    """Return all channels of a system."""
    found: list[FifoCells] = []

    def collect(place: object) -> None:
        if isinstance(place, FifoCells):
            found.append(place)
        elif isinstance(place, list):
            for item in place:
                collect(item)

    for places in layout.places.values():
        for place in places.values():
            collect(place)
    return found


def add_reduction(
    program: Program, channels: Iterable[FifoCells], properties: Iterable[Property]
) -> None:
    """Give a program what partial-order reduction needs."""
    cases = Cases(program, channels, properties)
    steps = len(program.steps)
    cases.found.sort(key=lambda case: case.step if case.step != OBSERVER else steps)
    dependence = Dependence(cases)
    looks = []
    for first in range(0, len(dependence.conditions), stubborn.CONDITIONS_IN_WORD):
        some = dependence.conditions[first : first + stubborn.CONDITIONS_IN_WORD]
        looks.append(_added(program, f"conditions from {first}", _all_bits(some)))
    ranks = [
        _added(program, f"rank {number}", rank)
        for number, rank in enumerate(
            _ranks(program, dependence, {c.items for c in cases.paths.channels.values()})
        )
    ]
    program.reduction = Reduction(_tables(steps, dependence), (*looks,), (*ranks,))


def _added(program: Program, name: str, result: Expr) -> str:
    program.functions[name] = Function(name, (), (), result)
    return name


def _all_bits(conditions: Sequence[Condition]) -> Expr:
    """A bit for each condition that holds."""
    found: Expr = 0
    for position, condition in enumerate(conditions):
        found = fold("|", found, fold("<<", _bit(condition), position))
    return found


def _bit(condition: Condition) -> Expr:
    if isinstance(condition, Within):
        return fold("&", fold(">>", condition.mask, Load(condition.cell)), 1)
    if isinstance(condition, Hidden):
        return 0
    return fold("!=" if condition.expected else "==", condition.condition, 0)


def _tables(steps: int, dependence: Dependence) -> tuple[int, ...]:
    """A head, and then lists of lists: the cases of each step, and so on."""
    cases = dependence.cases
    of_step: list[list[int]] = [[] for _ in range(steps)]
    for number, case in enumerate(cases):
        if case.step != OBSERVER:
            of_step[case.step].append(number)
    enabling = [[*bits(found)] for found in dependence.enabling]
    asked = [
        # A condition that few cases can make true is asked for first.
        sorted(found, key=lambda one: len(enabling[one]))
        for found in dependence.of_case
    ]
    step_of = [steps if case.step == OBSERVER else case.step for case in cases]
    parts = (
        of_step,
        [step_of],
        asked,
        enabling,
        [[*bits(found)] for found in dependence.dependent],
    )
    head = [0] * stubborn.HEAD_WORDS
    head[stubborn.STEPS], head[stubborn.CASES] = steps, len(cases)
    head[stubborn.CONDITIONS] = len(dependence.conditions)
    found = head
    for place, lists in zip(stubborn.LISTS, parts, strict=True):
        # The bounds of each list are where it begins and where the next one does.
        found[place] = len(found)
        at = len(found) + len(lists) + 1
        for one in lists:
            found.append(at)
            at += len(one)
        found.append(at)
        for one in lists:
            found += one
    return tuple(found)


def _ranks(program: Program, dependence: Dependence, items: set[str]) -> list[Expr]:
    """An order of states in which many steps lead upwards: what only ever grows, or only ever
    shrinks, counts most, then the states of machines.
    """

    def order(name: str) -> tuple[bool, bool]:
        return abs(directions[name]) != 1, not name.endswith(".state")

    directions = {cell: _direction(dependence, cell) for cell in program.cells if cell not in items}
    names = [name for name in program.cells if directions.get(name) and program.cells[name].bits]
    found: list[Expr] = []
    rank: Expr = 0
    used = 0
    for name in sorted(names, key=order):
        cell = program.cells[name]
        if used + cell.bits > RANK_BITS:
            found.append(rank)
            rank, used = 0, 0
        rank = fold("|", fold("<<", rank, cell.bits), _place(dependence, cell, directions[name]))
        used += cell.bits
    return [*found, rank][:RANKS_MAX]


def _place(dependence: Dependence, cell: Cell, direction: int) -> Expr:
    """Return how high the value of a cell is.

    Where values come round again, one step at least leads down: one that depends on many others,
    and can seldom be taken alone.
    """
    value = Load(cell.name)
    if direction != 2:
        return value if direction > 0 else Op("-", cell.span, value)
    count = cell.span + 1

    def cost(first: int) -> float:
        return sum(
            1 / (1 + dependent.bit_count())
            for case, dependent in zip(dependence.cases, dependence.dependent, strict=True)
            if isinstance(write := case.writes.get(cell.name), Table)
            for before, after in write.after
            if (after - first) % count < (before - first) % count
        )

    first = min(range(count), key=cost) if count <= SMALL_MAX else 0
    return select(fold("<", value, first), fold("+", value, count - first), fold("-", value, first))


def _direction(dependence: Dependence, cell: str) -> int:
    """1 for a cell that only grows, -1 for one that only shrinks, 2 for one that does both, and 0
    for one that stays.
    """
    found = set()
    for write in dependence.writes_of(cell):
        if not isinstance(write, Table):
            return 2
        found |= {(after > before) - (after < before) for before, after in write.after}
    found.discard(0)
    return 2 if len(found) > 1 else next(iter(found), 0)
