"""Makes a state machine for Hypothesis of a table: it fires triggers on real objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.errors import UsageError
from epochgate.fsm.existing import of_statemachine, reading
from epochgate.fsm.existing.observing import OfStatemachine, OfTransitions, TableDiffers
from epochgate.fsm.existing.oracle import CannotRead, Configuration
from epochgate.fsm.existing.table import ReadTable

Watch = OfTransitions | OfStatemachine
Invariants = dict[str, Callable[[Any], bool]]


class FuzzUnavailable(UsageError):
    """Hypothesis is not installed."""


class InvariantBroken(AssertionError):
    """An invariant of the user does not hold."""


def state_machine(
    table: ReadTable,
    make: Callable[[], Any],
    invariants: Invariants,
    arguments: dict[str, Any],
) -> Any:
    """Return a RuleBasedStateMachine; see `ExistingMachine.fuzz`.

    Raises FuzzUnavailable, and CannotRead for arguments of an unknown trigger.
    """
    try:
        from hypothesis import Phase, settings, strategies as st
        from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
    except ImportError as error:
        raise FuzzUnavailable("hypothesis is needed: pip install hypothesis") from error
    for unknown in {*arguments} - {*table.oracle.triggers}:
        raise CannotRead(f"arguments: {table.oracle.name} has no trigger {unknown!r}")
    taken = _triggers(table, ("taken", "held", "ignored"))
    refused = _triggers(table, ("refused",))

    class Fuzzed(RuleBasedStateMachine):  # type: ignore[misc,unused-ignore]  # its base is imported here
        def __init__(self) -> None:
            super().__init__()
            self.made = make()
            self.watch = watched(table, self.made)

        def _fire(self, data: Any, triggers: list[str]) -> None:
            trigger = data.draw(st.sampled_from(triggers), label="trigger")
            given = data.draw(arguments[trigger]) if trigger in arguments else ()
            self.watch.fire(trigger, tuple(given))

        @precondition(lambda self: self.watch.configuration in taken)
        @rule(data=st.data())
        def fire(self, data: Any) -> None:
            self._fire(data, taken[self.watch.configuration])

        @precondition(lambda self: self.watch.configuration in refused)
        @rule(data=st.data())
        def fire_what_is_refused(self, data: Any) -> None:
            self._fire(data, refused[self.watch.configuration])

        @precondition(lambda self: self.watch.configuration not in {**taken, **refused})
        @rule()
        def rest(self) -> None:
            """Do nothing: no trigger does anything here."""

        @invariant()
        def holds(self) -> None:
            _hold(table, self.watch, self.made, invariants)

    # Hypothesis would look for ten seconds for lines of ours that explain a failure.
    phases = [phase for phase in Phase if phase is not Phase.explain]
    Fuzzed.TestCase.settings = settings(Fuzzed.TestCase.settings, phases=phases)
    Fuzzed.__name__ = Fuzzed.__qualname__ = f"Fuzzed{table.oracle.name}"
    return Fuzzed


def _hold(table: ReadTable, watch: Watch, made: Any, invariants: Invariants) -> None:
    if watch.configuration not in table.found.names:
        raise TableDiffers(f"{watch.configuration!r} is no state of the table")
    for told, asked in invariants.items():
        if not asked(made):
            state = table.name(watch.configuration)
            raise InvariantBroken(f"{told}: it does not hold in {state!r}")


def _triggers(table: ReadTable, kinds: tuple[str, ...]) -> dict[Configuration, list[str]]:
    found: dict[Configuration, dict[str, None]] = {}
    for path in table.found.paths:
        if path.fired.kind in kinds and not path.trigger.startswith(of_statemachine.NOT_FIRED):
            found.setdefault(path.source, {})[path.trigger] = None
    return {source: [*triggers] for source, triggers in found.items()}


def watched(table: ReadTable, made: Any) -> Watch:
    """Watch what the user's `make` has made. Raises CannotRead for what is no machine."""
    machine = reading.found_machine(made)
    if machine is None or isinstance(made, type):
        raise CannotRead(f"`make` has made {made!r}, which is no machine and has none")
    if of_statemachine.is_machine(machine):
        return OfStatemachine(table, machine)
    if not machine.models:
        raise CannotRead("`make` has made a machine without a model: nothing can be fired on it")
    model = made if any(made is one for one in machine.models) else machine.models[0]
    return OfTransitions(table, machine, model)
