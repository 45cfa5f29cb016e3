"""Closed systems: machines with nothing outside, whose every possible step is listed.

What stands outside a production system (processes, wires, users, time) is the environment, and made
of machines too. A port is wired to one of them, whose methods of the same names handle its effects;
a `Step` lets an instance fire a trigger by itself. A step can be taken when a row of the trigger,
other than an ignoring one, holds; it then runs to completion as an event does in production: the
inner queue, the effects, and what the environment fires meanwhile, each as an event of its own.
Properties are methods of the system over what its machines hold.
"""

from __future__ import annotations

import ast
import inspect
import operator
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from epochgate.errors import UsageError
from epochgate.fsm.choosing import initially as initially, start_conditions
from epochgate.fsm.claims import (
    Fairness as Fairness,
    Property as Property,
    Step as Step,
    always as always,
    each_step as each_step,
    eventually as eventually,
    eventually_always as eventually_always,
    infinitely_often as infinitely_often,
    leads_to as leads_to,
    sometimes as sometimes,
    strongly_fair as strongly_fair,
    terminal as terminal,
    weakly_fair as weakly_fair,
)
from epochgate.fsm.declaration import expand
from epochgate.fsm.errors import DeclarationError, EndlessStep
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Emitted
from epochgate.fsm.rows import ANY
from epochgate.fsm.run_to_completion import Call, Waiting
from epochgate.fsm.source import class_place
from epochgate.fsm.subset.reading import fields_read
from epochgate.fsm.system import System


class ConstantRefused(UsageError):
    """A constant of a closed system was given a value that it cannot have."""


CALLS_MAX = 1000
"""How many waiting triggers, effects and events, of each, a step may have; with more it is endless.
"""


class Environment(Machine):
    """A machine that stands for something outside the protocol: a process, a wire, a user, time.

    A trigger of the protocol that it fires is an event of its own, processed with its effects once
    the present one is complete. Machines of the environment fire each other's triggers at once, and
    may write each other's fields.

    PEERS maps names to machines of the system, so that surroundings may be shared by systems whose
    machines have other names: with {"served": "batch_plan"}, `self.served` is the instance of
    `batch_plan` that has this one's index, or the only one if it has none.
    """

    IS_ENVIRONMENT = True

    def __init_subclass__(cls, unchecked: bool = False) -> None:
        for name, machine in vars(cls).get("PEERS", {}).items():
            setattr(cls, name, property(partial(_peer, machine)))
        super().__init_subclass__(unchecked=unchecked)


def _peer(name: str, machine: Machine) -> Machine:
    index = machine.index if machine.system.MACHINES[name].INDEX else ()
    return cast("Machine", machine.system.instance(name, index))


