"""Watches a real machine while triggers are fired on it, and compares each event with the table.

What the guards answered is noted, so of a machine of `transitions` exactly one state is right after
an event. Events that callbacks fire are compared one by one like those from outside.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.existing.of_statemachine import OWN_EVENTS
from epochgate.fsm.existing.oracle import Ask, Configuration, Fired, paths, quiet
from epochgate.fsm.existing.table import ReadTable

REFUSALS = ("MachineError", "TransitionNotAllowed")
"""The errors of the libraries for a trigger that is not taken."""


class TableDiffers(AssertionError):
    """A real machine did something else than its table says."""


class Replay(Ask):
    """Answers guards as a real machine did, in the order in which they were asked."""

    is_short = False

    def __call__(self, guard: Any) -> Any:
        """Return what the guard answered."""
        number = len(self.asked)
        self.is_short = self.is_short or number >= len(self._told)
        answer = False if self.is_short else self._told[number]
        self.asked.append((guard, answer))
        return answer


@dataclass
class Event:
    """One event of a real machine: `inside` is its state when a callback fired the next event."""

    trigger: str
    source: Configuration
    answers: list[Any] = field(default_factory=list)
    inside: Configuration | None = None


class OfTransitions:
    """Watches a model of a machine of `transitions`."""

    def __init__(self, table: ReadTable, machine: Any, model: Any) -> None:
        self._table, self._oracle, self._machine = table, table.oracle, machine
        self.model = model
        self._open: list[Event] = []
        self._is_callback = False
        self._resolve = machine.resolve_callable
        machine.resolve_callable = self._resolved
        machine.callback = self._callback(machine.callback)
        self._has_refusals = not machine.on_exception
        if hasattr(machine, "process_context"):
            machine.process_context = self._observed_async(machine.process_context)
        else:
            original = machine._process
            machine._process = lambda trigger: original(self._observed(trigger))

    @property
    def configuration(self) -> Configuration:
        """The configuration that the model is in."""
        return self._oracle.configuration_of(self.model)

    def fire(self, trigger: str, arguments: tuple[Any, ...]) -> None:
        """Fire a trigger; raises TableDiffers, and what callbacks raise."""
        try:
            result = self.model.trigger(trigger, *arguments)
            if inspect.isawaitable(result):
                asyncio.run(_awaited(result))
        except Exception as error:
            if type(error).__name__ not in REFUSALS:
                raise

    def _callback(self, original: Any) -> Any:
        def callback(func: Any, event_data: Any) -> Any:
            self._is_callback = True
            return original(func, event_data)

        return callback

    def _resolved(self, func: Any, event_data: Any) -> Any:
        found = self._resolve(func, event_data)
        is_callback, self._is_callback = self._is_callback, False
        if is_callback or not self._open:
            return found
        answers = self._open[-1].answers

        @functools.wraps(found, assigned=(), updated=())
        def guard(*arguments: Any, **named: Any) -> Any:
            answer = found(*arguments, **named)
            if inspect.isawaitable(answer):
                return _noted(answer, answers)
            answers.append(answer)
            return answer

        return guard

    def _begin(self, trigger: Any) -> Event:
        data = trigger.args[0]
        name = trigger.args[1] if len(trigger.args) > 1 else data.event.name
        if self._open and self._open[-1].inside is None:
            self._open[-1].inside = self.configuration
        self._open.append(Event(name, self.configuration))
        return self._open[-1]

    def _observed(self, trigger: Any) -> Any:
        if trigger.args[0].model is not self.model:
            return trigger

        def run(data: Any) -> Any:
            event = self._begin(trigger)
            try:
                result = trigger()
            except Exception as error:
                self._end(event, error)
                raise
            self._end(event)
            return result

        return functools.partial(run, trigger.args[0])

    def _observed_async(self, original: Any) -> Any:
        async def run(trigger: Any, data: Any) -> Any:
            event = self._begin(trigger)
            try:
                result = await trigger()
            except Exception as error:
                self._end(event, error)
                raise
            self._end(event)
            return result

        def process_context(trigger: Any, model: Any) -> Any:
            if model is not self.model:
                return original(trigger, model)
            data = trigger.args[0]
            return original(functools.partial(lambda _: run(trigger, data), data), model)

        return process_context

    def _end(self, event: Event, error: Exception | None = None) -> None:
        self._open.pop()
        if error is not None and type(error).__name__ not in REFUSALS:
            return  # a callback has raised: the test fails of it, and the state is the user's
        replay = Replay(event.answers)
        with quiet():
            said = self._oracle.fire(event.source, event.trigger, replay)
        if replay.is_short and event.inside is not None:
            return  # a callback fired the next event before all guards were asked
        if replay.is_short:
            raise self._differs(event, said, "fewer guards were asked")
        is_refused = error is not None
        if event.inside is None and self._has_refusals:
            if is_refused and said.kind not in ("refused", "broken"):
                raise self._differs(event, said, f"it was refused: {error}") from error
            if said.kind == "refused" and not is_refused:
                raise self._differs(event, said, "it was taken")
        reached = self.configuration if event.inside is None else event.inside
        is_early = event.inside == event.source  # a callback fired before the state changed
        if reached != said.dest and not is_early:
            raise self._differs(event, said, f"the state is {self._named(reached)!r}")

    def _differs(self, event: Event, said: Fired, what: str) -> TableDiffers:
        return TableDiffers(
            f"{event.trigger!r} in {self._named(event.source)!r}, where guards answered "
            f"{event.answers}: {what}, but the table says that it is {said.kind} and leads to "
            f"{self._named(said.dest)!r}"
        )

    def _named(self, configuration: Configuration) -> str:
        return self._table.found.names.get(configuration, str(configuration))


async def _awaited(result: Any) -> Any:
    return await result


async def _noted(answer: Any, answers: list[Any]) -> Any:
    answers.append(await answer)
    return answers[-1]


class OfStatemachine:
    """Watches a machine of `python-statemachine`: the state has to be one that the table allows for
    the events that were sent, in their order.
    """

    def __init__(self, table: ReadTable, machine: Any) -> None:
        self._table, self._oracle, self.model = table, table.oracle, machine
        self._sent: list[str] = []
        put = machine._engine.put

        def noted(data: Any, *arguments: Any, **named: Any) -> Any:
            if not str(data.event).startswith(OWN_EVENTS):
                self._sent.append(str(data.event))
            return put(data, *arguments, **named)

        machine._engine.put = noted

    @property
    def configuration(self) -> Configuration:
        """The configuration that the machine is in."""
        return self._oracle.configuration_of(self.model)

    def fire(self, trigger: str, arguments: tuple[Any, ...]) -> None:
        """Send an event; raises TableDiffers, and what callbacks raise."""
        source, self._sent = self.configuration, []
        refusal = ""
        try:
            self.model.send(trigger, *arguments)
        except Exception as error:
            if type(error).__name__ not in REFUSALS:
                raise
            refusal = str(error)
        allowed, may_be_refused = {source}, False
        for number, event in enumerate(self._sent, 1):
            found = [path.fired for one in allowed for path in paths(self._oracle, one, event)]
            may_be_refused |= any(fired.kind in ("refused", "held") for fired in found)
            # An exception of a callback takes back the transition that it is raised in, also where
            # that handles another one.
            kept = allowed if "error.execution" in self._sent[number - 1 : number + 1] else set()
            allowed = {fired.dest for fired in found} | kept
        names = self._table.found.names
        told = f"{', then '.join(self._sent) or trigger} in {names.get(source, source)!r}"
        if refusal and not may_be_refused:
            raise TableDiffers(f"{told} was refused, but the table takes it: {refusal}")
        if not refusal and self.configuration not in allowed:
            reached = names.get(self.configuration, self.configuration)
            may = ", ".join(repr(names.get(one, one)) for one in allowed)
            raise TableDiffers(f"{told} led to {reached!r}, but the table says {may}")
