"""Validation of a machine's declaration, done once when its class is created.

A table passes when it is made of names, every name in it resolves, no row is written twice, the
rows of one (state, trigger) pair exclude each other, every state can be reached and, unless it is
declared terminal, left. Exclusion is syntactic: two rows of a pair must disagree on a guard that
both name, so a reader can see it. A table that was read from another library (`IS_READ`) need not
be so: what it is like is reported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.faults import Faults
from epochgate.fsm.reserved import expect_free
from epochgate.fsm.rows import ANY, Row
from epochgate.fsm.source import class_place, row_place

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
    """Return whether the rows demand opposite values of some guard."""
    demanded = dict(first.literals)
    return any(demanded.get(name, expected) != expected for name, expected in second.literals)


class Declaration:
    """One machine class under validation; `check()` raises DeclarationError."""

    def __init__(self, machine: type[Machine]) -> None:
        self.machine = machine

    def fault(self, text: str, row: Row | None = None) -> DeclarationError:
        """The error, with the place of the row, or of the class."""
        machine = self.machine
        file, line = class_place(machine)
        if row is not None and isinstance(row.trigger, str):
            file, line = row_place(machine, row.trigger, str(row.because))
        place = f"{file}:{line}: " if line else ""
        return DeclarationError(f"{place}{machine.__module__}.{machine.__name__}: {text}")

    def check(self) -> None:
        self._forms()
        self._names()
        faults = Faults()
        for check in (self._states, self._triggers):
            with faults.kept():
                check()
        for row in self.machine.ROWS:
            with faults.kept():
                self._row(row)
        faults.tell()
        if not self.machine.IS_READ:
            self._exclusion()
            self._reachability()
        self._arguments()

    def _names(self) -> None:
        """Refuse index sets and triggers in the place of what every machine has."""
        machine = self.machine
        named = {
            **dict.fromkeys(machine.triggers(), "a trigger"),
            **dict.fromkeys(machine.INDEX, "an index set"),
        }
        expect_free(machine, named, ("state", "system", "index"))

    def _forms(self) -> None:
        """Refuse what other libraries take in place of a name, and say what to write."""
        for state in self.machine.STATES:
            if type(state) is not str:
                raise self.fault(f"the state {state!r} is no str; {_advice(state)}")
        for row in self.machine.ROWS:
            if not isinstance(row, Row):
                raise self.fault(f"ROWS holds {row!r}; write Row(...) or Ignore(...)")
            source = row.source if isinstance(row.source, tuple) else (row.source,)
            after = row.after if isinstance(row.after, tuple) else (row.after or "",)
            columns = {
                "trigger": (row.trigger,),
                "source": source,
                "dest": (row.dest or "",),
                "when": (row.when or "",),
                "after": after,
                "because": (row.because,),
            }
            for column, values in columns.items():
                for value in values:
                    if type(value) is not str:
                        raise self.fault(
                            f"row {row.trigger!r}: its {column} is {value!r}; {_advice(value)}", row
                        )

    def _states(self) -> None:
        states = self.machine.STATES
        if not states or len(set(states)) != len(states):
            raise self.fault(f"STATES must be distinct names and at least one, not {states!r}")
        for state in (self.machine.INITIAL, *self.machine.STARTS, *self.machine.TERMINAL):
            if state not in states:
                raise self.fault(f"{state!r} is not among STATES {states!r}")
        if self.machine.STARTS and self.machine.INITIAL not in self.machine.STARTS:
            raise self.fault(f"INITIAL {self.machine.INITIAL!r} is not among STARTS; add it")

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
            if self._is_trigger(annotation) and name not in machine.triggers():
                raise self.fault(f"the trigger {name!r} has no row; add one, or remove it")

    @staticmethod
    def _is_trigger(annotation: object) -> bool:
        """Return whether an attribute is declared as a trigger, by name or, unless annotations are
        kept as text, by the class itself.
        """
        if isinstance(annotation, str):
            return annotation.rpartition(".")[2] == "Trigger"
        from epochgate.fsm.machine import Trigger  # which imports this module

        return annotation == Trigger

    def _row(self, row: Row) -> None:
        states = self.machine.STATES
        where = f"row {row.trigger!r} from {row.source!r}"
        sources = expand(states, row)
        if not sources or len(set(sources)) != len(sources):
            raise self.fault(f"{where}: name at least one source state, and each once", row)
        for state in sources:
            if state not in states:
                raise self.fault(f"{where}: unknown source state {state!r}; known: {states!r}", row)
        if row.dest == "=":
            raise self.fault(
                f"{where}: write the name of the source as dest, in a row for each source, or "
                f"STAY, if the state is not to change",
                row,
            )
        if row.dest is not None and row.dest not in states:
            raise self.fault(f"{where}: unknown dest {row.dest!r}; known: {states!r}", row)
        if not row.because.strip():
            raise self.fault(f"{where}: `because` is empty; say why this transition exists", row)
        for name in (*row.conditions, *row.unless, *row.actions):
            if not inspect.isfunction(getattr(self.machine, name, None)):
                raise self.fault(
                    f"{where}: no method is named {name!r}; check its spelling, and that guards "
                    f"are joined by 'and', actions by commas",
                    row,
                )
        if clash := set(row.conditions) & set(row.unless):
            raise self.fault(f"{where}: {sorted(clash)} is both demanded and excluded", row)

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
                        f"let them demand opposite values of one guard",
                        second,
                    )

    def _reachability(self) -> None:
        arrows: dict[str, set[str]] = {state: set() for state in self.machine.STATES}
        for source, row in self.machine.expanded_rows():
            if row.dest is not None:
                arrows[source].add(row.dest)
        frontier = [self.machine.INITIAL, *self.machine.STARTS]
        reached = {*frontier}
        while frontier:
            for dest in sorted(arrows[frontier.pop()] - reached):
                reached.add(dest)
                frontier.append(dest)
        active = {source for source, row in self.machine.expanded_rows() if not row.is_ignored}
        if unreached := [state for state in self.machine.STATES if state not in reached]:
            raise self.fault(f"no row leads to {unreached}; remove the state or add the row")
        for state in self.machine.STATES:
            is_trap = len(self.machine.STATES) > 1 and state not in active
            if is_trap and state not in self.machine.TERMINAL:
                raise self.fault(
                    f"no row leads from {state!r} to another state; list it in TERMINAL if that is "
                    f"meant"
                )
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


def _advice(value: object) -> str:
    """Return what to write instead of a value that is no name."""
    if isinstance(value, Enum):
        return (
            f"write the text {str(value.value)!r} in place of the member of {type(value).__name__}"
        )
    if callable(value):
        return "write the name of a method of the class, which can be checked, compiled and drawn"
    if isinstance(value, dict):
        return "write each state as one name, a nested one such as 'moving_fast'"
    if isinstance(value, list):
        return f"write a tuple, {tuple(value)!r}"
    return "write a name"
