"""The mutants: every machine that runs, with one guard, one action or one row of it broken.

They are generated from the rows, whatever these are:

* `regardless of G`: a row no longer asks for the guard G. Where only G kept another row of the same
  state and trigger apart from it, the broken row wins.
* `without A`: a row is taken, and its action A is left out.
* `ignored`: what a row would have done is left out altogether, its change of state too.
* `refused`: what a row ignores is an error.

Of several ways to say the same, as two rows with opposite guards allow, the first one stands.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import FunctionType
from typing import Any

from epochgate.fsm import Ignore, Machine, Row, System, machines
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.declaration import exclude_each_other, expand, parameters
from epochgate.fsm.errors import DeclarationError
from tests.mutation.bodies import BodyMutant, Case
from tests.mutation.homes import HOMES, Home

MACHINES: dict[str, type[Machine]] = {}
"""All machines that run, on the driver, in workers and in sources, but variants that add no
rows.
"""
for _name, _home in HOMES.items():
    if all(_home.machine.ROWS is not other.ROWS for other in MACHINES.values()):
        MACHINES[_name] = _home.machine

Rows = tuple[Row, ...]


@dataclass(frozen=True)
class Mutant:
    """One broken table; `machine` is a name among HOMES."""

    machine: str
    place: str
    fault: str
    rows: Rows
    different: frozenset[Row]

    @property
    def name(self) -> str:
        return f"{self.machine}: {self.place}: {self.fault}"

    @property
    def home(self) -> Home:
        return HOMES[self.machine]

    @property
    def trigger(self) -> str:
        """The trigger of the rows that differ."""
        return self.place.split()[0]

    @property
    def affected(self) -> frozenset[Case]:
        """The rows of the right machine that are taken where this one does something else."""
        attribute = self.home.attribute
        return frozenset((attribute, row.trigger, row.because) for row in self.different)

    def of(self, machine: type[Machine]) -> type[Machine]:
        """Break a machine, or one that adds rows to it. DeclarationError if that is no machine."""
        rows = [*self.rows, *machine.ROWS[len(MACHINES[self.machine].ROWS) :]]
        body: dict[str, object] = {"__module__": machine.__module__}
        kept = _longest(machine, rows)
        for trigger, longest in _longest(machine, machine.ROWS).items():
            if _width(kept.get(trigger)) < _width(longest):
                body |= _with_nothing(rows, trigger, longest)
        return type(f"Broken{machine.__name__}", (machine,), {**body, "ROWS": tuple(rows)})

    def in_system(self, system: type[System]) -> type[System]:
        """The system with the broken machine in it. DeclarationError if that is no system."""
        name = self.home.attribute
        broken = machines(self.of(system.MACHINES[name]))
        body: dict[str, object] = {"__module__": system.__module__, name: broken}
        if issubclass(system, ClosedSystem):
            # It names rows, which may be gone.
            excused = system.UNTAKEN.items()
            own = f"{name}."
            body["UNTAKEN"] = {name: why for name, why in excused if not name.startswith(own)}
        return type(f"Broken{system.__name__}", (system,), body)

    @property
    def refusal(self) -> str:
        """Return why nothing can even be declared with it; empty if that can be done."""
        try:
            self.of(self.home.machine)
            self.in_system(self.home.surroundings)
        except DeclarationError as error:
            return str(error)
        return ""


AnyMutant = Mutant | BodyMutant


def mutants() -> list[Mutant]:
    """All of them, in the order of machines and rows."""
    return [mutant for name in MACHINES for mutant in mutants_of(name)]


@cache
def mutants_of(name: str) -> tuple[Mutant, ...]:
    """Those of one machine."""
    return tuple(_mutants_of(name))


def _mutants_of(name: str) -> Iterator[Mutant]:
    yield from differing(name, _broken, ())


Breaking = Callable[[type[Machine], int], Iterator[tuple[str, Rows]]]
"""A machine and the position of a row -> faults, and the tables that have them."""


def differing(name: str, breaking: Breaking, earlier: Iterable[Mutant]) -> Iterator[Mutant]:
    """The broken tables of a machine that mean something else than it and the earlier ones."""
    machine = MACHINES[name]
    known = {_said(machine, each.rows, each.trigger) for each in earlier}
    for position in own_rows(machine):
        row = machine.ROWS[position]
        right = _meaning(machine, machine.ROWS, row.trigger)
        known.add(_said(machine, machine.ROWS, row.trigger))
        for fault, rows in breaking(machine, position):
            said = _said(machine, rows, row.trigger)
            if said not in known:
                known.add(said)
                meaning = _meaning(machine, rows, row.trigger)
                different = [right[case] for case in right if right[case][0] != meaning[case][0]]
                affected = frozenset(row for _, row in different if row is not None)
                yield Mutant(name, _place(machine, row), fault, rows, affected)


def _said(machine: type[Machine], rows: Rows, trigger: str) -> tuple[Any, ...]:
    return trigger, *(done for done, _ in _meaning(machine, rows, trigger).values())


def own_rows(machine: type[Machine]) -> list[int]:
    """The positions of the rows that stand in no machine that it varies, where they are broken."""
    running = {home.machine for home in HOMES.values()}
    bases = [base for base in machine.__mro__[1:] if base in running]
    theirs = {id(row) for base in bases for row in base.ROWS}
    return [position for position, row in enumerate(machine.ROWS) if id(row) not in theirs]


Situation = tuple[str, tuple[tuple[str, bool], ...]]
"""A state, and what the guards of a trigger's rows say."""


