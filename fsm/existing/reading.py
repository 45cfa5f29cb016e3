"""Reads a machine of `transitions` or `python-statemachine`, so that it can be checked, drawn and
fuzzed: see docs/existing-machines.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from epochgate.fsm.checker import Result, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.existing import of_statemachine, of_transitions
from epochgate.fsm.existing.callbacks import Callbacks
from epochgate.fsm.existing.claims import Claim
from epochgate.fsm.existing.declared import Writer, drawn
from epochgate.fsm.existing.notes import abstractions, summary
from epochgate.fsm.existing.oracle import CannotRead, Oracle, explore
from epochgate.fsm.existing.table import ReadRow, ReadTable
from epochgate.fsm.machine import Machine

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine


def from_transitions(
    machine: Any,
    *,
    claims: Mapping[str, Claim] | None = None,
    fields: Mapping[str, Any] | None = None,
    automatic: bool = False,
) -> ExistingMachine:
    """Read a machine: a `transitions.Machine` of any kind, an object or class that has one, or a
    class or instance of `python-statemachine`. Neither it nor its model is changed, and no callback
    is called.

    `claims` maps a text to `never`, `always`, `sometimes`, `before` or `happens` of
    `epochgate.fsm.existing`. `fields` names attributes of the model that callbacks alone change,
    with their greatest value or `bool`: guards and callbacks of the checked subset that use them
    are then compiled. `automatic` keeps the triggers `to_<state>` of `transitions`.

    Raises CannotRead.
    """
    oracle = _oracle(machine, automatic)
    return ExistingMachine(oracle, dict(claims or {}), dict(fields or {}))


def read_if_machine(given: Any) -> ExistingMachine | None:
    """Read what a module holds under a name; None where it is nothing of the kind.

    Raises CannotRead.
    """
    if isinstance(given, ExistingMachine):
        return given
    if isinstance(given, FunctionType):
        raise CannotRead(
            f"{given.__name__} is a function; call it in the module, as in "
            f"`machine = {given.__name__}()`, and name what it returns"
        )
    return None if found_machine(given) is None else from_transitions(given)


def found_machine(given: Any) -> Any | None:
    """Return the machine that an object is or holds, or None; a class is made without arguments."""
    if of_statemachine.is_machine(given) or of_transitions.is_machine(given):
        return given
    if isinstance(given, type):
        if not _uses_transitions(given):
            return None
        try:
            given = given()
        except TypeError as error:
            raise CannotRead(
                f"{given.__name__} cannot be made without arguments ({error}); make one in the "
                f"module, and name that"
            ) from error
        return found_machine(given)
    named = getattr(given, "__dict__", {}).items()
    held = {name: one for name, one in named if of_transitions.is_machine(one)}
    if len(held) > 1:
        kind = type(given).__name__
        raise CannotRead(
            f"{kind} has {len(held)} machines, {', '.join(held)}; give one of them, or name it in "
            f"the module, as in `machine = {kind}().{min(held)}`"
        )
    return next(iter(held.values()), None)


def _uses_transitions(kind: type) -> bool:
    """Tell whether a class, or what its methods and their functions name, is of `transitions`."""
    own = {one.__module__.split(".")[0] for one in kind.__mro__}
    waiting: list[Any] = [kind]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        around = one.__mro__ if isinstance(one, type) else (one,)
        if any(_package(base) == "transitions" for base in around):
            return True
        if _package(one) in own:
            waiting += [member for base in around for member in _named(base)]
    return False


def _package(one: Any) -> str:
    return str(getattr(one, "__module__", getattr(one, "__name__", ""))).split(".")[0]


def _named(one: Any) -> list[Any]:
    """All that a function names, or that is in a class."""
    if isinstance(one, type):
        return list(vars(one).values()) if one is not object else []
    function = getattr(one, "__func__", one)
    if not isinstance(function, FunctionType):
        return []
    code, known = function.__code__, function.__globals__
    named = [known[name] for name in code.co_names if name in known]
    modules = [value for value in named if isinstance(value, ModuleType)]
    inside = [getattr(module, name, None) for module in modules for name in code.co_names]
    return [*named, *inside]


def _oracle(given: Any, automatic: bool) -> Oracle:
    machine = found_machine(given)
    if machine is None:
        raise CannotRead(
            f"{given!r} is no machine of transitions or python-statemachine, and holds none; give "
            f"the machine itself"
        )
    if of_statemachine.is_machine(machine):
        return of_statemachine.StatemachineOracle(machine)
    return of_transitions.TransitionsOracle(machine, with_automatic=automatic)


class ExistingMachine:
    """A machine of another library, as it was read."""

    def __init__(self, oracle: Oracle, claims: dict[str, Claim], fields: dict[str, Any]) -> None:
        self.oracle, self.claims = oracle, claims
        self.name = oracle.name
        self._table = ReadTable(explore(oracle))
        self._fields = fields

    @property
    def states(self) -> tuple[str, ...]:
        """The states; of parallel parts, the combinations that occur."""
        return self._table.states

    @property
    def initial(self) -> str:
        """The state of a fresh machine."""
        return self._table.initial

    @property
    def final(self) -> tuple[str, ...]:
        """The states that are declared final."""
        return self._table.final

    @property
    def triggers(self) -> tuple[str, ...]:
        """The triggers, without automatic ones."""
        return tuple(self.oracle.triggers)

    @property
    def rows(self) -> tuple[ReadRow, ...]:
        """The rows as they were written; the first that holds is taken."""
        return self._table.rows

    @property
    def unreachable(self) -> tuple[str, ...]:
        """States that no transition leads to."""
        return self._table.unreachable

    @property
    def dead(self) -> tuple[str, ...]:
        """States without a way out that are not declared final."""
        return self._table.dead

    @property
    def never_taken(self) -> tuple[str, ...]:
        """Transitions that earlier ones, or those of inner states, always win over."""
        return tuple(map(str, self._table.never_taken))

    @property
    def ambiguous(self) -> tuple[tuple[str, str], ...]:
        """Pairs of transitions with conditions that may both hold, so that their order decides."""
        return tuple((str(first), str(second)) for first, second in self._table.ambiguous)

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """The triggers that each state refuses with an error."""
        return self._table.missing

    @cached_property
    def callbacks(self) -> Callbacks:
        """The guards and callbacks that are checked as they are, and why the others are not."""
        return Callbacks(self._table, self._fields)

    @cached_property
    def machine(self) -> type[Machine]:
        """The machine as a declaration of this project, for drawing."""
        return drawn(self._table)

    @cached_property
    def system(self) -> type[ClosedSystem]:
        """The closed system that is checked."""
        made = Writer(self._table, self.callbacks, self.claims).system()
        made.NOTES = (
            *abstractions(self._table, self.callbacks),
            *self.oracle.notes,
            *self._table.findings(),
        )
        return made

    def check(self, **options: Any) -> Result:
        """Explore every run, with the options of `epochgate.fsm.checker.check`."""
        return check(self.system, **options)

    def report(self) -> str:
        """Return what was read, as text."""
        return summary(self._table)

    def fuzz(
        self,
        make: Callable[[], Any],
        *,
        invariants: Mapping[str, Callable[[Any], bool]] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> type[RuleBasedStateMachine]:
        """Return a state machine for Hypothesis that fires triggers on real objects and compares
        the state after each with the table: `TestIt = read.fuzz(make).TestCase`.

        `make` makes a fresh machine, or an object that has one. `invariants` are asked of what it
        made after each trigger. `arguments` maps a trigger to a strategy of tuples.
        """
        from epochgate.fsm.existing.fuzzing import state_machine

        made: type[RuleBasedStateMachine] = state_machine(
            self._table, make, dict(invariants or {}), dict(arguments or {})
        )
        return made
