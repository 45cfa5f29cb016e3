"""A machine as a Graphviz picture: states as boxes, and a card of rows on each way between them.

A card is a node of its own, so that the layout finds room for its text: the trigger in bold, the
condition in brackets, the actions after a slash, the reason in grey. An open head marks the way
into a card, a full one the way out of it into a state. `forms` gives the picture in full and then
folded step by step; the layout takes the first that fits a page.
"""

from __future__ import annotations

import html
import importlib.util
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from epochgate.diagrams import theme
from epochgate.diagrams.description import Description, Mark, Painting
from epochgate.diagrams.layout import FONT, unavailable
from epochgate.diagrams.passages import (
    Shared,
    described,
    guards,
    inner,
    passages,
    reason,
    shared,
    spaced,
)
from epochgate.diagrams.theme import CARD_FILL, CARD_LINE, INK, SOFT
from epochgate.fsm import Row

if TYPE_CHECKING:
    from graphviz import Digraph

FULL, GUARDS, TRIGGERS = "full", "guards", "triggers"
"""The columns of a row that a card shows: all, those with the condition, or the trigger alone."""
FORMS = (
    *((FULL, 40), (FULL, 32), (FULL, 26)),
    *((GUARDS, 34), (GUARDS, 26), (TRIGGERS, 30), (TRIGGERS, 22)),
)
"""The details of a card and the length of its lines, from the most to the least."""
START, SHARED = "the start", "the shared rows"
LEFT = '<BR ALIGN="LEFT"/>'
REST = "<TD></TD>" * 20
"""The end of a line of a legend: cells share the room that is left, and most of it is here."""


def digraph(name: str, title: str, **settings: str) -> Digraph:
    """An empty picture: its title, and how its nodes and edges look unless they say otherwise.

    Raises LayoutUnavailable when the package graphviz, which writes and quotes DOT, is missing.
    """
    if importlib.util.find_spec("graphviz") is None:
        raise unavailable("the package graphviz, which writes its source, is not installed")
    import graphviz

    about = {"bgcolor": "white", "label": title, "labeljust": "l", "labelloc": "t", "pad": "0.1"}
    spread = {"nodesep": "0.22", "rankdir": "TB", "ranksep": "0.3"}
    text = {"fontcolor": INK, "fontname": FONT}
    line = {"arrowsize": "0.75", "color": theme.NORMAL, "fontsize": "10", "penwidth": "1.3"}
    return graphviz.Digraph(
        graphviz.escape(name),
        graph_attr=text | about | spread | settings,
        node_attr=text | {"fontsize": "11", "shape": "plain"},
        edge_attr=text | line,
    )


def node_name(name: str) -> str:
    """The name of a state or machine as that of a node, percent-encoded: a colon would begin a
    port, and what has no blank is never the name of a card. "=" is in the place of "%", since a
    name that begins with that is none to Graphviz.

    >>> node_name("half_open"), node_name("a: b")
    ('half_open', 'a=3A=20b')
    """
    return quote(name, safe="").replace("%", "=")


def escape(text: str) -> str:
    """Escape text for a label, where Graphviz reads backslashes as well as HTML."""
    return html.escape(text).replace("\\", "\\\\")


def font(text: str, color: str = "", size: int = 0) -> str:
    """Text that is already escaped, in a colour and a size."""
    settings = f' COLOR="{color}"' if color else ""
    settings += f' POINT-SIZE="{size}"' if size else ""
    return f"<FONT{settings}>{text}</FONT>" if settings else text


def titled(title: str, subtitle: str, legend: Sequence[str]) -> str:
    """The title of a picture, and its legend below it."""
    lines = [
        f"{font(f'<B>{escape(title)}</B>', size=18)}{font('  ' + escape(subtitle), SOFT, 12)}",
        *(
            f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1"><TR>{line}'
            f"{REST}</TR></TABLE>"
            for line in legend
        ),
    ]
    rows = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines)
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="1">{rows}</TABLE>'
    return f"<{table}>"