class ClosedSystem(System):
    """The base of closed systems.

    STEPS lists what can happen; WIRING maps "machine.port" to the machine that handles its effects
    (same index sets); CONSTANTS holds the bounds that fields name. DERIVED maps constants that
    are not set to what they follow from: sums, differences, products and quotients of the others,
    `max(a, b)` and `min(a, b)`.
    """

    STEPS: ClassVar[tuple[Step, ...]] = ()
    FAIRNESS: ClassVar[tuple[Fairness, ...]] = ()
    """What is demanded of several steps together, beside what each of STEPS says of itself."""

    WIRING: ClassVar[dict[str, str]] = {}
    DERIVED: ClassVar[dict[str, str]] = {}
    CALLS_MAX: ClassVar[int] = CALLS_MAX
    UNTAKEN: ClassVar[dict[str, str]] = {}
    """`machine.trigger`, or `machine.trigger: because` for one row -> why a check need not take it;
    with `machine.trigger from state` in their place -> why not in this state.
    """

    UNREAD: ClassVar[dict[str, str]] = {}
    """`machine.field` -> why it stays, although nothing in the system reads it."""

    IS_CLOSED: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        missing = {name: 0 for name in cls.DERIVED if name not in cls.CONSTANTS}
        if missing:
            cls.CONSTANTS = {**cls.CONSTANTS, **missing}
        super().__init_subclass__()
        cls._check_steps()

    @classmethod
    def _check_steps(cls) -> None:
        def fault(text: str) -> DeclarationError:
            file, line = class_place(cls)
            place = f"{file}:{line}: " if line else ""
            return DeclarationError(f"{place}{cls.__module__}.{cls.__name__}: {text}")

        for step in cls.STEPS:
            machine = cls.MACHINES.get(step.machine)
            if machine is None:
                raise fault(
                    f"a step names the machine {step.machine!r}, but there are {[*cls.MACHINES]}"
                )
            if step.trigger not in machine.triggers():
                raise fault(
                    f"{step.machine!r} has no trigger {step.trigger!r} to take a step by; it has "
                    f"{', '.join(machine.triggers())}"
                )
            if names := machine.trigger_parameters(step.trigger):
                raise fault(
                    f"{step.machine}.{step.trigger} takes {', '.join(names)}, but a step "
                    f"gets no arguments; let a machine of the surroundings fire it"
                )
        cls._check_fairness(fault)
        cls._check_step_claims(fault)
        known = {
            name
            for machine_name, machine in cls.MACHINES.items()
            for row in machine.ROWS
            for place in ("", *(f" from {state}" for state in expand(machine.STATES, row)))
            for name in (
                f"{machine_name}.{row.trigger}{place}",
                f"{machine_name}.{row.trigger}{place}: {row.because}",
            )
        }
        for name in cls.UNTAKEN:
            if name not in known:
                raise fault(f"UNTAKEN names {name!r}, which is no trigger or row of a machine")
        cls._check_peers(fault)
        cls._check_wires(fault)

    @classmethod
    def _check_fairness(cls, fault: Callable[[str], DeclarationError]) -> None:
        known = {step.name: cls.MACHINES[step.machine] for step in cls.STEPS}
        for one in cls.FAIRNESS:
            meant = known if one.steps == (ANY,) else one.steps
            if not meant:
                raise fault("FAIRNESS names no step; name some, or ANY")
            for name in meant:
                if name not in known:
                    raise fault(f"FAIRNESS names the step {name!r}, but there are {[*known]}")
                sets = known[name].INDEX
                if one.each and one.each not in sets:
                    raise fault(
                        f"FAIRNESS is demanded for each {one.each!r}, but {name!r} is a step of a "
                        f"machine with INDEX {sets!r}; leave it out, or `each`"
                    )

    @classmethod
    def _check_step_claims(cls, fault: Callable[[str], DeclarationError]) -> None:
        for claim in (p for p in cls.properties() if p.kind == "each_step"):
            given = (claim.each,) if claim.each else ()
            own = getattr(cls, claim.name).__code__.co_varnames[1 : 1 + len(given)]
            if claim.each and (claim.each not in cls.INDEX_SETS or own != given):
                raise fault(
                    f"{claim.name} is claimed for each {claim.each!r}: that is one of the index "
                    f"sets {[*cls.INDEX_SETS]}, and the first parameter is named for it"
                )
            for name in cls.measured(claim):
                method = getattr(cls, name, None)
                code = method.__code__ if inspect.isfunction(method) else None
                if code is None or code.co_varnames[1 : code.co_argcount] != given:
                    raise fault(
                        f"{claim.name} takes {name!r}, but {cls.__name__} has no method of that "
                        f"name with the parameters (self{', ' + claim.each if given else ''}), "
                        f"which would say what it was before the step"
                    )

    @classmethod
    def _check_peers(cls, fault: Callable[[str], DeclarationError]) -> None:
        for machine in cls.MACHINES.values():
            for name, target in machine.PEERS.items():
                told = f"PEERS of {machine.__name__} lead {name!r} to {target!r}"
                if target not in cls.MACHINES:
                    raise fault(f"{told}, which is no machine")
                if cls.MACHINES[target].INDEX not in ((), machine.INDEX):
                    raise fault(
                        f"{told}, which has INDEX {cls.MACHINES[target].INDEX!r}: name one "
                        f"that has INDEX {machine.INDEX!r}, or none"
                    )

    @classmethod
    def _check_wires(cls, fault: Callable[[str], DeclarationError]) -> None:
        for wire, target in cls.WIRING.items():
            name, _, port = wire.partition(".")
            if name not in cls.MACHINES or port not in cls.MACHINES[name].PORTS:
                raise fault(f"WIRING names {wire!r}, which is no port of a machine")
            if target not in cls.MACHINES:
                raise fault(f"WIRING leads {wire!r} to {target!r}, which is no machine")
            if not cls.MACHINES[target].IS_ENVIRONMENT:
                raise fault(
                    f"WIRING leads {wire!r} to {target!r}, but effects leave the protocol: let "
                    f"{cls.MACHINES[target].__name__} be a subclass of Environment"
                )
            sets, taken = cls.MACHINES[name].INDEX, cls.MACHINES[target].INDEX
            if sets != taken:
                raise fault(
                    f"WIRING leads {wire!r}, a port of each {' and '.join(sets) or 'machine'}, to "
                    f"{target!r}, which has INDEX {taken!r}: give it INDEX = {sets!r}, and let it "
                    f"fire triggers of a machine that all of them share"
                )
            for message, names in cls.MACHINES[name].PORTS[port].port.messages().items():
                cls._check_handler(f"{wire}.{message}", cls.MACHINES[target], message, names, fault)
        cls.SUBSET.check_separation()  # of the handlers too

    @classmethod
    def _check_handler(
        cls,
        message: str,
        machine: type[Machine],
        name: str,
        given: tuple[str, ...],
        fault: Callable[[str], DeclarationError],
    ) -> None:
        told = f"{machine.__name__} handles {message}({', '.join(given)})"
        if name in machine.triggers():
            taken = machine.trigger_parameters(name)
            if len(taken) > len(given):
                raise fault(f"{told} by a trigger that takes {', '.join(taken)}")
            return
        if not inspect.isfunction(getattr(machine, name, None)):
            raise fault(f"{told}, but has no trigger or method {name!r}")
        handler = cls.SUBSET.tree(machine, name)
        if len(handler.parameters) != len(given):
            taken = handler.parameters
            raise fault(f"{told} by a method that takes {', '.join(taken) or 'nothing'}")

    def __init__(self, **constants: int) -> None:
        super().__init__(**self.evaluated(constants))
        for wire, target in self.WIRING.items():
            name, port = wire.split(".")
            self.bind(name, port, _Wired(self, target, len(self.MACHINES[name].INDEX)))

    def _queues(self) -> tuple[deque[Emitted], deque[Waiting], deque[Call]]:
        self._bounded = BoundedDeque(), BoundedDeque(), BoundedDeque()
        return self._bounded

    def take(self, step: Step, machine: Machine) -> None:
        """Take a step of an instance, to completion.

        Raises TransitionRefused or AssertionError as the machines do, and EndlessStep when they
        trigger each other without end.
        """
        for queue in self._bounded:
            queue.clear()
            queue.room = self.CALLS_MAX
        try:
            getattr(machine, step.trigger)()
            self.settle()
        except Full:
            raise EndlessStep(self.CALLS_MAX) from None
        finally:
            for queue in self._bounded:
                queue.room = sys.maxsize

    @classmethod
    def evaluated(cls, constants: dict[str, int]) -> dict[str, int]:
        """Return these constants with the derived ones; ConstantRefused for what cannot be set."""
        settable = [name for name in cls.CONSTANTS if name not in cls.DERIVED]
        for name, value in constants.items():
            if name in cls.DERIVED:
                raise ConstantRefused(
                    f"{name} of {cls.__name__} follows from the others as {cls.DERIVED[name]}; "
                    f"set {', '.join(settable)} instead"
                )
            if name not in settable:
                raise ConstantRefused(
                    f"{cls.__name__} has no constant {name!r}; it has {', '.join(settable)}"
                )
            if value < 0:
                raise ConstantRefused(f"{name}={value}: a constant of a system is at least 0")
        for index, name in cls.INDEX_SETS.items():
            if constants.get(name, 1) < 1:
                raise ConstantRefused(f"{name}={constants[name]}: there is at least one {index}")
        found = {**constants}
        for name, rule in cls.DERIVED.items():
            found[name] = derived(rule, {**cls.CONSTANTS, **found}, f"{cls.__name__}.{name}")
        return found

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        """All properties, in the order of their declaration."""
        found = []
        for name in dict.fromkeys(n for c in reversed(cls.__mro__) for n in vars(c)):
            tag = getattr(getattr(cls, name, None), "epochgate_property", None)
            if tag is not None:
                found.append(Property(tag[0], name, *tag[1:]))
        return tuple(found)

    @classmethod
    def measured(cls, claim: Property) -> tuple[str, ...]:
        """The methods of the system that give, before a step, the arguments of an each_step."""
        if claim.kind != "each_step":
            return ()
        code = getattr(cls, claim.name).__code__
        first = 2 if claim.each else 1
        return tuple(code.co_varnames[first : code.co_argcount])

    @classmethod
    def unread(cls) -> list[str]:
        """The fields that nothing reads, as `machine.field`, except those in UNREAD.

        Raises DeclarationError for a claim outside the subset.
        """
        methods: list[tuple[type[Machine] | None, str]] = [
            (machine, name)
            for machine in cls.MACHINES.values()
            for row in machine.ROWS
            for name in (*row.conditions, *row.unless, *row.actions)
        ]
        for wire, target in cls.WIRING.items():
            name, _, port = wire.partition(".")
            machine = cls.MACHINES[target]
            messages = cls.MACHINES[name].PORTS[port].port.messages()
            methods += [(machine, one) for one in messages if one not in machine.triggers()]
        for claim in cls.properties():
            methods += [(None, name) for name in (claim.name, claim.then) if name]
            methods += [(None, name) for name in cls.measured(claim)]
        methods += [(None, name) for name in start_conditions(cls)]
        read = fields_read(cls.SUBSET, methods)
        return [
            f"{name}.{field}"
            for name, machine in cls.MACHINES.items()
            for field in machine.FIELDS
            if (machine, field) not in read and f"{name}.{field}" not in cls.UNREAD
        ]

    @classmethod
    def excuse(cls, machine: str, trigger: str, because: str) -> str:
        """Why this row need not be taken; empty if it should be."""
        name = f"{machine}.{trigger}"
        return cls.UNTAKEN.get(f"{name}: {because}", cls.UNTAKEN.get(name, ""))

    @classmethod
    def excuse_from(cls, machine: str, trigger: str, state: str, because: str) -> str:
        """Why this row need not be taken in this state; empty if it should be."""
        return cls.excuse(machine, f"{trigger} from {state}", because)

    def step_instances(self) -> list[tuple[Step, Machine]]:
        """Each step with each instance that may take it, in the order of STEPS and indices."""
        return [(step, machine) for step in self.STEPS for machine in self.instances(step.machine)]

    def is_enabled(self, step: Step, machine: Machine) -> bool:
        """Whether a row of the step's trigger holds now, other than an ignoring one."""
        return any(
            all(bool(getattr(machine, name)()) == expected for name, expected in row.literals)
            for row in machine.ROWS
            if row.trigger == step.trigger and not row.is_ignored
            if machine.state in expand(machine.STATES, row)
        )


