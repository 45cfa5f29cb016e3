"""A machine as a Graphviz picture: states as boxes, and a card of rows on each way between them.

A card is a node of its own, so that the layout finds room for its text: the trigger in bold, the
condition in brackets, the actions after a slash, the reason in grey. A line without a head leads
into a card, an arrow out of it. A black dot marks the initial state, a double border a terminal
one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape

from epochgate.diagrams.layout import FONT
from epochgate.diagrams.passages import (
    described,
    guards,
    inner,
    passages,
    reason,
    shared,
    spaced,
)
from epochgate.fsm import Machine, Row

CARD_CHARACTERS_MAX = 40
"""Where the lines of a card are broken."""

INK, SOFT, LINE = "#1f2933", "#52606d", "#52606d"
STATE_FILL, STATE_LINE = "#dceaf7", "#3e6f9e"
TERMINAL_FILL, TERMINAL_LINE = "#e8e6e1", "#7d7468"
CARD_FILL, CARD_LINE = "#fbfaf6", "#ddd8c9"


def header(name: str, **settings: str) -> str:
    """The opening of a digraph: its name and the defaults of graph, nodes and edges."""
    chosen = {
        "bgcolor": "white",
        "fontname": FONT,
        "nodesep": "0.3",
        "pad": "0.3",
        "rankdir": "TB",
        "ranksep": "0.32",
        **settings,
    }
    graph = " ".join(f"{key}={quoted(value)}" for key, value in chosen.items())
    return (
        f"digraph {quoted(name)} {{\n"
        f"  graph [{graph}]\n"
        f'  node [fontcolor="{INK}" fontname="{FONT}" fontsize="11" shape="plain"]\n'
        f'  edge [arrowsize="0.7" color="{LINE}" fontcolor="{INK}" fontname="{FONT}" '
        f'fontsize="10" penwidth="1.1"]\n'
    )


def quoted(text: str) -> str:
    """Quote a DOT identifier or plain attribute."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def broken(text: str, before: str = "", characters_max: int = CARD_CHARACTERS_MAX) -> list[str]:
    """Break a text into lines of at most that many characters; `before` stands in the first."""
    lines = textwrap.wrap(before + text, characters_max, break_long_words=False)
    return [line[len(before) :] if i == 0 else line for i, line in enumerate(lines)]


def row_lines(row: Row) -> Iterable[str]:
    """One row as the HTML of its lines."""
    trigger, condition = spaced(row.trigger), guards(row)
    first = f"<B>{escape(trigger)}</B>"
    if condition:
        head, *rest = broken(f"[{condition}]", f"{trigger} ")
        yield f"{first} {escape(head)}"
        yield from map(escape, rest)
    else:
        yield first
    if row.actions:
        yield from map(escape, broken("/ " + ", ".join(map(spaced, row.actions))))
    for line in broken(reason(row)):
        yield f'<FONT COLOR="{SOFT}">{escape(line)}</FONT>'


def rows_cell(rows: Sequence[Row]) -> str:
    """Several rows as one left-aligned table cell."""
    left = '<BR ALIGN="LEFT"/>'
    parts = [left.join(row_lines(row)) + left for row in rows]
    gap = f'<FONT POINT-SIZE="4"> {left}</FONT>'
    return f'<TD ALIGN="LEFT" BALIGN="LEFT"><FONT POINT-SIZE="10">{gap.join(parts)}</FONT></TD>'


def state_node(machine: type[Machine], state: str) -> str:
    """One state as a node, with the rows that stay in it."""
    is_terminal = state in machine.TERMINAL
    fill, line = (TERMINAL_FILL, TERMINAL_LINE) if is_terminal else (STATE_FILL, STATE_LINE)
    name = f'<TR><TD><FONT POINT-SIZE="14"><B>{escape(spaced(state))}</B></FONT></TD></TR>'
    rows = inner(machine, state)
    body = f"<HR/><TR>{rows_cell(rows)}</TR>" if rows else ""
    label = f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="4" CELLSPACING="0">{name}{body}</TABLE>'
    borders = ' peripheries="2"' if is_terminal else ""
    return (
        f'  {quoted(state)} [shape="box" style="rounded,filled" fillcolor="{fill}" color="{line}" '
        f'penwidth="1.4" margin="0.08,0.04"{borders} label=<{label}>]\n'
    )


def card(name: str, rows: Sequence[Row], title: str = "") -> str:
    """A node that holds rows."""
    top = f'<TR><TD ALIGN="LEFT"><FONT POINT-SIZE="12"><B>{escape(title)}</B></FONT></TD></TR>'
    label = (
        f'<TABLE BORDER="1" STYLE="ROUNDED" CELLBORDER="0" CELLPADDING="3" CELLSPACING="1" '
        f'BGCOLOR="{CARD_FILL}" COLOR="{CARD_LINE}">'
        f"{top if title else ''}<TR>{rows_cell(rows)}</TR></TABLE>"
    )
    return f"  {quoted(name)} [label=<{label}>]\n"


def machine_dot(name: str, machine: type[Machine]) -> str:
    """The DOT source of one machine's picture."""
    each = f", one for each {' and '.join(machine.INDEX)}" if machine.INDEX else ""
    title = (
        f'<FONT POINT-SIZE="18"><B>{escape(spaced(name))}</B></FONT>'
        f'<FONT POINT-SIZE="12" COLOR="{SOFT}">  {machine.__name__}{each}</FONT>'
    )
    parts = [header(name), f'  label=<{title}> labelloc="t" labeljust="l"\n']
    parts.append(
        f'  "start" [shape="circle" style="filled" fillcolor="{INK}" label="" width="0.14"]\n'
    )
    parts += [state_node(machine, state) for state in machine.STATES]
    parts.append(f'  "start" -> {quoted(machine.INITIAL)}\n')
    order = {state: number for number, state in enumerate(machine.STATES)}
    for number, passage in enumerate(passages(machine)):
        middle = f"passage {number}"
        parts.append(card(middle, passage.rows))
        # A way back must not push its source above its dest.
        is_back = {source: order[source] > order[passage.dest] for source in passage.sources}
        for source in passage.sources:
            parts.append(line(source, middle, is_back[source], has_arrow=False))
        parts.append(line(middle, passage.dest, all(is_back.values()), has_arrow=True))
    for number, group in enumerate(shared(machine)):
        parts.append(card(f"shared {number}", group.rows, described(machine, group.states)))
        # Below everything: at the top a tall card would push the initial state down.
        parts.append(f'  {quoted(machine.STATES[-1])} -> "shared {number}" [style="invis"]\n')
    return "".join([*parts, "}\n"])


def line(tail: str, head: str, is_back: bool, has_arrow: bool) -> str:
    """One edge; a way back is drawn from its head, which is what the layout ranks by."""
    first, second = (head, tail) if is_back else (tail, head)
    direction = ("back" if is_back else "forward") if has_arrow else "none"
    return f'  {quoted(first)} -> {quoted(second)} [dir="{direction}"]\n'
