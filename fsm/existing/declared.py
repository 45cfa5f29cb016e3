"""Writes the table of a machine that was read as declarations of this project: a machine to draw,
and a closed system to check.

The machine that is drawn has the rows as they were written. The one that is checked has a row for
each way through a trigger, and a trigger of its own for each way in which abstracted guards answer,
so that any of them may happen: `melt_if_is_hot`. What guards ask, actions change and claims say is
text that is made here and kept by `linecache`, for the compiler to read.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes, terminal
from epochgate.fsm.existing.callbacks import Callbacks
from epochgate.fsm.existing.claims import Claim
from epochgate.fsm.existing.oracle import Branch, CannotRead, Path
from epochgate.fsm.existing.table import ReadTable
from epochgate.fsm.fields import BoolField, IntField
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import STAY, Ignore, Row
from epochgate.fsm.source import class_place, stand_for
from epochgate.fsm.system import machines

_texts = itertools.count(1)


def drawn(table: ReadTable) -> type[Machine]:
    """Return a machine with the rows of a table, to be drawn."""
    words = table.words
    rows: list[Row] = []
    names: set[str] = set()
    for row in table.rows:
        guards = dict(row.guards)
        trigger = words.trigger(row.trigger)
        when = " and ".join(name if held else f"not {name}" for name, held in guards.items())
        names |= {*guards, *row.actions}
        if row.is_ignored:
            rows.append(Ignore(trigger, row.sources, None, "an invalid trigger is ignored"))
        else:
            rows.append(
                Row(trigger, row.sources, row.dest, when or None, row.actions, str(row.trigger))
            )
    rows = rows or [Ignore(words.fresh("nothing"), table.states, None, "there is no transition")]
    members: dict[str, Any] = dict.fromkeys(names, _stub)
    members |= {
        "STATES": table.states,
        "INITIAL": table.initial,
        "TERMINAL": table.final,
        "ROWS": tuple(rows),
        "IS_READ": True,
        "__module__": __name__,
        "__doc__": f"Read from a machine of {table.oracle.name}.",
    }
    return type(_class_name(table), (Machine,), members, unchecked=True)


def _stub(self: Machine) -> bool:
    """Stand for a guard or callback of the machine that was read."""
    return True


def _class_name(table: ReadTable) -> str:
    word = "".join(one for one in table.oracle.name if one.isalnum() or one == "_")
    return word if word.isidentifier() else f"Machine{word}"


def attribute(table: ReadTable) -> str:
    """Return the name under which a system holds the machine."""
    letters = [f"_{one.lower()}" if one.isupper() else one for one in _class_name(table)]
    word = "".join(letters).strip("_").replace("__", "_")
    reserved = {*dir(ClosedSystem), "constants", "observer", "journal", "emitted"}
    return f"{word}_machine" if word in reserved or not word.isidentifier() else word


class Writer:
    """Writes one closed system."""

    def __init__(self, table: ReadTable, callbacks: Callbacks, claims: Mapping[str, Claim]) -> None:
        self._table, self._callbacks, self._claims = table, callbacks, claims
        self._words, self._attribute = table.words, attribute(table)
        self._source: list[str] = []
        self._watching: list[str] = []
        """Actions that follow each step."""
        self._steps_watched: dict[str, tuple[list[str], list[str]]] = {}
        """Actions that follow the steps from some states to some others."""
        self._failing: dict[str, str] = {}
        self._fields: dict[str, IntField | BoolField] = {**callbacks.fields}
        self._used: list[Any] = []
        self.never: list[Branch] = [*table.never_taken]

    def system(self) -> type[ClosedSystem]:
        """Return the closed system."""
        claims = {self._words.fresh(f"claim_{n}"): c for n, c in enumerate(self._claims.items(), 1)}
        marked = {name: self._claim(name, one) for name, one in claims.items()}
        if self._table.final:
            marked["ends"] = terminal("it ends in final states only")
            self._write_claim("ends", self._in(self._table.final))
        if self._table.unreachable:
            names = ", ".join(map(repr, self._table.unreachable))
            marked["reached"] = sometimes(f"every state is reached, also {names}")
            self._write_claim("reached", "False")
        self._source.append("def never(self) -> bool:\n    return False\n")
        rows = self._rows()
        made = self._functions({name: one.place for name, (_, one) in claims.items()})
        own = (*self._watching, *self._steps_watched, *self._failing.values())
        watches = {name: made[name] for name in own}
        members: dict[str, Any] = {
            "STATES": self._table.states,
            "INITIAL": self._table.initial,
            "TERMINAL": self._table.final,
            "ROWS": tuple(rows),
            "IS_READ": True,
            "__module__": __name__,
            "never": made["never"],
            **self._fields,
            **self._callbacks.functions(self._used),
            **watches,
        }
        machine = type(_class_name(self._table), (Machine,), members)
        triggers = dict.fromkeys(row.trigger for row in rows if not row.is_ignored)
        steps = tuple(Step(self._attribute, one) for one in triggers)
        system = {name: mark(made[name]) for name, mark in marked.items()}
        system |= {
            "__module__": __name__,
            "__qualname__": f"<read from {self._table.oracle.name}>",
            "STEPS": steps,
            self._attribute: machines(machine),
            "UNREAD": {
                f"{self._attribute}.{field}": "callbacks of the machine keep it"
                for field in self._fields
            },
        }
        return type(f"{_class_name(self._table)}Alone", (ClosedSystem,), system)

    # Rows

    def _rows(self) -> list[Row]:
        found: dict[Any, list[str]] = {}
        known: set[Any] = set()
        for path in self._table.found.paths:
            if path.fired.kind in ("taken", "broken"):
                row = self._row(path, known)
                if row is not None:
                    found.setdefault(row, []).append(self._table.name(path.source))
        rows = [Row(k[0], tuple(dict.fromkeys(s)), *k[1:]) for k, s in found.items()]
        rows += [self._row_never(branch) for branch in self.never]
        if not rows:
            rows = [Ignore(self._words.fresh("nothing"), self._table.states, None, "no transition")]
        return rows

    def _row(self, path: Path, known: set[Any]) -> tuple[Any, ...] | None:
        compiled: dict[str, bool] = {}
        free: list[tuple[str, bool]] = []
        spoken: list[str] = []
        for guard, answer in path.asked:
            name = self._words.callback(guard)
            spoken.append(name if answer else f"not {name}")
            if not self._callbacks.is_compiled(guard):
                free.append((name, answer))
            elif compiled.setdefault(name, answer) != answer:
                return None  # no run goes here: a compiled guard answers alike all along
            else:
                self._used.append(guard)
        actions = self._callbacks.compiled_actions(path.fired.callbacks)
        self._used += actions
        is_staying = self._table.stays(path) or path.fired.kind == "broken"
        dest = STAY if is_staying else self._table.name(path.fired.dest)
        after = (
            *map(self._words.callback, actions),
            *self._raised(path),
            *(self._watching if dest is not STAY else ()),
            *(
                watch
                for watch, (first, then) in self._steps_watched.items()
                if self._table.name(path.source) in first and dest in then
            ),
        )
        when = " and ".join(name if held else f"not {name}" for name, held in compiled.items())
        same = (path.source, path.trigger, dest, when, after)
        if same in known:
            return None  # other answers that lead to the same
        known.add(same)
        because = f"{path.trigger}{' if ' * bool(spoken)}{' and '.join(spoken)}"
        if free:
            trigger = self._words.variant(path.trigger, tuple(free))
        else:
            trigger = self._words.trigger(path.trigger)
        return trigger, dest, when or None, after, because

    def _raised(self, path: Path) -> list[str]:
        """An action that fails, where the library raises an error."""
        if path.fired.kind != "broken":
            return []
        name = self._failing.get(path.fired.error)
        if name is None:
            name = self._failing[path.fired.error] = self._words.fresh("raise_error")
            told = f"{path.trigger!r} raises {path.fired.error}"
            self._source.append(f"def {name}(self) -> None:\n    assert False, {told!r}\n")
        return [name]

    def _row_never(self, branch: Branch) -> Row:
        sources = [
            name
            for configuration, name in self._table.found.names.items()
            if branch.source in self._table.covered(configuration)
        ]
        trigger = self._words.fresh(f"{self._words.trigger(branch.trigger)}_behind_others")
        return Row(trigger, tuple(sources), STAY, "never", None, f"{branch}")

    # Claims

    def _in(self, states: Sequence[str], owner: str = "") -> str:
        place = owner or f"self.{self._attribute}.state"
        if len({*states}) == len(self._table.states):
            return "True"
        return " or ".join(f"{place} == {one!r}" for one in states) or "False"

    def _meant(self, text: str, name: str) -> list[str]:
        """The states that a name in a claim means: one, or all in which an inner one is active."""
        table = self._table
        if name in table.passed:
            raise CannotRead(
                f"the claim {text!r} names the state {name!r}, which an event may enter and leave "
                f"again before it is over, where no claim looks; claim something of another state"
            )
        declared = {state.name for state in table.oracle.states}
        meant = [
            shown
            for configuration, shown in table.found.names.items()
            if name in table.covered(configuration)
        ]
        if not meant and name not in declared:
            raise CannotRead(
                f"the claim {text!r} names the state {name!r}, which {table.oracle.name} has not; "
                f"it has {', '.join(sorted({*table.states, *declared}))}"
            )
        return meant

    def _claim(self, name: str, claim: tuple[str, Claim]) -> Any:
        text, what = claim
        if what.holds is not None:
            states = [state for state in self._table.states if what.holds(state)]
            self._write_claim(name, self._in(states))
            return always(text) if what.kind == "always" else sometimes(text)
        meant = [self._meant(text, state) for state in what.states]
        if what.kind == "never":
            inside = self._in([one for states in meant for one in states])
            self._write_claim(name, f"not ({inside})")
            return always(text)
        if what.kind == "never_follows":
            seen = self._watch_step(name, meant[0], meant[1])
            self._write_claim(name, f"{seen} == 0")
            return always(text)
        seen = self._watch(name, meant if what.kind == "happens" else meant[:1])
        if what.kind == "happens":
            self._write_claim(name, f"{seen} == {len(meant)}")
            return sometimes(text)
        self._write_claim(name, f"{seen} == 1 or not ({self._in(meant[1])})")
        return always(text)

    def _watch(self, name: str, stages: list[list[str]]) -> str:
        """Count how many stages were entered in their order; return what reads the count."""
        field, watch = self._words.fresh(f"seen_by_{name}"), self._words.fresh(f"watch_{name}")
        start = int(self._table.initial in stages[0])
        self._fields[field] = IntField(len(stages), start)
        self._watching.append(watch)
        lines = [f"def {watch}(self) -> None:"]
        for number, states in enumerate(stages):
            word = "elif" if number else "if"
            inside = self._in(states, "self.state")
            lines.append(f"    {word} self.{field} == {number} and ({inside}):")
            lines.append(f"        self.{field} = {number + 1}")
        self._source.append("\n".join(lines) + "\n")
        return f"self.{self._attribute}.{field}"

    def _watch_step(self, name: str, first: list[str], then: list[str]) -> str:
        """Note a step from some states to others; return what reads the note."""
        field, watch = self._words.fresh(f"seen_by_{name}"), self._words.fresh(f"watch_{name}")
        self._fields[field] = IntField(1)
        self._steps_watched[watch] = first, then
        self._source.append(f"def {watch}(self) -> None:\n    self.{field} = 1\n")
        return f"self.{self._attribute}.{field}"

    def _functions(self, places: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
        """Translate functions, and keep their text where the compiler looks for it; `places`: where
        the claims stand that some of them are made of.
        """
        text = "\n".join(self._source)
        file = f"<claims about {self._table.oracle.name} {next(_texts)}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        names: dict[str, Any] = {"__name__": __name__}
        exec(compile(text, file, "exec"), names)  # noqa: S102  # names and numbers of a table
        for owner in self._table.oracle.owners[:1]:
            stand_for(file, 0, class_place(owner if isinstance(owner, type) else type(owner)))
        for name, place in places.items():
            stand_for(file, names[name].__code__.co_firstlineno, place)
        return names

    def _write_claim(self, name: str, text: str) -> None:
        self._source.append(f"def {name}(self) -> bool:\n    return {text}\n")
