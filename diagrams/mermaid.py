"""A machine as a Mermaid state diagram, which code hosts draw by themselves.

Rows that stay are lines inside their state, as in the picture; Mermaid has no room for a list
that several states share, so these stand in a note of the initial state.
"""

from __future__ import annotations

from collections.abc import Iterable

from epochgate.diagrams.description import Description
from epochgate.diagrams.passages import described, guards, inner, passages, reason, shared, spaced
from epochgate.fsm import Row

REPLACED = {":": "#58;", ";": "#59;", "<": "#60;", ">": "#62;", '"': "#34;", "#": "#35;"}
"""Characters that mean something to Mermaid inside a label."""


def safe(text: str) -> str:
    """Escape text for a label."""
    return "".join(REPLACED.get(character, character) for character in text)


def row_text(row: Row) -> str:
    """One row on one line: trigger, condition, actions, reason."""
    condition = f" [{guards(row)}]" if row.literals else ""
    actions = f" / {', '.join(map(spaced, row.actions))}" if row.actions else ""
    because = f"<br/>({safe(reason(row))})" if reason(row) else ""
    return safe(f"{spaced(row.trigger)}{condition}{actions}") + because


def rows_text(rows: Iterable[Row]) -> str:
    """Several rows as one label."""
    return "<br/>".join(map(row_text, rows))


def machine_mermaid(machine: Description) -> str:
    """The Mermaid source of one machine."""
    names = {state: f"s{number}" for number, state in enumerate(machine.states)}
    lines = ["stateDiagram-v2"]
    for state, name in names.items():
        lines.append(f'  state "{safe(spaced(state))}" as {name}')
        lines += [f"  {name} : {row_text(row)}" for row in inner(machine, state)]
    lines.append(f"  [*] --> {names[machine.initial]}")
    for passage in passages(machine):
        for source in passage.sources:
            text = rows_text(passage.rows)
            lines.append(f"  {names[source]} --> {names[passage.dest]} : {text}")
    lines += [f"  {names[state]} --> [*]" for state in machine.terminal]
    for group in shared(machine):
        title = safe(described(machine, group.states))
        lines.append(f"  note right of {names[machine.initial]}")
        lines += [f"    {title}<br/>{rows_text(group.rows)}", "  end note"]
    return "\n".join(lines) + "\n"
