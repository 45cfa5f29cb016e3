"""Systems: arrays of machine instances over index sets, which trigger each other and share
constants.

`gateway: dict[tuple[int, int], Gateway] = machines(Gateway)` declares one instance for each pair in
the machine's INDEX; one index gives a list, none a single machine. A production system and a closed
one for the checker hold the same machines; they differ in the constants and in the handlers of the
effects.

`run_to_completion` says how its events run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.faults import Faults, is_kept
from epochgate.fsm.fields import FIELD_KINDS, ArrayField, FieldSpec, IntField, starts_differ
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect
from epochgate.fsm.reserved import expect_free, methods
from epochgate.fsm.run_to_completion import Running
from epochgate.fsm.subset import Subset, check_system

INSTANCE_ATTRIBUTES = (
    "constants",
    "observer",
    "journal",
    "emitted",
    "inner_queue",
    "outer_queue",
    "open_queue",
    "_bounded",
    "_handlers",
)


@dataclass(frozen=True)
class MachineField:
    """The declaration of one machine in a system's class body."""

    machine: type[Machine]


def machines(machine: type[Machine]) -> Any:
    """Declare an attribute of a system that holds all instances of one machine."""
    return MachineField(machine)


class System(Running):
    """All machines of one protocol instance; INDEX_SETS maps an index name to the constant with its
    size.
    """

    INDEX_SETS: ClassVar[dict[str, str]] = {}
    CONSTANTS: ClassVar[dict[str, int]] = {}
    MACHINES: ClassVar[dict[str, type[Machine]]] = {}
    IS_SEPARATED: ClassVar[bool] = True
    """Whether no machine changes another but by a trigger or an effect: see `subset.separation`."""
    NOTES: ClassVar[tuple[str, ...]] = ()
    """What each result of a check has to say about the system."""
    FAULT: ClassVar[DeclarationError | None] = None
    """Why the class was refused, if it was kept all the same: see `epochgate.fsm.faults`."""
    IS_CLOSED: ClassVar[bool] = False
    """Whether a check chooses what its machines begin with, where there are several values."""
    SUBSET: ClassVar[Subset]
    """The methods of the machines as typed trees."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        try:
            expect_free(cls, _named(cls), INSTANCE_ATTRIBUTES)
            own = {n: f.machine for n, f in vars(cls).items() if isinstance(f, MachineField)}
            for name in own:
                delattr(cls, name)
            cls.MACHINES = {**cls.MACHINES, **own}
            cls.FAULT = None
            cls._declare()
        except DeclarationError as error:
            if not is_kept(cls, error):
                raise

    @classmethod
    def _declare(cls) -> None:
        """Check the class."""
        faults = Faults()
        for machine in cls.MACHINES.values():
            with faults.kept():
                if machine.FAULT is not None:
                    raise machine.FAULT
        faults.tell()
        cls._check_names()
        cls.SUBSET = check_system(cls)

    @classmethod
    def _check_names(cls) -> None:
        def fault(name: str, text: str) -> DeclarationError:
            return DeclarationError(f"{cls.__module__}.{cls.__name__}.{name}: {text}")

        reserved = {*INSTANCE_ATTRIBUTES}.union(*map(dir, cls.__bases__))
        if unknown := sorted(set(cls.INDEX_SETS.values()) - set(cls.CONSTANTS)):
            raise fault("INDEX_SETS", f"{unknown} are not in CONSTANTS")
        for name in (*cls.CONSTANTS, *cls.MACHINES):
            if name in reserved or (name in cls.CONSTANTS and name in cls.MACHINES):
                raise fault(name, "the name is taken; choose another")
        for name, machine in cls.MACHINES.items():
            if unknown := [i for i in machine.INDEX if i not in cls.INDEX_SETS]:
                raise fault(name, f"index sets {unknown} are not in INDEX_SETS")
            cls._check_starts(name, machine)
            arrays = [(n, f) for n, f in machine.FIELDS.items() if isinstance(f, ArrayField)]
            if unknown := [f"{n} over {f.over!r}" for n, f in arrays if not cls._sizes(f)]:
                sizes = "".join(
                    f"; for one item per {index!r}, write {size!r}"
                    for index, size in cls.INDEX_SETS.items()
                )
                raise fault(
                    name,
                    f"arrays {unknown} are over something that is not in CONSTANTS: name the "
                    f"constant that is their length{sizes}",
                )
        if len(set(cls.MACHINES.values())) != len(cls.MACHINES):
            raise fault("MACHINES", "one class stands under two names; use an index set instead")

    @classmethod
    def _check_starts(cls, name: str, machine: type[Machine]) -> None:
        for field, spec in machine.FIELDS.items():
            if not isinstance(spec, IntField) or not spec.wraps or isinstance(spec.bound, int):
                continue
            if spec.bound not in cls.CONSTANTS:
                raise DeclarationError(
                    f"{cls.__module__}.{cls.__name__}.{name}: {field} wraps at {spec.bound!r}, "
                    f"which is not in CONSTANTS; add it, since it wraps wherever the machine runs"
                )
        differing = [n for n, field in machine.FIELDS.items() if starts_differ(field)]
        if len(machine.STARTS) > 1:
            differing.insert(0, "state")
        if differing and not cls.IS_CLOSED:
            raise DeclarationError(
                f"{cls.__module__}.{cls.__name__}.{name}: {', '.join(differing)} may begin with "
                f"one of several values, which only a closed system chooses; give one value here, "
                f"or make the class a ClosedSystem"
            )

    @classmethod
    def _sizes(cls, field: FieldSpec) -> bool:
        """Return whether the system knows how long an array is, and the arrays inside it."""
        if not isinstance(field, ArrayField):
            return True
        return field.over in cls.CONSTANTS and cls._sizes(field.item)

    def __init__(self, **constants: int) -> None:
        """Make every machine in its initial state; `constants` replace those of CONSTANTS. Raises
        DeclarationError when one of them is not declared there.
        """
        if self.FAULT is not None:
            raise self.FAULT
        known = {**self.CONSTANTS}
        if unknown := sorted(set(constants) - set(known)):
            raise DeclarationError(
                f"{type(self).__name__} has no constant {unknown}; it has {sorted(known)}"
            )
        self.constants = {**known, **constants}
        for name, value in self.constants.items():
            setattr(self, name, value)
        super().__init__(
            kind
            for machine in self.MACHINES.values()
            for kinds in machine.EFFECTS.values()
            for kind in kinds.values()
        )
        for name, machine in self.MACHINES.items():
            setattr(self, name, self._instances(machine))

    def _instances(self, machine: type[Machine]) -> Any:
        sizes = [self.constants[self.INDEX_SETS[index]] for index in machine.INDEX]
        made = {i: machine(self, i) for i in itertools.product(*map(range, sizes))}
        if not sizes:
            return made[()]
        return [made[i,] for i in range(sizes[0])] if len(sizes) == 1 else made

    def instances(self, name: str) -> Iterator[Machine]:
        """All instances of the machine that the attribute `name` holds, in index order."""
        held = getattr(self, name)
        if isinstance(held, Machine):
            yield held
        else:
            yield from held.values() if isinstance(held, dict) else held

    def instance(self, name: str, index: tuple[int, ...]) -> Machine:
        """The machine `name` at `index`; KeyError or IndexError when there is none."""
        held = getattr(self, name)
        if not index:
            return held  # type: ignore[no-any-return]  # attributes made by `machines` are machines
        return held[index[0]] if len(index) == 1 else held[index]  # type: ignore[no-any-return]

    def bind(self, name: str, port: str, handler: object) -> None:
        """Let `handler` carry out the effects of a port: the method named like the message gets the
        machine's index, then the arguments.

        Raises DeclarationError when `handler` lacks a method for one of the port's messages;
        KeyError when there is no such machine or port.
        """
        machine = self.MACHINES[name]
        kinds = machine.EFFECTS[port]
        if missing := [message for message in kinds if not hasattr(handler, message)]:
            raise DeclarationError(
                f"{handler!r} cannot listen to {name}.{port}: it has no method {missing}"
            )
        for message, kind in kinds.items():
            self._handlers[kind] = getattr(handler, message)

    def machine_of(self, effect: Effect) -> str:
        """The name of the machine that an effect has left; StopIteration if there is none."""
        return next(
            name
            for name, machine in self.MACHINES.items()
            if machine.EFFECTS.get(effect.port, {}).get(effect.message) is type(effect)
        )

    def values(self) -> dict[str, dict[str, Any]]:
        """The state and fields of every machine as plain data, keyed by machine name and index."""
        return {
            name + "".join(f"[{i}]" for i in machine.index): machine.values()
            for name in self.MACHINES
            for machine in self.instances(name)
        }


def _named(cls: type) -> dict[str, str]:
    """Tell what the names in a class body stand for."""
    own = vars(cls).items()
    return {
        **methods(cls),
        **{name: "a machine" for name, member in own if isinstance(member, MachineField)},
        **{name: "a field" for name, member in own if isinstance(member, FIELD_KINDS)},
    }
