"""Asks another library's machine, in its own code, what a trigger does in each of its states.

An oracle wraps a machine of one library. It fires a trigger in a given configuration (the set of
states that are active at a time) with no callback called and every guard answered by the caller, so
the library itself says which transition is chosen and where nested and parallel states lead. Each
way of answering is tried, which gives the table.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from epochgate.errors import UsageError

CONFIGURATIONS_MAX = 5000
"""With parallel states there is one for each combination."""
PATHS_MAX = 4096
"""How many ways of answering the guards one trigger may have in one configuration."""

Configuration = Hashable
Literal = tuple[Any, bool]
"""A guard as the library holds it, a name or a function, and the answer that is wanted."""


class CannotRead(UsageError):
    """A machine of another library cannot be read."""


@dataclass(frozen=True, eq=False)
class Branch:
    """One transition as its owner wrote it; compared by identity."""

    trigger: str
    source: str
    dest: str | None
    """None for an internal transition."""
    conditions: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.trigger}: {self.source} -> {self.dest or 'stays'}"


@dataclass
class Fired:
    """The effect of a trigger in a configuration, for one way of answering.

    `kind` is taken; held, when guards let nothing happen; ignored; refused, with an error of the
    library; or broken, where a transition itself raises.
    """

    kind: str
    dest: Configuration
    branches: tuple[Branch, ...] = ()
    callbacks: tuple[tuple[str, Any], ...] = ()
    """Phase (prepare, before, exit, enter, after) and callback, in the order of calls."""
    error: str = ""
    entered: tuple[str, ...] = ()
    """States that were entered, where they may have been left again in the course of it."""


@dataclass(frozen=True)
class Validator:
    """A callback that stops an event by an exception; it may pass or not, as a guard does."""

    func: Any


@dataclass(frozen=True)
class StateOf:
    """A state as declared; nested ones have full names."""

    name: str
    is_final: bool = False


class Oracle(Protocol):
    """A machine of another library."""

    name: str
    states: list[StateOf]
    triggers: list[str]
    branches: list[Branch]
    owners: list[Any]
    """The objects whose methods names of guards and callbacks mean, the first that has it."""
    hidden: list[str]
    """Automatic triggers that are left out."""
    notes: list[str]
    others: list[Any]
    """Callbacks that run outside of transitions."""
    is_queued: bool

    def configuration_of(self, real: Any) -> Configuration:
        """Return the configuration that a real object is in."""

    def initial(self) -> Configuration:
        """Return the configuration of a fresh machine."""

    def fire(self, source: Configuration, trigger: str, ask: Ask) -> Fired:
        """Fire a trigger with guards answered by `ask`."""

    def active(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the full names of the innermost active states."""

    def start_in(self, state: str) -> Configuration | None:
        """Return the configuration that entering this state leads to; None if it is not known."""

    def parents(self, state: str) -> tuple[str, ...]:
        """Return the full names of the states around this one."""


class Ask:
    """Answers the guards of one firing: first as told, then that each holds.

    A guard that is asked twice answers alike, unless callbacks ran in between.
    """

    def __init__(self, told: Sequence[bool] = ()) -> None:
        self._told = told
        self.asked: list[Literal] = []
        self._known: dict[Hashable, bool] = {}

    def __call__(self, guard: Any) -> bool:
        """Return whether the guard holds."""
        key = guard if isinstance(guard, Hashable) else id(guard)
        if key not in self._known:
            number = len(self.asked)
            self._known[key] = self._told[number] if number < len(self._told) else True
            self.asked.append((guard, self._known[key]))
        return self._known[key]

    def forget(self) -> None:
        """Let every guard answer freely again: something ran that may have changed it."""
        self._known.clear()


@dataclass(frozen=True)
class Path:
    """One way through a trigger: the answers that guards gave, in order, and what came of it."""

    source: Configuration
    trigger: str
    asked: tuple[Literal, ...]
    fired: Fired


def paths(oracle: Oracle, source: Configuration, trigger: str) -> Iterator[Path]:
    """Yield each way of answering the guards of a trigger in a configuration.

    Raises CannotRead when there are too many.
    """
    waiting: list[tuple[bool, ...]] = [()]
    count = 0
    while waiting:
        told = waiting.pop()
        ask = Ask(told)
        fired = oracle.fire(source, trigger, ask)
        count += 1
        if count > PATHS_MAX:
            where = " + ".join(oracle.active(source))
            raise CannotRead(
                f"{oracle.name}: the guards of {trigger!r} in {where!r} can answer in more than "
                f"{PATHS_MAX} ways; give the trigger fewer transitions there, or join guards"
            )
        yield Path(source, trigger, tuple(ask.asked), fired)
        answers = [answer for _, answer in ask.asked]
        waiting += [(*answers[:n], not answers[n]) for n in range(len(told), len(answers))]


@dataclass
class Explored:
    """Everything that a machine can do: `names` of configurations in the order of discovery."""

    oracle: Oracle
    initial: Configuration
    names: dict[Configuration, str] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)
    reachable: set[Configuration] = field(default_factory=set)


def explore(oracle: Oracle) -> Explored:
    """Follow all triggers from the initial configuration, then from states that none leads to.

    Raises CannotRead when there is too much of it.
    """
    with quiet():
        return _explored(oracle)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries from logging each trigger that is refused."""
    loggers = [logging.getLogger(name) for name in ("transitions", "statemachine")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _explored(oracle: Oracle) -> Explored:
    found = Explored(oracle, oracle.initial())
    _follow(found, found.initial)
    found.reachable = {*found.names}
    for state in oracle.states:
        inside = {one for configuration in found.names for one in _covered(oracle, configuration)}
        if state.name not in inside:
            start = oracle.start_in(state.name)
            if start is not None:
                _follow(found, start)
    return found


def _covered(oracle: Oracle, configuration: Configuration) -> Iterator[str]:
    for state in oracle.active(configuration):
        yield state
        yield from oracle.parents(state)


def _follow(found: Explored, start: Configuration) -> None:
    oracle = found.oracle
    waiting = [start]
    _name(found, start)
    while waiting:
        source = waiting.pop(0)
        for trigger in oracle.triggers:
            for path in paths(oracle, source, trigger):
                found.paths.append(path)
                dest = path.fired.dest
                if dest not in found.names:
                    _name(found, dest)
                    waiting.append(dest)


def _name(found: Explored, configuration: Configuration) -> None:
    if configuration in found.names:
        return
    if len(found.names) >= CONFIGURATIONS_MAX:
        raise CannotRead(
            f"{found.oracle.name}: its states combine in more than {CONFIGURATIONS_MAX} ways; "
            f"read the machines of its parallel parts one by one"
        )
    name = plain = " + ".join(found.oracle.active(configuration)) or "nothing"
    number = 1
    while name in found.names.values():
        number += 1
        name = f"{plain} ({number})"  # of the same states, with another memory of earlier ones
    found.names[configuration] = name


def called(callback: Callable[..., Any] | str | Any) -> str:
    """Return a word for a callback or guard."""
    function = getattr(callback, "func", callback)  # of a partial, or of a validator
    if isinstance(function, str):
        return function.rpartition(".")[2]
    name = getattr(function, "__name__", None) or type(callback).__name__
    code = getattr(function, "__code__", None)
    if name == "<lambda>" and code is not None:
        return f"lambda_{code.co_firstlineno}"
    return str(name)
