"""Turns what a system journals into the lines of a trace.

Entries come in the order in which things happened, in three forms, told apart by what stands first:

    ("send", (machine, 0, event))        an event: its trigger, the machine, the arguments
    (kind, (0, 2, 5, 17, event))         an effect: its class, the index, the arguments
    (None, (12.5,))                      the clock, from here on

Events that follow each other and differ in numbers alone, each greater by one than in the event
before, share a line: sixty events that a coordinator sends to a subtask at once cost one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice, starmap
from typing import Any

from epochgate.fsm.machine import Machine
from epochgate.fsm.ports import Effect
from epochgate.fsm.system import System
from epochgate.fsm.traces.lines import seal
from epochgate.fsm.traces.runs import TIMES_MAX, Run, Sent, Step, Values
from epochgate.fsm.traces.shapes import Shape, effect_shapes, instance_name, trigger_shape

Entry = tuple[Any, Any]


class Encoder:
    """Encodes the events of one system; `numbered` is the number of the last one in a line."""

    def __init__(self, system: System, numbered: int = 0) -> None:
        self._names = {machine: name for name, machine in system.MACHINES.items()}
        self._triggers: dict[tuple[type[Machine], str], Shape] = {
            (machine, trigger): trigger_shape(machine, trigger)
            for machine in system.MACHINES.values()
            for trigger in machine.triggers()
        }
        self._effects = effect_shapes(type(system))
        self._machine_names: dict[Machine, str] = {}
        self._effect_names: dict[tuple[type[Effect], Values], str] = {}
        self._run: Run | None = None
        self._now_s = 0.0
        self.numbered = numbered

    def encode(self, entries: list[Entry]) -> Iterator[bytes]:
        """The lines of these entries, which end with a whole step; the last run may go on in the
        entries to come.
        """
        at, size = 0, len(entries)
        while at < size:
            if self._run is not None and self._run.times > 1 and len(self._run.grows) == 2:
                at += 2 * self._taken_at_once(self._run, entries, at)
                if at == size:
                    break
            head, items = entries[at]
            if head is None:
                self._now_s = items[0]
                at += 1
                continue
            end = at + 1
            while end < size and isinstance(entries[end][0], type):
                end += 1
            step = self._step(head, items, entries[at + 1 : end])
            if self._run is None or not self._run.takes(step):
                yield from self.end()
                self._run = Run(step, self._now_s)
            at = end

    def _taken_at_once(self, run: Run, entries: list[Entry], at: int) -> int:
        """Count the steps of one effect each, from here on, that belong to the run."""
        step, (kind, index, _) = run.step, run.step.effects[0]
        trigger, machine, effect = step.trigger, step.machine, self._effects[kind]
        seen, sent = self._triggers[type(machine), trigger].get, effect.get_with_index
        expected_call, expected_effect = run.expected(index)
        taken, room = 0, TIMES_MAX - run.times
        # Most events of a busy job pass here: the loop is as short as Python can say it.
        for (head, call), expected, (out, items), expected_items in zip(
            islice(entries, at, at + 2 * room, 2),
            expected_call,
            islice(entries, at + 1, None, 2),
            expected_effect,
            strict=False,
        ):
            if (
                sent(items) != expected_items
                or out is not kind
                or seen(call) != expected
                or call[0] is not machine
                or head is not trigger
            ):
                break
            taken += 1
        end = at + 2 * taken
        if taken and end < len(entries) and isinstance(entries[end][0], type):
            taken -= 1  # its effect was not its only one
        run.times += taken
        return taken

    def _step(self, trigger: str, call: Values, effects: list[Entry]) -> Step:
        sent = []
        for kind, items in effects:
            shape = self._effects[kind]
            sent.append((kind, items[: shape.index_size], shape.arguments.get(items)))
        arguments = self._triggers[type(call[0]), trigger].get(call)
        return Step(trigger, call[0], arguments, sent)

    def end(self) -> Iterator[bytes]:
        """The line of the last run, if there is one."""
        run, self._run = self._run, None
        if run is None:
            return
        step, (arguments, *parts) = run.step, run.written()
        shape = self._triggers[type(step.machine), step.trigger]
        line = f'{{"n":{self.numbered + 1},"t":{run.now_s:.6f}'
        if run.times > 1:
            line += f',"times":{run.times}'
        line += f',"do":"{self._name(step.machine)}.{step.trigger}"'
        if shape.size:
            line += f',"with":[{_text(shape.written(arguments))}]'
        if parts:
            sent = zip(step.effects, parts, strict=True)
            line += f',"out":[{",".join(starmap(self._sent, sent))}]'
        self.numbered += run.times
        yield seal(line.encode())

    def _sent(self, sent: Sent, values: list[Any]) -> str:
        kind, index, _ = sent
        name = self._effect_names.get((kind, index))
        if name is None:
            name = self._effect_names[kind, index] = self._effects[kind].name(index)
        written = _text(self._effects[kind].arguments.written(values))
        return f'["{name}",{written}]' if written else f'["{name}"]'

    def _name(self, machine: Machine) -> str:
        name = self._machine_names.get(machine)
        if name is None:
            name = instance_name(self._names[type(machine)], machine.index)
            self._machine_names[machine] = name
        return name


def _text(values: Sequence[Any]) -> str:
    """Values as JSON has them; a general encoder takes longer to be called than they take."""
    return ",".join(map(_word, values))


def _word(value: Any) -> str:
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is list:
        return f"[{value[0]},{value[1]}]"
    return "null" if value is None else _encoded(value)


_encoded = json.JSONEncoder().encode
