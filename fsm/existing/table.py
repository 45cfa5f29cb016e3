"""The table of a machine that was read: its rows as they were written, and what is wrong in it."""

from __future__ import annotations

import keyword
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from epochgate.fsm.declaration import RESERVED
from epochgate.fsm.existing.oracle import Branch, Configuration, Explored, Literal, Path, called
from epochgate.fsm.machine import Machine


@dataclass(frozen=True)
class ReadRow:
    """The effect of a trigger in some states: `dest` is None where the state is not left."""

    trigger: str
    sources: tuple[str, ...]
    dest: str | None
    guards: tuple[tuple[str, bool], ...]
    actions: tuple[str, ...]
    is_ignored: bool = False

    def __str__(self) -> str:
        guards = " and ".join(name if held else f"not {name}" for name, held in self.guards)
        to = "ignored" if self.is_ignored else f"-> {self.dest or 'stays'}"
        when = f" [{guards}]" if guards else ""
        return f"{self.trigger}: {', '.join(self.sources)} {to}{when}"


class Words:
    """Gives triggers, guards and callbacks names that a method may have, each a name of its own."""

    def __init__(self) -> None:
        self._taken = {*dir(Machine), *RESERVED}
        self._known: dict[Hashable, str] = {}

    def trigger(self, name: str) -> str:
        """Return the name of a trigger."""
        return self._word(("trigger", name), name)

    def variant(self, name: str, answers: tuple[tuple[str, bool], ...]) -> str:
        """Return the name of a trigger where abstracted guards answer so."""
        told = "_and_".join(guard if answer else f"not_{guard}" for guard, answer in answers)
        return self._word(("variant", name, answers), f"{self.trigger(name)}_if_{told}")

    def callback(self, callback: Any) -> str:
        """Return the name of a guard or callback."""
        name = called(callback)
        if isinstance(callback, str) and ("trigger", callback) in self._known:
            name = f"fire_{callback}"
        key = callback if isinstance(callback, Hashable) else id(callback)
        return self._word(("callback", key), name)

    def fresh(self, wanted: str) -> str:
        """Return a name that nothing else has."""
        return self._word((wanted, len(self._known)), wanted)

    def _word(self, key: Hashable, wanted: str) -> str:
        if key not in self._known:
            word = "".join(one if one.isalnum() or one == "_" else "_" for one in wanted)
            word = word.lstrip("_") or "callback"
            if not word.isidentifier():
                word = f"on_{word}"
            plain, number = word, 1
            while word in self._taken or keyword.iskeyword(word):
                number += 1
                word = f"{plain}_" if number == 2 else f"{plain}_{number - 1}"
            self._taken.add(word)
            self._known[key] = word
        return self._known[key]


