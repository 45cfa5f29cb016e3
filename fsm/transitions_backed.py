"""The bridge to the `transitions` library, and the only file that imports it.

A machine's rows configure a real `transitions.Machine`, whose dispatch table the machine's trigger
methods run on: it is read once per class, so that firing costs a dictionary look-up. The library's
automatic `to_<state>` triggers are switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import transitions
from epochgate.fsm.rows import Row


@dataclass(frozen=True)
class Branch:
    """One way in which a (state, trigger) pair can be taken."""

    conditions: tuple[tuple[str, bool], ...]
    dest: str | None
    actions: tuple[str, ...]
    row: Row


def _configuration(row: Row, source: str, name: Callable[[str], Any]) -> dict[str, Any]:
    return {
        "trigger": row.trigger,
        "source": source,
        "dest": row.dest,
        "conditions": [name(guard) for guard in row.conditions],
        "unless": [name(guard) for guard in row.unless],
        "after": [name(action) for action in row.actions],
    }


def library_machine(
    model: object | None,
    states: Iterable[str],
    initial: str,
    expanded: Iterable[tuple[str, Row]],
    name: Callable[[str], Any],
) -> transitions.Machine:
    """The library's machine of these rows; `name` gives what it calls for a guard or an action."""
    return transitions.Machine(
        model=model,
        states=list(states),
        initial=initial,
        transitions=[_configuration(row, source, name) for source, row in expanded],
        auto_transitions=False,
    )


def dispatch_table(
    states: tuple[str, ...], initial: str, expanded: list[tuple[str, Row]]
) -> dict[str, dict[str, tuple[Branch, ...]]]:
    """Read the dispatch from a real `transitions.Machine`: trigger -> state -> branches.

    The branches of a pair come in the order in which the library tries them.
    """
    machine = library_machine(None, states, initial, expanded, str)
    rows: dict[tuple[str, str], list[Row]] = {}
    for source, row in expanded:
        rows.setdefault((row.trigger, source), []).append(row)
    table: dict[str, dict[str, tuple[Branch, ...]]] = {}
    for trigger, event in machine.events.items():
        for source, choices in event.transitions.items():
            table.setdefault(trigger, {})[source] = tuple(
                Branch(
                    conditions=tuple(
                        (cast(str, c.func), bool(c.target)) for c in choice.conditions
                    ),
                    dest=choice.dest,
                    actions=tuple(cast("list[str]", choice.after)),
                    row=row,
                )
                for choice, row in zip(choices, rows[trigger, source], strict=True)
            )
    return table