def _meaning(
    machine: type[Machine], rows: Rows, trigger: str
) -> dict[Situation, tuple[tuple[str, ...], Row | None]]:
    """Return what happens at a trigger in each case, where to and what, and which row says so."""
    meaning: dict[Situation, tuple[tuple[str, ...], Row | None]] = {}
    asked = [row for row in machine.ROWS if row.trigger == trigger]
    own = [row for row in rows if row.trigger == trigger]
    guards = sorted({name for row in asked for name, _ in row.literals})
    for values in product((False, True), repeat=len(guards)):
        said = tuple(zip(guards, values, strict=True))
        for state in machine.STATES:
            held = [row for row in own if state in expand(machine.STATES, row)]
            meaning[state, said] = _done(held, state, dict(said))
    return meaning


def _done(rows: list[Row], state: str, said: dict[str, bool]) -> tuple[tuple[str, ...], Row | None]:
    for row in rows:
        if all(said[name] == expected for name, expected in row.literals):
            return (state if row.dest is None else row.dest, *row.actions), row
    return ("refused",), None


def _place(machine: type[Machine], row: Row) -> str:
    sources = expand(machine.STATES, row)
    others = [state for state in machine.STATES if state not in sources]
    told = ", ".join(sources)
    if len(others) < len(sources):
        told = f"any state but {', '.join(others)}" if others else "any state"
    return f"{row.trigger} from {told}" + (f" when {row.when}" if row.when else "")


def _broken(machine: type[Machine], position: int) -> Iterator[tuple[str, Rows]]:
    rows, row = machine.ROWS, machine.ROWS[position]
    before, behind = rows[:position], rows[position + 1 :]
    for guard, _ in row.literals:
        yield f"regardless of {guard}", _regardless(machine, position, guard)
    for action in row.actions:
        kept = tuple(name for name in row.actions if name != action)
        changed = Row(row.trigger, row.source, row.dest, row.when, kept, row.because)
        yield f"without {action}", (*before, changed, *behind)
    if row.is_ignored:
        yield "refused", (*before, *behind)
    else:
        ignored = Ignore(row.trigger, row.source, row.when, row.because)
        yield "ignored", (*before, ignored, *behind)


def _regardless(machine: type[Machine], position: int, guard: str) -> Rows:
    row = machine.ROWS[position]
    literals = tuple(literal for literal in row.literals if literal[0] != guard)
    return with_winner(machine, position, with_other(row, expand(machine.STATES, row), literals))


def with_winner(machine: type[Machine], position: int, winner: Row) -> Rows:
    """The table with another row at a position, which wins wherever others could hold with it."""
    rows: list[Row] = []
    for number, other in enumerate(machine.ROWS):
        if number == position:
            rows.append(winner)
        elif other.trigger != winner.trigger or exclude_each_other(other, winner):
            rows.append(other)
        else:
            rows += _left_over(other, expand(machine.STATES, other), winner)
    return tuple(rows)


def _left_over(row: Row, sources: tuple[str, ...], winner: Row) -> Iterator[Row]:
    """Return what is left of a row where another one wins."""
    if elsewhere := tuple(state for state in sources if state not in winner.source):
        yield with_other(row, elsewhere, row.literals)
    here = tuple(state for state in sources if state in winner.source)
    demanded = row.literals
    for name, expected in winner.literals:
        if here and (name, expected) not in demanded:
            yield with_other(row, here, (*demanded, (name, not expected)))
            demanded = (*demanded, (name, expected))


def with_other(row: Row, sources: tuple[str, ...], literals: tuple[tuple[str, bool], ...]) -> Row:
    """A row with other source states and guards."""
    when = " and ".join(name if expected else f"not {name}" for name, expected in literals) or None
    if row.is_ignored:
        return Ignore(row.trigger, sources, when, row.because)
    return Row(row.trigger, sources, row.dest, when, row.after, row.because)


def _longest(machine: type[Machine], rows: Iterable[Row]) -> dict[str, FunctionType | None]:
    """For each trigger the callback that names most of its arguments."""
    longest: dict[str, FunctionType | None] = {}
    for row in rows:
        names = (*row.conditions, *row.unless, *row.actions)
        callbacks = [getattr(machine, name) for name in names]
        longest[row.trigger] = max([longest.get(row.trigger), *callbacks], key=_width)
    return longest


def _width(callback: FunctionType | None) -> int:
    return -1 if callback is None else len(parameters(callback))


def _with_nothing(rows: list[Row], trigger: str, longest: FunctionType | None) -> dict[str, object]:
    """Let a row do nothing with the trigger's arguments, which no other callback names any more.

    Returns the action; callers of the trigger go on to give them all.
    """
    name = f"do_nothing_at_{trigger}"
    position = next((i for i, row in enumerate(rows) if row.trigger == trigger), None)
    if position is None or longest is None or not parameters(longest):
        return {}
    row = rows[position]
    rows[position] = Row(trigger, row.source, row.dest, row.when, (*row.actions, name), row.because)
    kinds = longest.__annotations__
    taken = "".join(f", {given}: {kinds[given]}" for given in parameters(longest))
    path = f"<{name}{taken}>"
    text = f"from __future__ import annotations\ndef {name}(self{taken}) -> None:\n    pass\n"
    # The checker reads the source of what it compiles.
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    made: dict[str, object] = {"__name__": __name__}
    exec(compile(text, path, "exec"), made)  # noqa: S102  it is written three lines above
    return {name: made[name]}
