"""Writes down for the search what the cases of a program have to do with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

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
    for first in range(0, len(dependence.conditions), stubborn.WORD_BITS):
        some = dependence.conditions[first : first + stubborn.WORD_BITS]
        looks.append(_added(program, f"conditions from {first}", _all_bits(some)))
    ranks = [
        _added(program, f"rank {number}", rank)
        for number, rank in enumerate(
            _ranks(program, dependence, {c.items for c in cases.paths.channels.values()})
        )
    ]
    program.reduction = Reduction(*_tables(steps, dependence), (*looks,), (*ranks,))


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


def _tables(steps: int, dependence: Dependence) -> tuple[tuple[int, ...], dict[str, int]]:
    """Everything as rows of numbers, and where each table begins; a set of cases is a row of words
    with a bit for each.
    """
    cases, conditions = dependence.cases, dependence.conditions
    constants = stubborn.constants(steps, len(cases), len(conditions))
    of_step, asking = [0] * steps, [0] * len(conditions)
    for number, case in enumerate(cases):
        if case.step != OBSERVER:
            of_step[case.step] |= 1 << number
        for condition in dependence.of_case[number]:
            asking[condition] |= 1 << number
    # A condition that few cases can make true is asked for first.
    ease = [found.bit_count() for found in dependence.enabling]
    asked = [sorted(found, key=ease.__getitem__) for found in dependence.of_case]
    every = (1 << stubborn.WORD_BITS * constants["CASE_WORDS"]) - 1
    found: list[int] = []
    for name, sets in (
        ("OF_STEP", of_step),
        ("LEAVING", [every ^ one for one in asking]),
        ("ENABLING", dependence.enabling),
        ("DEPENDENT", dependence.dependent),
    ):
        constants[name] = len(found)
        for one in sets:
            found += _words(one, constants["CASE_WORDS"])
    constants["STEP_OF"] = len(found)
    found += [steps if case.step == OBSERVER else case.step for case in cases]
    constants["ASKED"] = begin = len(found)
    # Where the conditions of each case begin, and then these.
    lengths = [len(one) for one in asked]
    found += accumulate(lengths[:-1], initial=begin + len(cases))
    found += chain.from_iterable(asked)
    return tuple(found), constants


def _words(one: int, count: int) -> list[int]:
    """A set as words, the lowest first."""
    mask = (1 << stubborn.WORD_BITS) - 1
    return [one >> stubborn.WORD_BITS * k & mask for k in range(count)]


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