class Full(Exception):
    """A queue of a step was given more than it may get in one step."""


class BoundedDeque(deque[Any]):
    """A queue of a closed system; `room` is how many more calls the step may put into it."""

    room = sys.maxsize

    def append(self, item: Any) -> None:
        """Append a call; raises Full."""
        if self.room == 0:
            raise Full
        self.room -= 1
        super().append(item)


class _Wired:
    """Handles the effects of a port by the methods of one machine of the environment."""

    def __init__(self, system: ClosedSystem, target: str, index_size: int) -> None:
        self._system, self._target, self._size = system, target, index_size

    def __getattr__(self, message: str) -> Callable[..., None]:
        """Make the handler of one message; it cuts off the machine's index."""
        if not hasattr(self._system.MACHINES[self._target], message):
            raise AttributeError(message)
        system, target, size = self._system, self._target, self._size

        def handle(*effect: Any) -> None:
            getattr(system.instance(target, effect[:size]), message)(*effect[size:])

        return handle


ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def derived(rule: str, constants: dict[str, int], where: str) -> int:
    """Compute a derived constant; DeclarationError for a rule that is no arithmetic of constants.

    >>> derived("C * E + K - 1", {"C": 2, "E": 1, "K": 2}, "wire")
    3
    """

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in constants:
                return constants[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return ARITHMETIC[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=parts) if parts:
                return (max if name == "max" else min)(value(part) for part in parts)
        raise DeclarationError(
            f"{where}: {ast.unparse(node)!r} in {rule!r} is no arithmetic of constants; use "
            f"{', '.join(constants)}, numbers, + - * //, max and min"
        )

    return value(ast.parse(rule, mode="eval").body)
