"""The steps of a trigger in each state, as one Python function for each pair.

The functions are written from the branches that `transitions` tries for a pair, in its order, and
translated once for each machine: a step then costs one call besides its guards and actions, half of
what walking through the branches as data does. For `lost` where it has two rows:

    def on_lost_31(self, given_1, given_2, *_):
        if call_speaks(self, given_1):
            self.state = 'failed'
            call_stop_running(self)
            call_report_lost(self, given_1, given_2)
            return row_54
        else:
            return row_55

A guard is asked at most once in a step. A callback gets as many of the trigger's arguments as it
names. Functions, callbacks and rows have names that begin differently, so that no name of a trigger
or a callback can be that of anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from epochgate.fsm.declaration import parameters
from epochgate.fsm.errors import TransitionRefused
from epochgate.fsm.rows import Row
from epochgate.fsm.transitions_backed import Branch

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine


class Outcome(Enum):
    """The end of a fired trigger that was not refused."""

    TAKEN = "taken"
    IGNORED = "ignored"
    WAITING = "waiting"
    """It was fired inside a step, and runs once what was fired before it is over."""


Step = Callable[..., tuple[Outcome, Row]]
"""Takes the machine and the trigger's arguments; raises TransitionRefused when no row holds."""
Steps = Mapping[str, Step]
"""What one trigger does in each state."""
Branches = tuple[Branch, ...]
Table = Mapping[str, Mapping[str, Branches]]
"""For each trigger and state the branches, in the order in which they are tried."""
Open = Sequence[tuple[tuple[tuple[str, bool], ...], Branch]]
"""The branches that may hold, each with the guards that were not asked yet."""


def steps_of(cls: type[Machine], table: Table) -> dict[str, dict[str, Step]]:
    """Write and translate the steps of a machine, trigger -> state -> step."""
    writer = Writer(cls)
    names = {
        trigger: {state: writer.write(trigger, by_state.get(state, ())) for state in cls.STATES}
        for trigger, by_state in table.items()
    }
    made = writer.translated()
    return {
        trigger: {state: made[name] for state, name in by_state.items()}
        for trigger, by_state in names.items()
    }


class Writer:
    """Writes the steps of one machine; states that share their branches share a function."""

    def __init__(self, cls: type[Machine]) -> None:
        callbacks = {
            name: getattr(cls, name)
            for row in cls.ROWS
            for name in (*row.conditions, *row.unless, *row.actions)
        }
        self._counts = {name: len(parameters(callback)) for name, callback in callbacks.items()}
        self._names: dict[str, Any] = {
            "__name__": __name__,  # by which a frame of a traceback is known as one of ours
            "refused": _refused,
            **{f"call_{name}": callback for name, callback in callbacks.items()},
        }
        self._source = f"<rows of {cls.__qualname__}>"
        self._lines: list[str] = []
        self._written: dict[tuple[str, Branches], str] = {}

    def translated(self) -> dict[str, Any]:
        """Translate what was written; the functions by their names."""
        code = compile("\n".join(self._lines), self._source, "exec")
        exec(code, self._names)  # noqa: S102  # of names that the declaration was checked for
        return self._names

    def write(self, trigger: str, branches: Branches) -> str:
        """Write what the trigger does where these branches are tried; the function's name."""
        known = self._written.get((trigger, branches))
        if known is not None:
            return known
        name = self._written[trigger, branches] = f"on_{trigger}_{len(self._written)}"
        counts = [
            self._counts[callback]
            for branch in branches
            for callback in (*dict(branch.conditions), *branch.actions)
        ]
        self._lines.append(f"def {name}(self, {_given(max(counts, default=0))}*_):")
        self._lines += self._choice(trigger, [(b.conditions, b) for b in branches], " ")
        return name

    def _choice(self, trigger: str, branches: Open, indent: str) -> Iterator[str]:
        if not branches:
            yield f"{indent}raise refused(self, {trigger!r})"
            return
        guards, branch = branches[0]
        if not guards:
            yield from (indent + line for line in self._taken(branch))
            return
        asked = guards[0][0]
        for line, holds in ((f"if {self._call(asked)}:", True), ("else:", False)):
            left = [
                (tuple(guard for guard in others if guard[0] != asked), other)
                for others, other in branches
                if (asked, not holds) not in others
            ]
            yield indent + line
            yield from self._choice(trigger, left, indent + " ")

    def _taken(self, branch: Branch) -> Iterator[str]:
        if branch.dest is not None:
            yield f"self.state = {branch.dest!r}"
        for action in branch.actions:
            yield self._call(action)
        outcome = Outcome.IGNORED if branch.row.is_ignored else Outcome.TAKEN
        name = f"row_{len(self._names)}"
        self._names[name] = outcome, branch.row
        yield f"return {name}"

    def _call(self, callback: str) -> str:
        return f"call_{callback}(self, {_given(self._counts[callback])})"


def _given(count: int) -> str:
    return "".join(f"given_{number}, " for number in range(1, count + 1))


def _refused(machine: Machine, trigger: str) -> TransitionRefused:
    state = machine.state
    return TransitionRefused(repr(machine), state, trigger, machine.accepted(state))
