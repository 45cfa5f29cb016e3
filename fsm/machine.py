"""The base of all machines: a table of rows over a small record of typed fields.

A subclass states its INDEX sets, STATES, INITIAL state, TERMINAL states, fields, ports and ROWS;
guards and actions are ordinary methods in the checked subset of Python, to which creating the class
holds them unless it says `unchecked=True`, as a class typed at a prompt has to. Creating the class
validates it and gives it one method per trigger. Firing a trigger evaluates guards first, so a
refused trigger changes nothing; then the state changes, then the actions run. What actions fire and
tell the outside waits, as `run_to_completion` says. Triggers are fired on the event queue's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from epochgate.fsm.declaration import Declaration, expand, parameters
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.faults import is_kept
from epochgate.fsm.fields import (
    FIELD_KINDS,
    FieldSpec,
    Fifo,
    IntField,
    wrapping,
)
from epochgate.fsm.naming import Names, named, names_in
from epochgate.fsm.ports import Effect, PortField, effect_kinds
from epochgate.fsm.reserved import expect_free, methods
from epochgate.fsm.rows import Row
from epochgate.fsm.run_to_completion import Outlet, fired_by
from epochgate.fsm.steps import Outcome, Steps, Table, steps_of
from epochgate.fsm.subset import check_machine
from epochgate.fsm.transitions_backed import dispatch_table

if TYPE_CHECKING:
    from epochgate.fsm.system import System


Trigger = Callable[..., Outcome]
INSTANCE_NAMES = ("state", "system", "index")


class Machine:
    """One state machine, or an array of them over the index sets that INDEX names."""

    INDEX: ClassVar[tuple[str, ...]] = ()
    STATES: ClassVar[tuple[str, ...]] = ()
    INITIAL: ClassVar[str] = ""
    STARTS: ClassVar[tuple[str, ...]] = ()
    """The states in which an instance of a closed system may begin; INITIAL alone if empty."""
    TERMINAL: ClassVar[tuple[str, ...]] = ()
    ROWS: ClassVar[tuple[Row, ...]] = ()
    TRIGGERS: ClassVar[tuple[str, ...]] = ()
    """The alphabet of its own rows and of those of its bases, which are refused if they have none
    here."""
    FIELDS: ClassVar[dict[str, FieldSpec]] = {}
    NAMES: ClassVar[dict[str, Names]] = {}
    """The constants by which the values of a field are shown, where it declares some."""
    PORTS: ClassVar[dict[str, PortField]] = {}
    EFFECTS: ClassVar[dict[str, dict[str, type[Effect]]]] = {}
    """The classes of the effects that leave the machine, by port and message."""

    IS_ENVIRONMENT: ClassVar[bool] = False
    """Whether the machine stands for something outside the protocol: see `Environment`."""
    PEERS: ClassVar[dict[str, str]] = {}
    """Names by which the machine speaks of others: see `Environment`."""
    FAULT: ClassVar[DeclarationError | None] = None
    """Why the class was refused, if it was kept all the same: see `epochgate.fsm.faults`."""
    IS_SHARED: ClassVar[bool] = False
    """Whether it holds what all machines of a closed system share: see `epochgate.fsm.shared`."""
    WRITES_OTHERS: ClassVar[bool] = False
    """Whether the machine may write the fields of others, as one does that renumbers identities."""
    IS_CHECKED: ClassVar[bool] = True
    """Whether guards and actions were held to the checked subset."""
    IS_READ: ClassVar[bool] = False
    """Whether the rows are those of a machine of another library: the first that holds is taken,
    and states that cannot be reached or left are reported instead of refused."""

    state: str
    system: Any

    def __init_subclass__(cls, unchecked: bool = False) -> None:
        super().__init_subclass__()
        own = list(vars(cls).items())
        specs = {n: f for n, f in own if isinstance(f, FIELD_KINDS)}
        ports = {n: f for n, f in own if isinstance(f, PortField)}
        named = {
            **methods(cls),
            **dict.fromkeys(specs, "a field"),
            **dict.fromkeys(ports, "a port"),
        }
        try:
            expect_free(cls, named, INSTANCE_NAMES)
        except DeclarationError as error:
            if not is_kept(cls, error):
                raise
            return
        cls.IS_CHECKED = not unchecked
        cls.FAULT = None
        for name in (*specs, *ports):
            delattr(cls, name)
        for name, spec in specs.items():
            if isinstance(spec, IntField) and spec.wraps:
                setattr(cls, name, wrapping(name, spec))
        cls.FIELDS = {**cls.FIELDS, **specs}
        kept = {field: names for field, names in cls.NAMES.items() if field not in specs}
        cls.NAMES = {**kept, **names_in(cls.__name__, cls.__module__, specs)}
        cls.PORTS = {**cls.PORTS, **ports}
        cls.EFFECTS = {
            name: effect_kinds(cls.__name__, cls.INDEX, name, field.port)
            for name, field in cls.PORTS.items()
        }
        if not cls.ROWS:
            return
        try:
            cls._declare()
        except DeclarationError as error:
            if not is_kept(cls, error):
                raise

    @classmethod
    def _declare(cls) -> None:
        """Check the class, and give it a method for each trigger."""
        Declaration(cls).check()
        # A trigger that only the base's table names would still run the base's rows.
        inherited = {row.trigger for base in cls.__mro__[1:] for row in vars(base).get("ROWS", ())}
        table: Table = {
            **{trigger: {} for trigger in sorted(inherited)},
            **dispatch_table(cls.STATES, cls.INITIAL, cls.expanded_rows()),
        }
        cls.TRIGGERS = tuple(table)
        for trigger, steps in steps_of(cls, table).items():
            setattr(cls, trigger, _trigger(cls, trigger, steps))
        if cls.IS_CHECKED:
            check_machine(cls)

    def __init__(self, system: System | None = None, index: tuple[int, ...] = ()) -> None:
        """Raises TypeError without a system, which makes its machines itself."""
        if system is None:
            name = type(self).__name__
            raise TypeError(
                f"{name}() has no system: a machine is made by the system that it stands in. "
                f"Declare one, `class Shop(System): {name.lower()}: {name} = machines({name})`, "
                f"and take `Shop().{name.lower()}`"
            )
        self.system = system
        self.index = index
        self.state = self.INITIAL
        for name, position in zip(self.INDEX, index, strict=True):
            setattr(self, name, position)
        for name, field in self.FIELDS.items():
            setattr(self, name, field.fresh(system.constants))
        for name, kinds in self.EFFECTS.items():
            setattr(self, name, Outlet(kinds, index, system.emitted))

    @classmethod
    def expanded_rows(cls) -> list[tuple[str, Row]]:
        """Every row once for each of its source states, in table order."""
        return [(source, row) for row in cls.ROWS for source in expand(cls.STATES, row)]

    @classmethod
    def triggers(cls) -> tuple[str, ...]:
        """The machine's alphabet, in order of first appearance."""
        return tuple(dict.fromkeys(row.trigger for row in cls.ROWS))

    @classmethod
    def accepted(cls, state: str) -> tuple[str, ...]:
        """The triggers that some row takes in `state`."""
        rows = cls.expanded_rows()
        return tuple(dict.fromkeys(row.trigger for source, row in rows if source == state))

    @classmethod
    def trigger_parameters(cls, trigger: str) -> tuple[str, ...]:
        """The names of a trigger's arguments: the longest list that one of its callbacks takes."""
        names = [
            parameters(getattr(cls, name))
            for row in cls.ROWS
            if row.trigger == trigger
            for name in (*row.conditions, *row.unless, *row.actions)
        ]
        return max(names, key=len, default=())

    def bound_callback(self, name: str) -> Callable[..., Any]:
        """The guard or action `name` of this instance, cutting a trigger's arguments to those it
        takes.
        """
        function = getattr(type(self), name)
        count = len(parameters(function))
        return lambda *arguments: function(self, *arguments[:count])

    def values(self) -> dict[str, Any]:
        """The state and all fields as plain data, comparable and printable."""
        found = {"state": self.state, **{n: _plain(getattr(self, n)) for n in self.FIELDS}}
        for field, names in self.NAMES.items():
            found[field] = named(found[field], names)
        return found

    def __repr__(self) -> str:
        position = "".join(f"[{i}]" for i in self.index)
        return f"{type(self).__name__}{position}:{self.state}"


def _plain(value: Any) -> Any:
    if isinstance(value, Fifo):
        return list(value)
    if isinstance(value, set):
        return sorted(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _trigger(cls: type[Machine], trigger: str, steps: Steps) -> Callable[..., Outcome]:
    fire = fired_by(steps, trigger, is_environment=cls.IS_ENVIRONMENT)
    fire.is_trigger = True  # type: ignore[attr-defined]  # `Declaration` and `symmetry` read it
    fire.__module__ = __name__  # like all that is not written in the machine's own class
    fire.__qualname__ = f"{cls.__qualname__}.{trigger}"
    fire.__doc__ = f"Fire {trigger!r}: " + "; ".join(
        dict.fromkeys(row.because for row in cls.ROWS if row.trigger == trigger)
    )
    return fire
