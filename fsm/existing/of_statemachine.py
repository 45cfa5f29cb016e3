"""Machines of the library `python-statemachine` as an oracle: flat ones and state charts.

An instance is made without its constructor, and its register of callbacks is replaced, so that the
library's own engine selects transitions, exits and enters states. The library is imported from the
module of the machine's class, and by nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from epochgate.fsm.existing.oracle import (
    Ask,
    Branch,
    CannotRead,
    Configuration,
    Fired,
    StateOf,
    Validator,
)

ASKED_MAX = 1000
"""How often one event may ask for guards; more is a loop of transitions without events."""
BEGIN = "(begin)"
"""A trigger of our own: from the first state to those that transitions without events lead to at
once, where their guards hold.
"""
OWN_EVENTS = ("done.state", "done_state_", "__")
"""How events begin that the library raises in the course of others."""
RAISED_EVENTS = ("error.", "done.invoke.")
"""How events begin that come of a callback's exception or of a service: at any time."""
NOT_FIRED = (BEGIN, *RAISED_EVENTS)
"""How triggers of the table begin that no user sends."""
ALIASES = ("error_", "done_invoke_")
"""How other names of these begin."""


def is_machine(given: object) -> bool:
    """Return true for a machine of `python-statemachine`, or a class of such machines."""
    kind = given if isinstance(given, type) else type(given)
    return any(
        one.__name__ == "StateChart" and one.__module__.split(".")[0] == "statemachine"
        for one in kind.__mro__
    )


class Stopped(Exception):
    """A validator does not let an event pass."""


class Nothing:
    """Takes every call, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None


class Register:
    """Stands for the library's register of callbacks: notes calls, and lets guards be answered."""

    has_async_callbacks = False

    def __init__(self, oracle: StatemachineOracle) -> None:
        self._oracle = oracle

    def __contains__(self, key: str) -> bool:
        """Say that there is no callback, where the library asks before it starts a service."""
        return False

    def call(self, key: str, *arguments: Any, **named: Any) -> list[Any]:
        """Note the callbacks of a group."""
        self._oracle.note(key)
        return []

    def all(self, key: str, *arguments: Any, **named: Any) -> bool:
        """Return whether the guards of a transition hold."""
        return self._oracle.holds(key)

    def visit(self, *arguments: Any, **named: Any) -> None:
        """Visit no callback."""


