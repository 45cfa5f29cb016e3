"""Who triggers whom: all machines, with an arrow for the triggers that one fires on another.

It is read from the text of guards and actions by the same walk that checks them, so an arrow is
there exactly when some action can fire. Ports, through which a machine reaches the world, stand in
its box.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from epochgate.diagrams.passages import spaced
from epochgate.diagrams.picture import (
    CARD_FILL,
    CARD_LINE,
    SOFT,
    STATE_FILL,
    STATE_LINE,
    header,
    quoted,
)
from epochgate.fsm import Machine, System
from epochgate.fsm.subset import check_system

LABEL_CHARACTERS_MAX = 26


def fired(system: type[System]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The triggers that each machine fires on each other: (from, to) -> triggers, in a fixed
    order.
    """
    names = {machine: name for name, machine in system.MACHINES.items()}
    found: dict[tuple[str, str], set[str]] = {}
    for step in check_system(system).interactions():
        if step.target is not None and step.target is not step.machine:
            found.setdefault((names[step.machine], names[step.target]), set()).add(step.name)
    order = list(system.MACHINES)
    return {
        pair: tuple(t for t in system.MACHINES[pair[1]].triggers() if t in found[pair])
        for pair in sorted(found, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    }


def overview_dot(systems: Sequence[type[System]]) -> str:
    """The DOT source of the overview."""
    parts = [header("overview", ranksep="0.3", nodesep="0.3")]
    for system in systems:
        parts.append(f"  subgraph {quoted('cluster ' + system.__name__)} {{\n")
        parts.append(
            f'    label=<<B>{escape(system.__name__)}</B>> labeljust="l" fontsize="15" '
            f'style="rounded,filled" margin="16" fillcolor="{CARD_FILL}" color="{CARD_LINE}"\n'
        )
        parts += [machine_node(name, machine) for name, machine in system.MACHINES.items()]
        for (source, target), triggers in fired(system).items():
            middle = quoted(f"{source} to {target}")
            parts.append(f"    {middle} [label=<{listed(triggers)}>]\n")
            parts.append(f'    {quoted(source)} -> {middle} [dir="none"]\n')
            parts.append(f"    {middle} -> {quoted(target)}\n")
        parts.append("  }\n")
    return "".join([*parts, "}\n"])


def listed(triggers: Sequence[str]) -> str:
    """Trigger names as a card."""
    lines = textwrap.wrap(", ".join(map(spaced, triggers)), LABEL_CHARACTERS_MAX)
    return (
        f'<TABLE BORDER="1" STYLE="ROUNDED" CELLBORDER="0" CELLPADDING="3" CELLSPACING="0" '
        f'BGCOLOR="white" COLOR="{CARD_LINE}"><TR><TD><FONT POINT-SIZE="10">'
        f"{'<BR/>'.join(map(escape, lines))}</FONT></TD></TR></TABLE>"
    )


def machine_node(name: str, machine: type[Machine]) -> str:
    """One machine as a box: its name, how many there are, and its ports."""
    lines = [f'<FONT POINT-SIZE="14"><B>{escape(spaced(name))}</B></FONT>']
    if machine.INDEX:
        lines.append(f'<FONT POINT-SIZE="10">for each {" and ".join(machine.INDEX)}</FONT>')
    if machine.PORTS:
        ports = ", ".join(map(spaced, machine.PORTS))
        lines.append(f'<FONT POINT-SIZE="10" COLOR="{SOFT}">tells: {escape(ports)}</FONT>')
    return (
        f'    {quoted(name)} [shape="box" style="rounded,filled" fillcolor="{STATE_FILL}" '
        f'color="{STATE_LINE}" penwidth="1.4" margin="0.16,0.1" label=<{"<BR/>".join(lines)}>]\n'
    )


def overview_mermaid(systems: Sequence[type[System]]) -> str:
    """The same as a Mermaid flowchart."""
    lines = ["flowchart TB"]
    for system in systems:
        lines.append(f"  subgraph {system.__name__}")
        lines += [f'    {name}(["{spaced(name)}"])' for name in system.MACHINES]
        for (source, target), triggers in fired(system).items():
            lines.append(f'    {source} -->|"{", ".join(map(spaced, triggers))}"| {target}')
        lines.append("  end")
    return "\n".join(lines) + "\n"
