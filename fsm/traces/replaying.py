"""Takes the events of a trace again, on a fresh system of the same constants: the rows that run are
the rows that check.

A line that the rows do not allow ends the check: `Refusal` says what was wrong, in which state the
machine was, which rows there are for the trigger and which guards fail, and what was possible
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from typing import Any

from epochgate.fsm.errors import TransitionRefused
from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect, Emitted
from epochgate.fsm.system import System
from epochgate.fsm.traces.runs import TIMES_MAX, Values, growing
from epochgate.fsm.traces.shapes import (
    EffectShape,
    Shape,
    effect_shapes,
    instance_name,
    trigger_shape,
)
from epochgate.fsm.traces.states import State, StateMalformed, put_into, written_state


@dataclass(eq=False)
class Refusal(Exception):
    """The reason why a trace is not accepted.

    kind: "damaged", "foreign", "missing", "repeated", "malformed", "illegal", "effects", "state",
    "unsaid" or "cut".
    number: the event, None if it is about no single one.
    details: what a person wants to know besides, line by line.
    """

    kind: str
    text: str
    number: int | None = None
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class Event:
    """One line: `times` equal events, the first with this number."""

    number: int
    now_s: float
    name: str
    arguments: list[Any]
    effects: list[list[Any]]
    times: int = 1

    @classmethod
    def of(cls, values: dict[str, Any]) -> Event:
        """Read a line; raises Refusal."""
        number: Any = values.get("n")
        now_s: Any = values.get("t")
        name: Any = values.get("do")
        arguments, effects = values.get("with", []), values.get("out", [])
        times = values.get("times", 1)
        is_whole = (
            type(number) is int
            and isinstance(now_s, int | float)
            and isinstance(name, str)
            and isinstance(arguments, list)
            and isinstance(effects, list)
            and all(isinstance(e, list) and e and isinstance(e[0], str) for e in effects)
            and type(times) is int
            and 0 < times <= TIMES_MAX
        )
        if not is_whole:
            raise Refusal("malformed", f"the line is not that of an event: {values}")
        return cls(number, now_s, name, arguments, effects, times)


class Replay:
    """A system that takes the events of a trace; `number` is that of the last one."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.number = 0
        self._shapes = effect_shapes(type(system))
        self._fires: dict[str, tuple[Callable[..., Any], Machine, Shape]] = {
            f"{instance_name(name, machine.index)}.{trigger}": (
                getattr(machine, trigger),
                machine,
                trigger_shape(type(machine), trigger),
            )
            for name in system.MACHINES
            for machine in system.instances(name)
            for trigger in machine.triggers()
        }
        self._effects: dict[str, tuple[type[Effect], Values, EffectShape]] = {}
        for kind, shape in self._shapes.items():
            for machine in system.instances(shape.machine):
                self._effects[shape.name(machine.index)] = kind, machine.index, shape

    def begin(self, number: int, state: State) -> None:
        """Begin behind the event `number`, in this state; raises Refusal."""
        try:
            put_into(self.system, state)
        except (StateMalformed, KeyError, TypeError) as error:
            raise Refusal("malformed", f"the state does not fit the system: {error}") from None
        self.number = number

    def require(self, state: State) -> None:
        """Raise Refusal unless the machines are in this state."""
        reached = written_state(self.system)
        for name in sorted(reached.keys() | state.keys()):
            if reached.get(name) != state.get(name):
                raise Refusal(
                    "state",
                    f"the events lead {name} to {_shown(reached.get(name))}, and the trace says "
                    f"{_shown(state.get(name))}",
                    self.number,
                    (
                        "a line was changed to another that its rows allow as well, or something "
                        "changed the machine without an event",
                    ),
                )

    def take(self, event: Event) -> None:
        """Take the events of a line; raises Refusal."""
        if event.number != self.number + 1:
            raise self._out_of_order(event)
        if event.name not in self._fires:
            raise Refusal("malformed", self._unknown(event.name), event.number)
        fire, machine, shape = self._fires[event.name]
        if len(event.arguments) != shape.size:
            wanted = ", ".join(machine.trigger_parameters(event.name.rpartition(".")[2]))
            raise Refusal(
                "malformed",
                f"{event.name} takes ({wanted}), and {event.arguments} was written",
                event.number,
            )
        done, call = 0, tuple(event.arguments)
        try:
            if event.times == 1 and list not in map(type, call):
                fire(*call)
            else:
                for call in islice(self._growing(event.arguments, event), event.times):
                    fire(*call)
                    done += 1
        except Refusal:
            raise
        except Exception as error:  # a forged argument may break any action
            self.number += done + 1
            raise self._impossible(machine, event, call, error) from error
        self.number += event.times
        self._compare(event)
        self.system.emitted.clear()

    def _growing(self, values: Sequence[Any], event: Event) -> Iterator[Values]:
        """The values in each of the events of the line."""
        grows = [type(value) is list for value in values]
        if True not in grows:
            return repeat(tuple(values))
        for value in values:
            if isinstance(value, list) and (
                len(value) != 2 or value[1] - value[0] != event.times - 1
            ):
                raise Refusal(
                    "malformed",
                    f"{value} does not grow by one in each of {event.times} events",
                    event.number,
                )
        return growing([v[0] if isinstance(v, list) else v for v in values], grows)

    def _compare(self, event: Event) -> None:
        """Raise Refusal unless the steps had the effects of the line."""
        emitted, count = [*self.system.emitted], len(event.effects)
        if event.times == 1 and len(emitted) == count and self._are_the_same(event.effects):
            return
        if len(emitted) != count * event.times or not all(
            self._are_same(effect, emitted[place::count], event)
            for place, effect in enumerate(event.effects)
        ):
            raise self._other_effects(event)

    def _are_the_same(self, effects: list[list[Any]]) -> bool:
        """Return whether these are the effects of the one event: what is asked of most lines, and
        so without the work that several events need.
        """
        for (name, *values), (out, items) in zip(effects, self.system.emitted, strict=True):
            known = self._effects.get(name)
            if known is None or known[0] is not out or known[1] != items[: len(known[1])]:
                return False
            shape = known[2].arguments
            if values != shape.written(shape.get(items)):
                return False
        return True

    def _are_same(self, effect: list[Any], emitted: list[Emitted], event: Event) -> bool:
        """Return whether an effect of the line is what left the system in each of its events."""
        name, *values = effect
        if name not in self._effects or len(values) != self._effects[name][2].arguments.size:
            return False
        kind, index, shape = self._effects[name]
        seen = [*index, *(values[place] for place in shape.arguments.seen)]
        get = shape.get_with_index
        return all(
            out is kind and get(items) == expected
            for (out, items), expected in zip(emitted, self._growing(seen, event), strict=False)
        )

    # what went wrong

    def _out_of_order(self, event: Event) -> Refusal:
        if event.number <= self.number:
            text = f"event {event.number} stands behind event {self.number}: repeated, or moved"
            return Refusal("repeated", text, event.number)
        missing = f"event {self.number + 1}"
        if event.number > self.number + 2:
            missing += f" to {event.number - 1}"
        return Refusal(
            "missing", f"{missing} is missing: a line was lost, or moved", self.number + 1
        )

    def _unknown(self, name: str) -> str:
        machine, _, trigger = name.rpartition(".")
        known = [each.rpartition(".")[2] for each in self._fires if each.startswith(f"{machine}.")]
        if known:
            return f"{machine} has no trigger {trigger!r}; it has {', '.join(known)}"
        return f"the system has no machine {machine!r}"

    def _impossible(
        self, machine: Machine, event: Event, call: Values, error: Exception
    ) -> Refusal:
        told = ", ".join("…" if value is None else str(value) for value in call)
        name, _, trigger = event.name.rpartition(".")
        text = f"{event.name}({told}) is not possible"
        if not isinstance(error, TransitionRefused):
            return Refusal("illegal", f"{text}: it fails with {error!r}", self.number)
        if error.machine == repr(machine) and error.trigger == trigger:
            details = [f"{name} is {_shown(machine.values())}"]
            details += _rows(machine, trigger, call)
        else:
            text += f": it leads to {error.trigger!r} of {error.machine}, which refuses it"
            details = []
        possible = ", ".join(error.accepted) or "nothing"
        details.append(f"possible in {error.state}: {possible}")
        return Refusal("illegal", text, self.number, tuple(details))

    def _other_effects(self, event: Event) -> Refusal:
        emitted = [self._told(*each) for each in self.system.emitted]
        recorded = [
            _call(name, values)
            for number in range(event.times)
            for name, *values in (_at(effect, number) for effect in event.effects)
        ]
        pairs = zip(
            [*emitted, *repeat("nothing", max(0, len(recorded) - len(emitted)))],
            [*recorded, *repeat("nothing", max(0, len(emitted) - len(recorded)))],
            strict=True,
        )
        at = next(number for number, (one, other) in enumerate(pairs) if one != other)
        of_event = event.number + (at // len(event.effects) if event.effects else 0)
        told = partial(_one_of, at=at)
        return Refusal(
            "effects",
            f"{event.name} has other effects than the trace says",
            min(of_event, self.number),
            (
                f"its rows give    {told(emitted)}",
                f"the trace has    {told(recorded)}",
            ),
        )

    def _told(self, kind: type[Effect], items: Values) -> str:
        shape = self._shapes[kind]
        values = shape.arguments.written(shape.arguments.get(items))
        return _call(shape.name(items[: shape.index_size]), values)


def _at(effect: list[Any], number: int) -> list[Any]:
    return [value[0] + number if isinstance(value, list) else value for value in effect]


def _call(name: str, values: Sequence[Any]) -> str:
    told = ("…" if value is None else str(value) for value in values)
    return f"{name}({', '.join(told)})"


def _one_of(calls: list[str], at: int) -> str:
    return calls[at] if at < len(calls) else "nothing"


def _rows(machine: Machine, trigger: str, call: Values) -> Iterator[str]:
    """Every row of the trigger in the present state with the guards that fail, and without one, the
    states that have rows for it.
    """
    here = [
        row
        for source, row in machine.expanded_rows()
        if (source, row.trigger) == (machine.state, trigger)
    ]
    if not here:
        sources = [source for source, row in machine.expanded_rows() if row.trigger == trigger]
        yield f"no row takes {trigger} in {machine.state}; rows take it in " + ", ".join(
            dict.fromkeys(sources)
        )
    for row in here:
        failed = [
            ("" if expected else "not ") + guard
            for guard, expected in row.literals
            if bool(machine.bound_callback(guard)(*call)) != expected
        ]
        yield f"row {trigger} when {row.when} ({row.because}): {' and '.join(failed)} fails"


def _shown(values: dict[str, Any] | None) -> str:
    if values is None:
        return "nothing"
    held = " ".join(f"{name}={value}" for name, value in values.items() if name != "state")
    return f"{values['state']} {held}".strip()