def sample(words: str, look: str, inside: str = "", width: int = 20) -> str:
    """One entry of a legend: a small box that looks like what it stands for, and words."""
    box = (
        f'<TABLE CELLBORDER="0" CELLPADDING="0" CELLSPACING="0" {look} FIXEDSIZE="TRUE" '
        f'WIDTH="{width}" HEIGHT="12"><TR><TD>{inside}</TD></TR></TABLE>'
    )
    return f'<TD>{box}</TD><TD ALIGN="LEFT">{font(escape(words), SOFT, 10)}</TD>'


def line_samples(kinds: Iterable[str]) -> Iterable[str]:
    """The entries for these kinds of ways."""
    used = {*kinds}
    for kind, (color, style) in theme.WAYS.items():
        if kind in used:
            yield (
                f'<TD><TABLE BORDER="0" CELLBORDER="2" CELLPADDING="0" CELLSPACING="0"><TR>'
                f'<TD SIDES="B" COLOR="{color}" STYLE="{style}" WIDTH="24" '
                f'HEIGHT="6" FIXEDSIZE="TRUE"></TD></TR><TR><TD BORDER="0" HEIGHT="6" '
                f'FIXEDSIZE="TRUE" WIDTH="24"></TD></TR></TABLE></TD>'
                f'<TD ALIGN="LEFT">{font(kind, SOFT, 10)}</TD>'
            )