class ReadTable:
    """The table of a machine that was explored."""

    def __init__(self, found: Explored) -> None:
        self.found, self.oracle = found, found.oracle
        self.words = Words()
        for trigger in self.oracle.triggers:
            self.words.trigger(trigger)
        self._numbers = {id(branch): n for n, branch in enumerate(self.oracle.branches)}

    def name(self, configuration: Configuration) -> str:
        """Return the name of a configuration."""
        return self.found.names[configuration]

    @cached_property
    def states(self) -> tuple[str, ...]:
        """All states; with parallel parts, all combinations of them that occur."""
        order = {state.name: number for number, state in enumerate(self.oracle.states)}
        names = [
            (tuple(order.get(one, 0) for one in self.oracle.active(configuration)), number, name)
            for number, (configuration, name) in enumerate(self.found.names.items())
        ]
        return tuple(name for *_, name in sorted(names))

    @cached_property
    def initial(self) -> str:
        """The state of a fresh machine."""
        return self.name(self.found.initial)

    @cached_property
    def final(self) -> tuple[str, ...]:
        """The states that are declared final."""
        finals = {state.name for state in self.oracle.states if state.is_final}
        return tuple(
            name
            for configuration, name in self.found.names.items()
            if self.oracle.active(configuration)
            if all(
                finals.intersection((one, *self.oracle.parents(one)))
                for one in self.oracle.active(configuration)
            )
        )

    def stays(self, path: Path) -> bool:
        """Return true if a path leaves its state, formally too, as it is."""
        return all(branch.dest is None for branch in path.fired.branches)

    def literals(self, literals: tuple[Literal, ...]) -> tuple[tuple[str, bool], ...]:
        """Return guards by their names, each once."""
        return tuple({self.words.callback(g): answer for g, answer in literals}.items())

    @cached_property
    def rows(self) -> tuple[ReadRow, ...]:
        """The rows as they were written: the first that holds wins."""
        groups: dict[Any, list[Path]] = {}
        for path in self.found.paths:
            if path.fired.kind in ("taken", "ignored") or self._is_moving(path):
                branches = path.fired.branches
                guards = self.literals(tuple(one for b in branches for one in b.conditions))
                dest = None if self.stays(path) else self.name(path.fired.dest)
                key = path.trigger, tuple(map(id, branches)), dest, guards, path.fired.kind
                groups.setdefault(key, []).append(path)
        ordered = sorted(groups.items(), key=lambda item: self._rank(item[1][0]))
        rows: list[ReadRow] = []
        for key, paths in ordered:
            row = self._row(key, paths)
            if rows and replace(row, sources=rows[-1].sources) == rows[-1]:
                row = replace(row, sources=(*dict.fromkeys((*rows.pop().sources, *row.sources)),))
            rows.append(row)
        return tuple(rows)

    @staticmethod
    def _is_moving(path: Path) -> bool:
        return path.fired.kind == "broken" and path.fired.dest != path.source

    def _rank(self, path: Path) -> tuple[int, int, int]:
        branches = path.fired.branches
        number = min((self._numbers.get(id(b), 0) for b in branches), default=0)
        return self.oracle.triggers.index(path.trigger), -len(branches), number

    def _row(self, key: Any, found: list[Path]) -> ReadRow:
        trigger, _, dest, guards, kind = key
        sources = tuple(dict.fromkeys(self.name(path.source) for path in found))
        phases = ("before", "exit", "enter", "after")
        actions = dict.fromkeys(
            self.words.callback(one) for phase, one in found[0].fired.callbacks if phase in phases
        )
        return ReadRow(trigger, sources, dest, guards, tuple(actions), kind == "ignored")

    # What is wrong

    def covered(self, configuration: Configuration) -> Iterator[str]:
        """Yield the name of a configuration, and of each state that is active in it."""
        yield self.found.names[configuration]
        for state in self.oracle.active(configuration):
            yield state
            yield from self.oracle.parents(state)

    @cached_property
    def unreachable(self) -> tuple[str, ...]:
        """The states that no row leads to from the initial one."""
        reached = {one for c in self.found.reachable for one in self.covered(c)} | self.passed
        return tuple(state.name for state in self.oracle.states if state.name not in reached)

    @cached_property
    def passed(self) -> set[str]:
        """The states that an event enters and leaves again before it is over."""
        return {
            state
            for path in self.found.paths
            if path.source in self.found.reachable
            for state in path.fired.entered
            if state not in self.covered(path.fired.dest)
        }

    @cached_property
    def dead(self) -> tuple[str, ...]:
        """The reachable states without a way out that are not declared final."""
        left = {
            path.source
            for path in self.found.paths
            if path.fired.kind in ("taken", "broken") and path.fired.dest != path.source
        }
        return tuple(
            name
            for configuration, name in self.found.names.items()
            if configuration in self.found.reachable
            if configuration not in left and name not in self.final
        )

    @cached_property
    def never_taken(self) -> tuple[Branch, ...]:
        """The transitions that others, earlier or of inner states, always win over."""
        taken = {id(branch) for path in self.found.paths for branch in path.fired.branches}
        explored = {one for c in self.found.names for one in self.covered(c)}
        return tuple(
            branch
            for branch in self.oracle.branches
            if id(branch) not in taken and branch.source in explored
        )

    @cached_property
    def ambiguous(self) -> tuple[tuple[Branch, Branch], ...]:
        """Pairs of transitions with conditions that may both hold: their order decides."""
        groups: dict[tuple[str, str], list[Branch]] = {}
        for branch in self.oracle.branches:
            if branch.conditions and branch not in self.never_taken:
                groups.setdefault((branch.trigger, branch.source), []).append(branch)
        return tuple(
            (first, second)
            for branches in groups.values()
            for first, second in combinations(branches, 2)
            if first.dest != second.dest
            if not {*second.conditions} <= {*first.conditions}  # which says "otherwise"
            if not any((g, not held) in second.conditions for g, held in first.conditions)
        )

    @cached_property
    def broken(self) -> tuple[str, ...]:
        """Return each trigger, with its state and error, that raises an error of the library."""
        found = [
            f"{path.trigger} in {self.name(path.source)}: {path.fired.error}"
            for path in self.found.paths
            if path.fired.kind == "broken"
        ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """State -> the triggers that are refused there, whatever guards answer."""
        refused: dict[str, list[str]] = {}
        for path in self.found.paths:
            if path.fired.kind == "refused":
                refused.setdefault(self.name(path.source), []).append(path.trigger)
        return {state: tuple(dict.fromkeys(names)) for state, names in refused.items()}

    def findings(self) -> list[str]:
        """Return what is suspicious, a line each."""
        words = self.literals
        told = [f"no transition leads to {name!r}" for name in self.unreachable]
        told += [f"{name!r} has no way out, and is not declared final" for name in self.dead]
        told += [
            f"{branch} is never taken: an earlier transition, or one of an inner state, takes "
            f"{branch.trigger!r} first"
            for branch in self.never_taken
        ]
        for first, second in self.ambiguous:
            told.append(
                f"{first} [{_spoken(words(first.conditions))}] and {second} "
                f"[{_spoken(words(second.conditions))}] may both hold: the first is taken"
            )
        return [*told, *(f"it raises: {one}" for one in self.broken)]


def _spoken(literals: tuple[tuple[str, bool], ...]) -> str:
    return " and ".join(name if held else f"not {name}" for name, held in literals)
