"""The overview: all machines, with an arrow for the triggers that one fires on another.

It is read from the text of guards and actions by the same walk that checks them, so an arrow is
there exactly when some action can fire. In a closed system the messages of a wired port lead to the
machine that handles them, and what its methods then fire leads on. Ports that are not wired,
through which a machine reaches the world, stand in its box. Machines that no arrow meets stand in a
grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochgate.diagrams import theme
from epochgate.diagrams.passages import spaced
from epochgate.diagrams.picture import (
    broken,
    broken_list,
    digraph,
    escape,
    font,
    line_samples,
    look,
    node_name,
    sample,
    titled,
)
from epochgate.diagrams.theme import CARD_FILL, CARD_LINE, SOFT
from epochgate.fsm import Machine, System
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.subset import Subset, check_system

if TYPE_CHECKING:
    from graphviz import Digraph

OVERVIEW, OTHERS = "overview", "others"
CHARACTERS_MAX = 26, 22, 18, 15
"""The length of the lines of a card, from the widest form of the overview to the narrowest."""
CELL_CHARACTERS_MAX = 24
COLUMNS = 4
"""Of the grid."""

Pair = tuple[str, str]
Arrows = Mapping[Pair, tuple[str, ...]]


def fired(system: type[System]) -> Arrows:
    """The triggers and messages that each machine sends to each other: (from, to) -> names, in a
    fixed order.
    """
    names = {machine: name for name, machine in system.MACHINES.items()}
    subset, found = check_system(system), dict[Pair, dict[str, None]]()
    for source, target, message in wired(system, subset):
        found.setdefault((source, target), {})[message] = None
    for step in subset.interactions():
        if step.target is not None and step.target is not step.machine:
            pair = names[step.machine], names[step.target]
            found.setdefault(pair, {})[step.name] = None
    order = [*names.values()]
    alphabet = {name: machine.triggers() for name, machine in system.MACHINES.items()}
    return {
        pair: (
            *(trigger for trigger in alphabet[pair[1]] if trigger in found[pair]),
            *(name for name in found[pair] if name not in alphabet[pair[1]]),
        )
        for pair in sorted(found, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    }


def wired(system: type[System], subset: Subset) -> Iterator[tuple[str, str, str]]:
    """The messages of wired ports as (from, to, message); their handlers are parsed as well, so
    that `subset` knows what these fire.
    """
    wiring = system.WIRING if issubclass(system, ClosedSystem) else {}
    for wire, target in wiring.items():
        source, _, port = wire.partition(".")
        machine = system.MACHINES[target]
        for message in system.MACHINES[source].PORTS[port].port.messages():
            yield source, target, message
            if message not in machine.triggers() and machine.IS_CHECKED:
                subset.tree(machine, message)


def unwired(system: type[System], name: str) -> list[str]:
    """The ports of a machine that lead out of the system."""
    wiring = system.WIRING if issubclass(system, ClosedSystem) else {}
    return [port for port in system.MACHINES[name].PORTS if f"{name}.{port}" not in wiring]


def overviews(systems: Sequence[type[System]]) -> dict[str, tuple[str, ...]]:
    """The DOT sources of each overview, from the widest form to the narrowest: of the systems whose
    machines trigger each other, and of all other machines, in a grid.
    """
    forms = [Overview(systems, characters_max) for characters_max in CHARACTERS_MAX]
    joined = tuple(form.joined() for form in forms)
    others = forms[0].others()
    if not any(joined):
        return {OVERVIEW: (others,)}
    return {OVERVIEW: joined} | ({OTHERS: (others,)} if others else {})


@dataclass(frozen=True)
class Overview:
    """The overviews of some systems; a machine that stands in several is shown where it is first,
    unless the machines of the later ones are all new.
    """

    systems: Sequence[type[System]]
    characters_max: int

    def _parted(self) -> Iterator[tuple[type[System], Arrows, list[str], bool]]:
        """Each system with its arrows, its new machines, and whether it is drawn as a whole."""
        shown = set[str]()
        for system in self.systems:
            arrows = fired(system)
            new = [name for name in system.MACHINES if name not in shown]
            shown |= {*new}
            yield system, arrows, new, bool(arrows) and len(new) == len(system.MACHINES)

    def joined(self) -> str:
        """The DOT source of the systems with arrows; empty if there is none."""
        whole = [(system, arrows) for system, arrows, _, is_whole in self._parted() if is_whole]
        if not whole:
            return ""
        named = (x for _, arrows in whole for names in arrows.values() for x in names)
        told = "on an arrow: what one machine fires or tells in another"
        name = " and ".join(system.__name__ for system, _ in whole)
        title = titled(name, "which machine triggers which", self._legend(told, named))
        graph = digraph(OVERVIEW, title, nodesep="0.15")
        for system, arrows in whole:
            self._join(graph, system, arrows)
        return "".join(graph)

    def others(self) -> str:
        """The DOT source of the grid; empty if there is nothing in it."""
        cells = [
            self._cell(name, system.MACHINES[name], _beside(arrows, name, system))
            for system, arrows, new, is_whole in self._parted()
            if not is_whole
            for name in new
        ]
        if not cells:
            return ""
        rows = (cells[at : at + COLUMNS] for at in range(0, len(cells), COLUMNS))
        lines = "".join(f"<TR>{''.join(row)}</TR>" for row in rows)
        told = "tells: through which ports it reaches the world"
        title = titled("machines", "that trigger no other", self._legend(told))
        graph = digraph(OTHERS, title)
        graph.node("others", f"<{_table(6)}{lines}</TABLE>>")
        return "".join(graph)

    def _legend(self, told: str, named: Iterable[str] = ()) -> list[str]:
        samples = [sample("machine", _look(theme.STATE_FILL, theme.STATE_LINE))]
        kinds = [machine for system in self.systems for machine in system.MACHINES.values()]
        if any(machine.IS_ENVIRONMENT for machine in kinds):
            box = _look(theme.TERMINAL_FILL, theme.TERMINAL_LINE)
            samples.append(sample("surroundings", box))
        text = f'<TD ALIGN="LEFT">{font(told, SOFT, 10)}</TD>'
        return ["".join([*samples, *line_samples(map(theme.way, named))]), text]

    def _join(self, graph: Digraph, system: type[System], arrows: Arrows) -> None:
        """Add the machines of a system, and the arrows between them."""
        met, first = {name for pair in arrows for name in pair}, next(iter(system.MACHINES))
        for name, machine in system.MACHINES.items():
            label = self._cell(name, machine, "", unwired(system, name))
            graph.node(node_name(name), f"<{_table(0)}<TR>{label}</TR></TABLE>>")
            if name not in met and name != first:
                graph.edge(node_name(first), node_name(name), style="invis")
        for (source, target), names in arrows.items():
            tail, head = node_name(source), node_name(target)
            middle, kinds = f"{tail} to {head}", [*map(theme.way, names)]
            graph.node(middle, f"<{self._listed(names)}>")
            shown = look(*theme.WAYS[max(theme.WAYS, key=kinds.count)])
            graph.edge(tail, middle, arrowhead="vee", **shown)
            graph.edge(middle, head, **shown)

    def _listed(self, names: Sequence[str]) -> str:
        """Names of triggers and messages as a card, each in the colour of its kind."""
        lines = list[str]()
        for kind, (color, _) in theme.WAYS.items():
            told = [spaced(name) for name in names if theme.way(name) == kind]
            lines += [font(escape(x), color) for x in broken_list(told, self.characters_max)]
        box = _look(CARD_FILL, CARD_LINE)
        text = font("<BR/>".join(lines), size=10)
        return f'<TABLE {box} CELLBORDER="0" CELLPADDING="3"><TR><TD>{text}</TD></TR></TABLE>'

    @staticmethod
    def _cell(
        name: str, machine: type[Machine], told: str, ports: Sequence[str] | None = None
    ) -> str:
        """The box of a machine: its name, how many there are, its ports, and a remark."""
        lines = [font(f"<B>{escape(spaced(name))}</B>", size=14)]
        if machine.INDEX:
            lines.append(font(f"for each {' and '.join(map(escape, machine.INDEX))}", size=10))
        ports = [*machine.PORTS] if ports is None else ports
        telling = f"tells: {', '.join(map(spaced, ports))}" if ports else ""
        for text in filter(None, (telling, told)):
            lines += [font(escape(x), SOFT, 10) for x in broken(text, "", CELL_CHARACTERS_MAX)]
        colors = theme.STATE_FILL, theme.STATE_LINE
        if machine.IS_ENVIRONMENT:
            colors = theme.TERMINAL_FILL, theme.TERMINAL_LINE
        return f"<TD {_look(*colors)}>{'<BR/>'.join(lines)}</TD>"


def _beside(arrows: Arrows, name: str, system: type[System]) -> str:
    """In words, in which variant of a system a machine stands, and beside which others."""
    if not arrows:
        return ""
    others = [*(b for a, b in arrows if a == name), *(a for a, b in arrows if b == name)]
    beside = f", beside {', '.join(map(spaced, dict.fromkeys(others)))}" if others else ""
    return f"in {system.__name__}{beside}"


def _table(space: int) -> str:
    return f'<TABLE BORDER="0" CELLBORDER="1" CELLPADDING="5" CELLSPACING="{space}">'


def _look(fill: str, line: str) -> str:
    return f'BORDER="1" STYLE="ROUNDED" BGCOLOR="{fill}" COLOR="{line}"'


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