@dataclass(frozen=True)
class Picture:
    """The picture of one machine in one of its forms."""

    machine: Description
    painting: Painting = field(default_factory=lambda: Painting(""))
    detail: str = FULL
    characters_max: int = 40

    def dot(self) -> str:
        """The DOT source."""
        machine = self.machine
        graph = digraph(machine.name, self._title())
        dot = {"shape": "circle", "style": "filled", "width": "0.14"}
        graph.node(START, "", color=INK, fillcolor=INK, **dot)
        for state in machine.states:
            self._add_state(graph, state)
        graph.edge(START, node_name(machine.initial))
        order = {state: number for number, state in enumerate(machine.states)}
        for number, passage in enumerate(passages(machine)):
            middle, dest = f"passage {number}", node_name(passage.dest)
            graph.node(middle, _card(f"<TR>{self._rows(passage.rows, passage.sources)}</TR>"))
            # A way back must not push its source above its dest.
            is_back = {source: order[source] > order[passage.dest] for source in passage.sources}
            for source in passage.sources:
                shown = self._look(passage.rows, [source]) | {"arrowhead": "vee"}
                _add_line(graph, node_name(source), middle, is_back[source], shown)
            shown = self._look(passage.rows, passage.sources)
            _add_line(graph, middle, dest, all(is_back.values()), shown)
        if groups := shared(machine):
            graph.node(SHARED, self._shared(groups))
            # Below everything: at the top a tall card would push the initial state down.
            graph.edge(node_name(machine.states[-1]), SHARED, style="invis")
        return "".join(graph)

    def _title(self) -> str:
        machine, legend = self.machine, list[str]()
        state = f'BORDER="1" STYLE="ROUNDED" BGCOLOR="{theme.STATE_FILL}"'
        end = f'BGCOLOR="{theme.TERMINAL_FILL}" COLOR="{theme.TERMINAL_LINE}"'
        first = [
            sample("begin", f'BORDER="0" STYLE="ROUNDED" BGCOLOR="{INK}"', width=12),
            sample("state", f'{state} COLOR="{theme.STATE_LINE}"'),
        ]
        if machine.terminal:
            first.append(
                f'<TD><TABLE BORDER="1" CELLBORDER="1" CELLPADDING="0" CELLSPACING="2" {end}>'
                f'<TR><TD WIDTH="14" HEIGHT="6" FIXEDSIZE="TRUE"></TD></TR></TABLE></TD>'
                f'<TD ALIGN="LEFT">{font("end", SOFT, 10)}</TD>'
            )
        rows = (row for row in machine.rows if not row.is_ignored)
        legend.append("".join([*first, *line_samples(_way([row]) for row in rows)]))
        words = {
            FULL: "<B>event</B> [condition] / actions, and the reason below",
            GUARDS: "<B>event</B> [condition]; actions and reasons are in the table",
            TRIGGERS: "<B>events</B>; conditions, actions and reasons are in the table",
        }[self.detail]
        legend.append(f'<TD ALIGN="LEFT">{font(words, SOFT, 10)}</TD>')
        if self.painting.subject:
            painted = self.painting
            marks = *painted.rows.values(), *painted.states.values(), *painted.places.values()
            used = {mark.paint for mark in marks}
            subject = escape(self.painting.subject) + (":" if used - {""} else "")
            cells = [f"<TD>{font(subject, SOFT, 10)}</TD>"]
            for paint, (ink, fill) in theme.PAINTS.items():
                if paint in used:
                    word = "never taken" if paint == "never" else paint
                    cells.append(f'<TD BGCOLOR="{fill}">{font(word, ink, 10)}</TD>')
            legend.append("".join(cells))
        return titled(spaced(machine.name), machine.title + machine.each, legend)

    def _look(self, rows: Sequence[Row], sources: Sequence[str]) -> dict[str, str]:
        paints = {self.painting.on(row, sources).paint for row in rows}
        color, style = theme.WAYS[_way(rows)]
        if len(paints) == 1 and (paint := paints.pop()):
            color = theme.PAINTS[paint][0]
        return look(color, style)

    def _add_state(self, graph: Digraph, state: str) -> None:
        machine, mark = self.machine, self.painting.states.get(state)
        is_terminal = state in machine.terminal
        fill = theme.TERMINAL_FILL if is_terminal else theme.STATE_FILL
        line = theme.TERMINAL_LINE if is_terminal else theme.STATE_LINE
        kind = theme.way(state)
        if is_terminal and kind != "normal":
            line = theme.WAYS[kind][0]
        note = ""
        if mark is not None and mark.paint:
            line, fill = theme.PAINTS[mark.paint]
            note = LEFT.join(["", font(escape(mark.note), line, 10)])
        title = font(f"<B>{escape(spaced(state))}</B>", size=14)
        rows = inner(machine, state)
        body = f"<HR/><TR>{self._rows(rows, [state])}</TR>" if rows else ""
        label = (
            f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="4" CELLSPACING="0">'
            f"<TR><TD>{title}{note}</TD></TR>{body}</TABLE>"
        )
        box = {"shape": "box", "style": "rounded,filled", "margin": "0.08,0.04"}
        box |= {"peripheries": "2"} if is_terminal else {}
        name = node_name(state)
        graph.node(name, f"<{label}>", color=line, fillcolor=fill, penwidth="1.4", **box)

    def _shared(self, groups: Sequence[Shared]) -> str:
        """The card of what several states take without being left."""
        parts = []
        for group in groups:
            told = broken(described(self.machine, group.states), "", self.characters_max)
            title = LEFT.join(font(f"<B>{escape(line)}</B>", size=11) for line in told) + LEFT
            parts += [f'<TD ALIGN="LEFT">{title}</TD>', self._rows(group.rows, group.states)]
        return _card("".join(f"<TR>{part}</TR>" for part in parts))

    def _rows(self, rows: Sequence[Row], states: Sequence[str]) -> str:
        """Several rows as one left-aligned table cell; painted ones in cells of their own."""
        cells = list[tuple[str, list[str]]]()
        for paint, text in self._texts([(row, self.painting.on(row, states)) for row in rows]):
            if not cells or cells[-1][0] != paint:
                cells.append((paint, []))
            cells[-1][1].append(text)
        gap = font(f" {LEFT}", size=4)
        settings = 'ALIGN="LEFT" BALIGN="LEFT"'
        inside = "".join(
            f"<TR><TD {settings}{_ground(paint)}>{font(gap.join(texts), size=10)}</TD></TR>"
            for paint, texts in cells
        )
        if len(cells) == 1 and not cells[0][0]:
            return inside.removeprefix("<TR>").removesuffix("</TR>")
        return (
            f'<TD><TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3" CELLSPACING="1">{inside}'
            f"</TABLE></TD>"
        )

    def _texts(self, rows: Sequence[tuple[Row, Mark]]) -> Iterable[tuple[str, str]]:
        """The texts of rows, each with its paint; without details those of one kind together."""
        if self.detail != TRIGGERS:
            for row, mark in rows:
                yield mark.paint, LEFT.join(self._lines(row, mark)) + LEFT
            return
        groups: dict[tuple[str, str], dict[str, None]] = {}
        for row, mark in rows:
            name = f"{spaced(row.trigger)} {mark.word}".strip()
            groups.setdefault((mark.paint, _way([row])), {})[name] = None
        for (paint, kind), names in groups.items():
            ink = theme.PAINTS[paint][0] if paint else theme.WAYS[kind][0]
            lines = broken_list(names, self.characters_max)
            yield paint, LEFT.join(font(f"<B>{escape(x)}</B>", ink) for x in lines) + LEFT

    def _lines(self, row: Row, mark: Mark) -> Iterable[str]:
        """One row as the HTML of its lines."""
        most = self.characters_max
        is_behind = self.painting.is_partial and not mark.paint
        ink = theme.PAINTS[mark.paint][0] if mark.paint else theme.WAYS[_way([row])][0]
        trigger, condition = spaced(row.trigger), guards(row)
        first = font(f"<B>{escape(trigger)}</B>", SOFT if is_behind else ink)
        if condition:
            head, *rest = broken(f"[{condition}]", f"{trigger} ", most)
            yield f"{first} {escape(head)}"
            yield from map(escape, rest)
        else:
            yield first
        if self.detail == FULL and not is_behind:
            if row.is_ignored:
                yield "/ ignored"
            if row.actions:
                yield from map(escape, broken("/ " + ", ".join(map(spaced, row.actions)), "", most))
            for line in broken(reason(row), "", most):
                yield font(escape(line), SOFT)
        note = mark.note if self.detail == FULL or mark.paint else mark.word
        for line in broken(note, "", most):
            yield font(f"<B>{escape(line)}</B>", ink if mark.paint else SOFT)


