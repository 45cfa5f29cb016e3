"""Closed systems: machines with nothing outside, whose every possible step is listed.

What stands outside a production system (processes, wires, users, time) is the environment, and made
of machines too. A port is wired to one of them, whose methods of the same names handle its effects;
a `Step` lets an instance fire a trigger by itself. A step can be taken when a row of the trigger,
other than an ignoring one, holds; it then runs to completion as an event does in production: the
inner queue, the effects, and what the environment fires meanwhile, each as an event of its own.
Properties are methods of the system over what its machines hold.
"""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from epochgate.errors import UsageError
from epochgate.fsm import choosing, declared, shared
from epochgate.fsm.bounded import BoundedDeque, Full
from epochgate.fsm.choosing import Tape, WayClosed, initially as initially, start_conditions
from epochgate.fsm.claims import (
    Fairness as Fairness,
    Property as Property,
    Step as Step,
    always as always,
    each_step as each_step,
    eventually as eventually,
    eventually_always as eventually_always,
    implements as implements,
    infinitely_often as infinitely_often,
    leads_to as leads_to,
    sometimes as sometimes,
    strongly_fair as strongly_fair,
    terminal as terminal,
    weakly_fair as weakly_fair,
)
from epochgate.fsm.declaration import expand
from epochgate.fsm.derived import derived
from epochgate.fsm.errors import EndlessStep
from epochgate.fsm.machine import INSTANCE_NAMES, Machine
from epochgate.fsm.ports import Emitted
from epochgate.fsm.reserved import expect_free
from epochgate.fsm.run_to_completion import Call, Waiting
from epochgate.fsm.source import names_in
from epochgate.fsm.subset.reading import fields_read
from epochgate.fsm.system import System

__all__ = [
    "ClosedSystem",
    "ConstantRefused",
    "Environment",
    "Fairness",
    "Property",
    "Step",
    "always",
    "each_step",
    "eventually",
    "eventually_always",
    "implements",
    "infinitely_often",
    "initially",
    "leads_to",
    "sometimes",
    "strongly_fair",
    "terminal",
    "weakly_fair",
]


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
        peers = vars(cls).get("PEERS", {})
        expect_free(cls, dict.fromkeys(peers, "a peer"), INSTANCE_NAMES)
        for name, machine in peers.items():
            setattr(cls, name, property(partial(_peer, machine)))
        super().__init_subclass__(unchecked=unchecked)

    def one_of(self, options: Iterable[int]) -> int:
        """Choose one of these numbers: a range, a tuple, or `n for n in range(...) if ...`. A check
        goes on with each of them; there has to be one.
        """
        tape: Tape = self.system.tape
        return tape.value(options)


def _peer(name: str, machine: Machine) -> Machine:
    index = machine.index if machine.system.MACHINES[name].INDEX else ()
    return cast("Machine", machine.system.instance(name, index))


class ClosedSystem(System):
    """The base of closed systems.

    STEPS lists what can happen; WIRING maps "machine.port" to the machine that handles its effects
    (same index sets); CONSTANTS holds the bounds that fields name. DERIVED maps constants that
    are not set to what they follow from: sums, differences, products and quotients of the others,
    `max(a, b)` and `min(a, b)`. A field in the class body of the system, `turn: int = Int("last")`,
    is shared: any machine may write `self.system.turn`.
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

    @classmethod
    def _declare(cls) -> None:
        missing = {name: 0 for name in cls.DERIVED if name not in cls.CONSTANTS}
        if missing:
            cls.CONSTANTS = {**cls.CONSTANTS, **missing}
        shared.declare(cls, Environment)
        super()._declare()
        declared.check(cls)

    def __init__(self, **constants: int) -> None:
        super().__init__(**self.evaluated(constants))
        for wire, target in self.WIRING.items():
            name, port = wire.split(".")
            self.bind(name, port, _Wired(self, target, len(self.MACHINES[name].INDEX)))

    tape = Tape()
    """What is chosen in the step that is taken."""

    def _queues(self) -> tuple[deque[Emitted], deque[Waiting], deque[Call]]:
        self._bounded = BoundedDeque(), BoundedDeque(), BoundedDeque()
        return self._bounded

    def take(self, step: Step, machine: Machine, tape: Tape | None = None) -> None:
        """Take a step of an instance, to completion, in the way of the tape, or in the first one.

        Raises TransitionRefused or AssertionError as the machines do, EndlessStep when they
        trigger each other without end, WayClosed, NothingToChoose and TooManyChoices.
        """
        self.tape = Tape() if tape is None else tape
        arguments = [self.tape.value(each) for each in self.options(step)]
        if arguments and not self.is_enabled(step, machine, *arguments):
            raise WayClosed
        for queue in self._bounded:
            queue.clear()
            queue.room = self.CALLS_MAX
        try:
            getattr(machine, step.trigger)(*arguments)
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

    def claims(self) -> tuple[Property, ...]:
        """All properties; one for each member where that is claimed, but of claims about steps."""
        found: list[Property] = []
        for one in self.properties():
            is_each = one.each and one.kind != "each_step"
            size = self.constants[self.INDEX_SETS[one.each]] if is_each else 0
            found += map(one.of, range(size)) if is_each else [one]
        return tuple(found)

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
        mapped = set[str]()
        for claim in cls.properties():
            if claim.kind == "implements":
                mapped |= names_in(getattr(cls, claim.name))
                continue
            methods += [(None, name) for name in (claim.name, claim.then) if name]
            methods += [(None, name) for name in cls.measured(claim)]
        methods += [(None, name) for name in start_conditions(cls)]
        read = fields_read(cls.SUBSET, methods)
        return [
            f"{name}.{field}"
            for name, machine in cls.MACHINES.items()
            for field in machine.FIELDS
            if (machine, field) not in read and field not in mapped
            if f"{name}.{field}" not in cls.UNREAD
        ]

    @classmethod
    def excuse(cls, machine: str, trigger: str, because: str) -> str:
        """Tell why this row need not be taken; empty if it should be."""
        name = f"{machine}.{trigger}"
        return cls.UNTAKEN.get(f"{name}: {because}", cls.UNTAKEN.get(name, ""))

    @classmethod
    def excuse_from(cls, machine: str, trigger: str, state: str, because: str) -> str:
        """Tell why this row need not be taken in this state; empty if it should be."""
        return cls.excuse(machine, f"{trigger} from {state}", because)

    def step_instances(self) -> list[tuple[Step, Machine]]:
        """Each step with each instance that may take it, in the order of STEPS and indices."""
        return [(step, machine) for step in self.STEPS for machine in self.instances(step.machine)]

    def options(self, step: Step) -> list[Sequence[int]]:
        """Return what a step chooses each of its arguments from."""
        return [choosing.options(over, self.constants) for over in step.over]

    def is_enabled(self, step: Step, machine: Machine, *given: int) -> bool:
        """Return whether a row of the step's trigger holds now, other than an ignoring one; without
        arguments, whether one does with some of what the step may choose.
        """
        if step.over and not given:
            ways = itertools.product(*self.options(step))
            return any(self.is_enabled(step, machine, *way) for way in ways)
        return any(
            all(machine.bound_callback(name)(*given) == held for name, held in row.literals)
            for row in machine.ROWS
            if row.trigger == step.trigger and not row.is_ignored
            if machine.state in expand(machine.STATES, row)
        )


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
