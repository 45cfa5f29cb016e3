"""Machines of the library `transitions` as an oracle: core, nested, queued, locked and async ones.

Works on a shallow copy whose states and events are copies too; lists of callbacks and conditions
are those of the machine itself, which is not changed. The library is not imported here.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from enum import Enum
from typing import Any

from epochgate.fsm.existing.oracle import Ask, Branch, CannotRead, Configuration, Fired, StateOf


def is_machine(given: object) -> bool:
    """Return true for a machine of `transitions`, of any of its classes."""
    return any(
        kind.__name__ == "Machine" and kind.__module__.split(".")[0] == "transitions"
        for kind in type(given).__mro__
    )


class Model:
    """Stands for the user's object: it has a state and nothing else."""


class Nothing:
    """Takes every call, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None


class TransitionsOracle:
    """A machine of `transitions`. `with_automatic` keeps the triggers `to_<state>`."""

    def __init__(self, machine: Any, *, with_automatic: bool = False) -> None:
        model = machine.models[0] if machine.models else None
        self.owners = [] if model is None else [model]
        self.name = type(model if model is not None else machine).__name__
        self.notes: list[str] = []
        self.others: list[Any] = [*machine.finalize_event, *machine.on_exception]
        self.is_queued = bool(machine.has_queue)
        self._is_nested = hasattr(machine, "trigger_event")
        self._attribute = machine.model_attribute
        self._separator = machine.state_cls.separator if self._is_nested else ""
        self._machine, self._ask = machine, Ask()
        self._phases: dict[int, str] = {}
        self._taken: list[Any] = []
        self._called: list[tuple[str, Any]] = []
        self._probe = self._copied(machine)
        self._model = Model()
        self.states = [*self._states(self._probe.states, "")]
        names = {state.name for state in self.states}
        events = self._event_names(self._probe)
        self.hidden = [
            one
            for one in events
            if machine.auto_transitions and not with_automatic and one[:3] == "to_"
            if one[3:] in names
        ]
        self.triggers = [one for one in events if one not in self.hidden]
        self._branch_of = {
            id(transition): branch
            for transition, branch in self._declared(self._probe.events, self._probe.states, "")
        }
        self.branches = [b for b in self._branch_of.values() if b.trigger in self.triggers]
        self._start = self._frozen(self._initial_value(machine))

    # The copy

    def _copied(self, machine: Any) -> Any:
        probe = object.__new__(type(machine))
        vars(probe).update(vars(machine))
        vars(probe).update(
            models=[],
            states=OrderedDict((n, self._copied_state(s)) for n, s in machine.states.items()),
            scoped=probe,
            prefix_path=[],
            _stack=[],
            _next_scope=None,
            _transition_queue=deque(),
            _on_exception=[],
            machine_context=[],
            model_context_map=defaultdict(list),
            model_graphs=defaultdict(Nothing),
        )
        vars(probe)["events"] = OrderedDict(
            (name, self._copied_event(event, probe)) for name, event in machine.events.items()
        )
        is_async = inspect.iscoroutinefunction(type(machine).callbacks)
        self._phases[id(machine.prepare_event)] = "prepare"
        self._phases[id(machine.before_state_change)] = "before"
        self._phases[id(machine.after_state_change)] = "after"
        self._phases[id(machine.on_final)] = "enter"
        vars(probe).update(_async_parts(self) if is_async else _parts(self))
        return probe

    def _copied_state(self, state: Any) -> Any:
        one = copy.copy(state)
        self._phases[id(one.on_enter)] = "enter"
        self._phases[id(one.on_exit)] = "exit"
        if getattr(one, "on_final", None) is not None:
            self._phases[id(one.on_final)] = "enter"
        if getattr(one, "timeout", 0):
            one.timeout = 0  # no timer is to start here
            self.others += one.on_timeout
            self.notes.append(
                f"{state.name!r} has a time-out: what its callbacks do may happen at any time, as "
                f"any trigger may"
            )
        if getattr(one, "retries", 0):
            one.retries = 0
            self.notes.append(f"{state.name!r} counts its retries: the limit is not in the table")
        if hasattr(one, "states"):
            one.states = OrderedDict((n, self._copied_state(s)) for n, s in one.states.items())
            one.events = {n: self._copied_event(e, None) for n, e in one.events.items()}
        return one

    @staticmethod
    def _copied_event(event: Any, probe: Any) -> Any:
        one = copy.copy(event)
        one.transitions = defaultdict(list, {n: [*found] for n, found in event.transitions.items()})
        if probe is not None:
            one.machine = probe
        return one

    def _states(self, states: Any, prefix: str) -> Iterator[StateOf]:
        for name, state in states.items():
            full = f"{prefix}{name}"
            yield StateOf(full, bool(state.final))
            yield from self._states(getattr(state, "states", {}), full + self._separator)

    def _event_names(self, scope: Any) -> list[str]:
        inner = (self._event_names(one) for one in getattr(scope, "states", {}).values())
        own = getattr(scope, "events", {})
        return [*dict.fromkeys(itertools.chain(own, *inner))]

    def _declared(self, events: Any, states: Any, prefix: str) -> Iterator[tuple[Any, Branch]]:
        for trigger, event in events.items():
            for transition in itertools.chain(*event.transitions.values()):
                dest = transition.dest
                conditions = tuple((one.func, bool(one.target)) for one in transition.conditions)
                source = f"{prefix}{transition.source}"
                full = None if dest is None else f"{prefix}{dest}"
                yield transition, Branch(trigger, source, full, conditions)
        for name, state in states.items():
            inner = getattr(state, "states", {})
            if inner or getattr(state, "events", {}):
                yield from self._declared(state.events, inner, f"{prefix}{name}{self._separator}")

    # Configurations

    def _initial_value(self, machine: Any) -> Any:
        initial = machine.initial
        if initial is None:
            if not machine.models:
                raise CannotRead(
                    f"{self.name}: the machine has no initial state and no model; "
                    f"give it `initial=`, or add a model"
                )
            return getattr(machine.models[0], self._attribute)
        if self._is_nested and isinstance(initial, Enum):
            initial = self._separator.join(self._probe._get_enum_path(initial))
        if self._is_nested and isinstance(initial, str):
            initial = self._probe._resolve_initial([], initial.split(self._separator))
        self._probe.set_state(initial, self._model)
        return getattr(self._model, self._attribute)

    def initial(self) -> Configuration:
        """Return the configuration of a fresh machine."""
        return self._start

    def _frozen(self, value: Any) -> Configuration:
        if isinstance(value, list | tuple):
            return tuple(self._frozen(one) for one in value)
        if isinstance(value, Enum):
            if self._is_nested:
                return self._separator.join(self._probe._get_enum_path(value))
            return value.name
        return value if isinstance(value, str) else str(getattr(value, "name", value))

    def _thawed(self, configuration: Any) -> Any:
        if isinstance(configuration, tuple):
            return [self._thawed(one) for one in configuration]
        return self._probe.get_state(configuration).value if not self._is_nested else configuration

    def active(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the full names of the innermost active states."""
        if isinstance(configuration, tuple):
            return tuple(name for one in configuration for name in self.active(one))
        return (str(configuration),)

    def parents(self, state: str) -> tuple[str, ...]:
        """Return the full names of the states around this one."""
        if not self._separator:
            return ()
        parts = state.split(self._separator)
        return tuple(self._separator.join(parts[:number]) for number in range(1, len(parts)))

    def start_in(self, state: str) -> Configuration | None:
        """Return the configuration that entering this state leads to."""
        if not self._is_nested:
            return state
        return self._frozen(self._probe._resolve_initial([], state.split(self._separator)))

    def configuration_of(self, real: Any) -> Configuration:
        """Return the configuration that a real model is in."""
        return self._frozen(getattr(real, self._attribute))

    # Firing

    def fire(self, source: Configuration, trigger: str, ask: Ask) -> Fired:
        """Fire a trigger with guards answered by `ask`."""
        self._ask, self._taken, self._called = ask, [], []
        model, probe = self._model, self._probe
        vars(model)[self._attribute] = self._thawed(source)
        vars(probe).update(scoped=probe, prefix_path=[], _stack=[], _next_scope=None)
        kind, error = "", ""
        try:
            if self._is_nested:
                result = _driven(probe.trigger_event(model, trigger))
            else:
                result = _driven(probe.events[trigger].trigger(model))
        except Exception as raised:  # noqa: BLE001  # the library's, or of a class of the user's
            error = f"{type(raised).__name__}: {raised}"
            is_refusal = type(raised).__name__ == "MachineError" and not self._taken
            kind = "refused" if is_refusal else "broken"
        else:
            kind = "taken" if result else "held" if ask.asked else "ignored"
        dest = source
        if kind in ("taken", "broken"):
            dest = self._frozen(getattr(model, self._attribute))
        branches = tuple(self._branch_of[id(one)] for one in self._taken)
        return Fired(kind, dest, branches, tuple(self._called), error)

    def note_callbacks(self, callbacks: Any, event_data: Any) -> None:
        """Note callbacks that would be called now, and which transition is taken."""
        transition = event_data.transition
        phase = self._phases.get(id(callbacks))
        if phase is None and transition is not None:
            if callbacks is transition.prepare:
                phase = "prepare"
            elif callbacks is transition.before:
                phase = "before"
            elif callbacks is transition.after:
                phase = "after"
            elif isinstance(callbacks, itertools.chain):
                is_first = not (self._taken and self._taken[-1] is transition)
                phase = "before" if is_first else "after"
        if phase == "before" and not (self._taken and self._taken[-1] is transition):
            self._taken.append(transition)
        if phase is None:
            return  # those that finalise an event
        found = [*callbacks]
        if found and phase == "prepare":
            self._ask.forget()
        self._called += [(phase, one) for one in found]

    def answer(self, guard: Any) -> Any:
        """Return what answers for a guard."""
        return lambda *arguments, **named: self._ask(guard)