class StatemachineOracle:
    """A machine of `python-statemachine`, or a class of such machines."""

    def __init__(self, machine: Any) -> None:
        kind: Any = machine if isinstance(machine, type) else type(machine)
        self.name = kind.__name__
        if kind._abstract:
            raise CannotRead(f"{self.name} has no states; name a class that declares some")
        self.owners = [machine]
        if not isinstance(machine, type):
            self.owners += [machine.model, *machine.active_listeners]
        self.notes: list[str] = []
        self.hidden: list[str] = []
        self.others: list[Any] = []
        self.is_queued = True
        self._kind, self._ask, self._asked = kind, Ask(), 0
        self._taken: list[Any] = []
        self._called: list[tuple[str, Any]] = []
        self._states = dict(self._nested(kind.states, ""))
        self._full = {id(state): full for full, state in self._states.items()}
        self.states = [StateOf(full, bool(s.final)) for full, s in self._states.items()]
        events = [str(one) for one in kind._events]
        self.triggers = [one for one in events if not one.startswith((*OWN_EVENTS, *ALIASES))]
        self._branch_of: dict[int, Branch] = {}
        self._groups: dict[str, tuple[str, Any, list[Any]]] = {}
        self._entered: list[str] = []
        for full, state in self._states.items():
            self._add_state(full, state)
        self.branches = [*self._branch_of.values()]
        self._start = self._started()

    def _nested(self, states: Iterable[Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for state in states:
            full = f"{prefix}{state.id}"
            yield full, state
            yield from self._nested(state.states, f"{full}.")

    def _add_state(self, full: str, state: Any) -> None:
        for phase, grouper in (("enter", state.enter), ("exit", state.exit)):
            self._groups[grouper.key] = phase, full, [*grouper]
        if any(not spec.is_convention for spec in state.invoke):
            self.notes.append(f"{full!r} starts a service: what it sends may come at any time")
        for transition in state.transitions:
            events = [str(one) for one in transition.events]
            conditions = tuple(
                (spec.func, spec.expected_value is not False) for spec in self._sorted(transition)
            )
            dests = " + ".join(self._full.get(id(one), one.id) for one in transition.targets)
            trigger = " or ".join(events) or "(without event)"
            branch = Branch(trigger, full, dests or None, conditions)
            self._branch_of[id(transition)] = branch
            # A transition that only initiates a compound state is no row of its own.
            for phase in ("before", "on", "after"):
                grouper = getattr(transition, phase)
                self._groups[grouper.key] = phase, transition, [*grouper]
            self._groups[transition.validators.key] = (
                "validator",
                transition,
                [*transition.validators],
            )
            self._groups[transition.cond.key] = "guard", transition, self._sorted(transition)
            if transition.initial:
                del self._branch_of[id(transition)]

    @staticmethod
    def _sorted(transition: Any) -> list[Any]:
        return sorted(transition.cond, key=lambda spec: spec.priority)

    # Configurations

    def _machine(self) -> Any:
        kind = self._kind
        machine: Any = object.__new__(kind)
        chart = next(one for one in kind.__mro__ if one.__name__ == "StateChart")
        library = sys.modules[chart.__module__]
        vars(machine).update(
            model=library.Model(),
            history_values={},
            state_field="state",
            start_configuration_values=[*kind.start_configuration_values],
            _callbacks=Register(self),
            _listeners={},
        )
        vars(machine)["_config"] = machine._build_configuration()
        vars(machine)["_engine"] = library.SyncEngine(machine)
        machine._engine._invoke_manager = Nothing()
        return machine

    def _started(self) -> Configuration:
        ask = Ask()
        machine = self._begun(ask)
        if not ask.asked:
            return self._frozen(machine)
        self.triggers.insert(0, BEGIN)
        return self._frozen(self._begun(Ask((False,) * ASKED_MAX)))

    def _begun(self, ask: Ask) -> Any:
        self._ask, self._asked, self._taken, self._called = ask, 0, [], []
        self._entered = []
        machine = self._machine()
        machine._engine.activate_initial_state()
        return machine

    def _frozen(self, machine: Any) -> Configuration:
        values = tuple(one.value for one in machine.configuration)
        active = tuple(full for full, state in self._states.items() if state.value in values)
        history = tuple(
            (name, tuple(self._full_of(one) for one in states))
            for name, states in sorted(machine.history_values.items())
        )
        return active, history

    def _full_of(self, state: Any) -> str:
        return next(full for full, one in self._states.items() if one.value == state.value)

    def initial(self) -> Configuration:
        """Return the configuration of a fresh machine."""
        return self._start

    def active(self, configuration: Any) -> tuple[str, ...]:
        """Return the full names of the innermost active states."""
        return tuple(full for full in configuration[0] if self._states[full].is_atomic)

    def parents(self, state: str) -> tuple[str, ...]:
        """Return the full names of the states around this one."""
        parts = state.split(".")
        return tuple(".".join(parts[:number]) for number in range(1, len(parts)))

    def start_in(self, state: str) -> Configuration | None:
        """Return the configuration that a flat state is; None for a nested one."""
        one = self._states[state]
        return ((state,), ()) if one.parent is None and one.is_atomic else None

    def configuration_of(self, real: Any) -> Configuration:
        """Return the configuration that a real machine is in."""
        return self._frozen(real)

    # Firing

    def fire(self, source: Any, trigger: str, ask: Ask) -> Fired:
        """Fire a trigger with guards answered by `ask`."""
        if trigger == BEGIN:
            return self._fire_begin(source, ask)
        machine = self._machine()
        active, history = source
        values = [self._states[full].value for full in active]
        machine.current_state_value = values[0] if len(values) == 1 else _as_set(machine, values)
        for name, states in history:
            machine.history_values[name] = [self._states[full] for full in states]
        if any(self._states[full].final and "." not in full for full in active):
            machine._engine.running = False  # as it is once the machine has ended
        self._ask, self._asked, self._taken, self._called = ask, 0, [], []
        self._entered = []
        kind, error = "", ""
        try:
            machine.send(trigger, delay=0)
        except Stopped:
            kind = "held"
        except Exception as raised:  # noqa: BLE001  # the library's, or of a class of the user's
            error = f"{type(raised).__name__}: {raised}"
            is_refusal = type(raised).__name__ == "TransitionNotAllowed" and not self._taken
            kind = ("held" if ask.asked else "refused") if is_refusal else "broken"
        else:
            kind = "taken" if self._taken else "held" if ask.asked else "ignored"
        dest = self._frozen(machine) if kind in ("taken", "broken") else source
        branches = tuple(self._branch_of[id(one)] for one in self._taken)
        return Fired(kind, dest, branches, tuple(self._called), error, tuple(self._entered))

    def _fire_begin(self, source: Configuration, ask: Ask) -> Fired:
        dest = self._frozen(self._begun(ask)) if source == self._start else source
        kind = "held" if dest == source else "taken"
        branches = tuple(self._branch_of[id(one)] for one in self._taken if kind == "taken")
        return Fired(kind, dest, branches, tuple(self._called), "", tuple(self._entered))

    def note(self, key: str) -> None:
        """Note the callbacks of a group, and which transition is taken."""
        phase, transition, specs = self._groups.get(key, ("", None, []))
        if phase == "validator":
            for spec in specs:
                if not self._ask(Validator(spec.func)):
                    raise Stopped
        elif phase == "before" and id(transition) in self._branch_of:
            self._taken.append(transition)
        if phase == "enter":
            self._entered.append(transition)  # of this phase, the state
        if phase in ("before", "on", "after", "enter", "exit"):
            known = [spec.func for spec in specs if self._is_there(spec)]
            self._called += [(phase.replace("on", "exit"), one) for one in known]
            if known:
                self._ask.forget()  # transitions without events ask again afterwards

    def _is_there(self, spec: Any) -> bool:
        if not spec.is_convention:
            return True
        return any(callable(getattr(one, str(spec.func), None)) for one in self.owners)

    def holds(self, key: str) -> bool:
        """Return whether the guards of a transition hold."""
        self._asked += 1
        if self._asked > ASKED_MAX:
            raise CannotRead(
                f"{self.name}: transitions without an event follow each other without end where "
                f"their guards hold; give one of them an event"
            )
        specs = self._groups.get(key, ("", None, []))[2]
        return all(self._ask(spec.func) == (spec.expected_value is not False) for spec in specs)


def _as_set(machine: Any, values: list[Any]) -> Any:
    """A set of states as the library keeps one."""
    return type(machine.configuration_values)(values)
