"""Validation of a machine's declaration, done once when its class is created.

A table passes when every name in it resolves, no row is written twice, the rows of one (state,
trigger) pair exclude each other, every state can be reached and, unless it is declared terminal,
left. Exclusion is syntactic: two rows of a pair must disagree on a guard that both name, so a
reader can see it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.rows import ANY, Row

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine

RESERVED = frozenset({"trigger", "state", "states", "system", "index", "fire", "machine", "may"})
"""Words that mean something else on a machine, on its twin or in `transitions`."""
FUNCTIONS_KEPT_MAX = 4096
"""Whose parameters are remembered, since `inspect.signature` takes longer than a row."""


def expand(states: tuple[str, ...], row: Row) -> tuple[str, ...]:
    """The source states that a row stands for."""
    if row.source == ANY:
        return states
    return (row.source,) if isinstance(row.source, str) else row.source


@lru_cache(maxsize=FUNCTIONS_KEPT_MAX)
def parameters(function: Callable[..., object]) -> tuple[str, ...]:
    """The parameter names of a guard or action without `self`."""
    return tuple(inspect.signature(function).parameters)[1:]


def exclude_each_other(first: Row, second: Row) -> bool:
    """Whether the rows demand opposite values of some guard."""
    demanded = dict(first.literals)
    return any(demanded.get(name, expected) != expected for name, expected in second.literals)


class Declaration:
    """One machine class under validation; `check()` raises DeclarationError at the first fault."""

    def __init__(self, machine: type[Machine]) -> None:
        self.machine = machine

    def fault(self, text: str) -> DeclarationError:
        return DeclarationError(f"{self.machine.__module__}.{self.machine.__name__}: {text}")

    def check(self) -> None:
        self._states()
        self._triggers()
        for row in self.machine.ROWS:
            self._row(row)
        self._exclusion()
        self._reachability()
        self._arguments()

    def _states(self) -> None:
        states = self.machine.STATES
        if not states or len(set(states)) != len(states):
            raise self.fault(f"STATES must be distinct names and at least one, not {states!r}")
        for state in (self.machine.INITIAL, *self.machine.TERMINAL):
            if state not in states:
                raise self.fault(f"{state!r} is not among STATES {states!r}")

    def _triggers(self) -> None:
        machine = self.machine
        for trigger in machine.triggers():
            if not trigger.isidentifier() or trigger in RESERVED or trigger[:1] == "_":
                raise self.fault(f"{trigger!r} cannot name a trigger; choose another word")
            taken = getattr(machine, trigger, None)
            names = (*machine.FIELDS, *machine.PORTS, *machine.INDEX)
            if trigger in names or not (taken is None or getattr(taken, "is_trigger", False)):
                raise self.fault(f"{trigger!r} is a trigger and something else; rename one of them")
        for name, annotation in vars(machine).get("__annotations__", {}).items():
            if annotation == "Trigger" and name not in machine.triggers():
                raise self.fault(f"the trigger {name!r} has no row; add one, or remove it")

    def _row(self, row: Row) -> None:
        states = self.machine.STATES
        where = f"row {row.trigger!r} from {row.source!r}"
        sources = expand(states, row)
        if not sources or len(set(sources)) != len(sources):
            raise self.fault(f"{where}: name at least one source state, and each once")
        for state in sources:
            if state not in states:
                raise self.fault(f"{where}: unknown source state {state!r}; known: {states!r}")
        if row.dest is not None and row.dest not in states:
            raise self.fault(f"{where}: unknown dest {row.dest!r}; known: {states!r}")
        if not row.because.strip():
            raise self.fault(f"{where}: `because` is empty; say why this transition exists")
        for name in (*row.conditions, *row.unless, *row.actions):
            if not inspect.isfunction(getattr(self.machine, name, None)):
                raise self.fault(
                    f"{where}: no method is named {name!r}; check its spelling, and that guards "
                    f"are joined by 'and', actions by commas"
                )
        if clash := set(row.conditions) & set(row.unless):
            raise self.fault(f"{where}: {sorted(clash)} is both demanded and excluded")

    def _exclusion(self) -> None:
        pairs: dict[tuple[str, str], list[Row]] = {}
        for source, row in self.machine.expanded_rows():
            pairs.setdefault((source, row.trigger), []).append(row)
        for (source, trigger), rows in pairs.items():
            for first, second in combinations(rows, 2):
                if not exclude_each_other(first, second):
                    raise self.fault(
                        f"two rows take {trigger!r} in {source!r} and could hold together: "
                        f"when {first.when!r} and when {second.when!r}; "
                        f"let them demand opposite values of one guard"
                    )

    def _reachability(self) -> None:
        arrows: dict[str, set[str]] = {state: set() for state in self.machine.STATES}
        for source, row in self.machine.expanded_rows():
            if row.dest is not None:
                arrows[source].add(row.dest)
        reached, frontier = {self.machine.INITIAL}, [self.machine.INITIAL]
        while frontier:
            for dest in sorted(arrows[frontier.pop()] - reached):
                reached.add(dest)
                frontier.append(dest)
        if unreached := [state for state in self.machine.STATES if state not in reached]:
            raise self.fault(f"no row leads to {unreached}; remove the state or add the row")
        for state in self.machine.STATES:
            is_trap = len(self.machine.STATES) > 1 and not arrows[state] - {state}
            if is_trap and state not in self.machine.TERMINAL:
                raise self.fault(f"no row leaves {state!r}; list it in TERMINAL if that is meant")
            # A subclass may add rows to a table whose TERMINAL it inherits, to begin again.
            if state in vars(self.machine).get("TERMINAL", ()) and arrows[state] - {state}:
                raise self.fault(f"{state!r} is in TERMINAL, but a row leaves it")

    def _arguments(self) -> None:
        for trigger in self.machine.triggers():
            longest: tuple[str, ...] = ()
            for row in self.machine.ROWS:
                if row.trigger != trigger:
                    continue
                for name in (*row.conditions, *row.unless, *row.actions):
                    taken = parameters(getattr(self.machine, name))
                    shorter, longer = sorted((taken, longest), key=len)
                    if longer[: len(shorter)] != shorter:
                        raise self.fault(
                            f"the callbacks of {trigger!r} disagree on its arguments: "
                            f"{name!r} takes {taken!r}, another takes {longest!r}; "
                            f"each must take the first few of the same list"
                        )
                    longest = longer