def _parts(oracle: TransitionsOracle) -> dict[str, Any]:
    return {
        "callbacks": oracle.note_callbacks,
        "callback": lambda callback, event_data: None,
        "resolve_callable": lambda guard, event_data: oracle.answer(guard),
        "_process": lambda trigger: trigger(),
    }


def _async_parts(oracle: TransitionsOracle) -> dict[str, Any]:
    async def callbacks(funcs: Any, event_data: Any) -> None:
        oracle.note_callbacks(funcs, event_data)

    async def nothing(*arguments: Any, **named: Any) -> None:
        return None

    async def await_all(callables: Any) -> list[Any]:
        results: list[Any] = []
        for one in callables:
            results.append(await one())
            if not results[-1]:
                break  # the others change nothing any more
        return results

    async def processed(trigger: Any, model: Any = None) -> Any:
        return await trigger()

    return {
        "callbacks": callbacks,
        "callback": nothing,
        "resolve_callable": lambda guard, event_data: oracle.answer(guard),
        "await_all": await_all,
        "cancel_running_transitions": nothing,
        "process_context": processed,
        "_process_async": processed,
    }


def _driven(result: Any) -> Any:
    """The value of a coroutine that waits for nothing, or the value that it is."""
    if not inspect.iscoroutine(result):
        return result
    try:
        result.send(None)
    except StopIteration as ended:
        return ended.value
    result.close()
    raise CannotRead("a coroutine of the machine waits for something although no callback runs")
