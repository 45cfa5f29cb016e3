"""Further kinds of broken rows, beside those of `mutants`:

* `deleted`: a row is gone, so that its trigger is an error there;
* `negated G`: wherever the row's trigger finds it, the guard G is read the other way round;
* `not from S`: a row no longer holds in one of its source states;
* `also from S`: a row holds in another state too, and wins there;
* `to S`: a row leads to another state;
* `B before A`: two actions that follow each other change places, unless the order of what they
  read, write and say is the same for both;
* `A twice`: an action is taken twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from epochgate.fsm import Machine, Row
from epochgate.fsm.declaration import expand
from epochgate.fsm.source import definition
from tests.mutation.mutants import (
    MACHINES,
    Mutant,
    Rows,
    differing,
    mutants_of,
    with_other,
    with_winner,
)
from tests.mutation.order import is_order_free, is_repeatable


@cache
def more_mutants_of(name: str) -> tuple[Mutant, ...]:
    """Those of one machine, of these kinds alone."""
    return tuple(differing(name, _broken, mutants_of(name))) if name in MACHINES else ()


def kind_of(mutant: Mutant) -> str:
    """The kind of a broken row, without what is particular to it."""
    words = mutant.fault.split()
    for kind in (" ".join(words[:2]), words[0], words[-1], words[1] if len(words) > 1 else ""):
        if kind in KINDS:
            return KINDS[kind]
    raise KeyError(f"{mutant.name} is of no kind; add its words to KINDS")


KINDS = {
    "regardless": "guard left out",
    "negated": "guard negated",
    "without": "action left out",
    "twice": "action doubled",
    "before": "actions swapped",
    "ignored": "row ignored",
    "refused": "ignored row refused",
    "deleted": "row deleted",
    "not from": "source state dropped",
    "also from": "source state added",
    "to": "other target",
}
"""A word of a fault -> the kind of it."""


def _broken(machine: type[Machine], position: int) -> Iterator[tuple[str, Rows]]:
    row, sources = machine.ROWS[position], expand(machine.STATES, machine.ROWS[position])
    if not row.is_ignored:
        yield "deleted", _replaced(machine, position)
    for guard, _ in row.literals:
        yield f"negated {guard}", tuple(_negated(machine, row, guard))
    for state in sources:
        left = tuple(each for each in sources if each != state)
        if left:
            yield (
                f"not from {state}",
                _replaced(machine, position, with_other(row, left, row.literals)),
            )
    for state in machine.STATES:
        if state not in sources:
            winner = with_other(row, (*sources, state), row.literals)
            yield f"also from {state}", with_winner(machine, position, winner)
    if not row.is_ignored:
        for state in machine.STATES:
            changed = Row(row.trigger, row.source, state, row.when, row.after, row.because)
            yield f"to {state}", _replaced(machine, position, changed)
    yield from _reordered(machine, position)


def _replaced(machine: type[Machine], position: int, *rows: Row) -> Rows:
    return (*machine.ROWS[:position], *rows, *machine.ROWS[position + 1 :])


def _negated(machine: type[Machine], row: Row, guard: str) -> Iterator[Row]:
    """Wherever the row holds, let every row of its trigger read the guard the other way round."""
    sources = expand(machine.STATES, row)
    for other in machine.ROWS:
        if other.trigger != row.trigger or guard not in dict(other.literals):
            yield other
            continue
        own = expand(machine.STATES, other)
        if elsewhere := tuple(state for state in own if state not in sources):
            yield with_other(other, elsewhere, other.literals)
        if here := tuple(state for state in own if state in sources):
            literals = tuple((name, (name == guard) != said) for name, said in other.literals)
            yield with_other(other, here, literals)


def _reordered(machine: type[Machine], position: int) -> Iterator[tuple[str, Rows]]:
    row, actions = machine.ROWS[position], machine.ROWS[position].actions
    bodies = {name: definition(getattr(machine, name)).body for name in actions}

    def doing(changed: tuple[str, ...]) -> Rows:
        new = Row(row.trigger, row.source, row.dest, row.when, changed, row.because)
        return _replaced(machine, position, new)

    for place, (first, then) in enumerate(pairwise(actions)):
        if not is_order_free(machine, bodies[first], bodies[then]):
            changed = (*actions[:place], then, first, *actions[place + 2 :])
            yield f"{then} before {first}", doing(changed)
    for place, name in enumerate(actions):
        if not is_repeatable(machine, bodies[name]):
            yield f"{name} twice", doing((*actions[: place + 1], *actions[place:]))