def forms(machine: Description, painting: Painting | None = None) -> tuple[str, ...]:
    """The DOT sources of a machine's picture, from the fullest to the most folded."""
    chosen = Painting("") if painting is None else painting
    return tuple(Picture(machine, chosen, *form).dot() for form in FORMS)


def look(color: str, style: str) -> dict[str, str]:
    """The attributes of a line."""
    return {"color": color, "style": style} | ({"penwidth": "2.2"} if style == "dotted" else {})


def broken(text: str, before: str = "", characters_max: int = 40) -> list[str]:
    """Break a text into lines of at most that many characters; `before` stands in the first."""
    lines = textwrap.wrap(before + text, characters_max, break_long_words=False)
    return [line[len(before) :] if i == 0 else line for i, line in enumerate(lines)]


def broken_list(names: Iterable[str], characters_max: int) -> list[str]:
    """Break a list of names into lines, each name in one of them."""
    whole = ", ".join(name.replace(" ", "\u00a0") for name in names)
    return [line.replace("\u00a0", " ") for line in broken(whole, "", characters_max)]


def _card(rows: str) -> str:
    """The label of a card."""
    return (
        f'<<TABLE BORDER="1" STYLE="ROUNDED" CELLBORDER="0" CELLPADDING="3" CELLSPACING="1" '
        f'BGCOLOR="{CARD_FILL}" COLOR="{CARD_LINE}">{rows}</TABLE>>'
    )


def _way(rows: Sequence[Row]) -> str:
    """The kind of a way: that of its rows, or of most of them."""
    kinds = [theme.way(row.trigger, row.dest or "") for row in rows]
    return max(theme.WAYS, key=kinds.count)


def _ground(paint: str) -> str:
    return f' BGCOLOR="{theme.PAINTS[paint][1]}"' if paint else ""


def _add_line(graph: Digraph, tail: str, head: str, is_back: bool, shown: dict[str, str]) -> None:
    """Add one edge; a way back is drawn from its head, which is what the layout ranks by."""
    if not is_back:
        graph.edge(tail, head, **shown)
        return
    turned = {key.replace("arrowhead", "arrowtail"): value for key, value in shown.items()}
    graph.edge(head, tail, dir="back", **turned)
