"""Makes a closed system of processes that are given as data, with shared variables and handshakes,
as the benchmark BEEM has them.

All is one machine: a number for the place of each process, one for each variable, and a row for
each edge that a process takes alone and each pair of edges that two take together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADER = """\
from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step


class Processes(Environment):
    STATES, INITIAL = ("there",), "there"

"""


@dataclass(frozen=True)
class Edge:
    """From one place to another: a condition, what is done, `name!` or `name?` for a handshake, and
    the value that is sent or the variable that gets it.
    """

    source: str
    dest: str
    when: str = ""
    does: str = ""
    sync: str = ""


@dataclass(frozen=True)
class Processes:
    """Variables with their lowest, highest and first values, and the edges of each process, which
    begins where its first edge does.
    """

    variables: dict[str, tuple[int, int, int]]
    edges: dict[str, tuple[Edge, ...]]
    dead: str = ""
    """Why some steps are never taken, if that is so."""

    def steps(self) -> Iterator[tuple[list[str], list[str]]]:
        """The conditions and actions of each step."""
        for process, edges in self.edges.items():
            for edge in edges:
                if not edge.sync:
                    yield self._asked(process, edge), self._done(process, edge)
                elif "!" in edge.sync:
                    yield from self._together(process, edge)

    def _together(self, process: str, edge: Edge) -> Iterator[tuple[list[str], list[str]]]:
        channel, _, value = edge.sync.partition("!")
        for other, others in self.edges.items():
            for taken in others:
                heard, is_heard, variable = taken.sync.partition("?")
                if other != process and is_heard and heard == channel:
                    handed = [f"{variable} = {value}"] if variable else []
                    yield (
                        self._asked(process, edge) + self._asked(other, taken),
                        handed + self._done(process, edge) + self._done(other, taken),
                    )

    def places(self, process: str) -> list[str]:
        """The places of a process, the first one first."""
        named = [place for edge in self.edges[process] for place in (edge.source, edge.dest)]
        return list(dict.fromkeys(named))

    def _asked(self, process: str, edge: Edge) -> list[str]:
        at = f"at_{process} == {self.places(process).index(edge.source)}"
        return [at, edge.when] if edge.when else [at]

    def _done(self, process: str, edge: Edge) -> list[str]:
        does = [each.strip() for each in edge.does.split(";") if each]
        return [*does, f"at_{process} = {self.places(process).index(edge.dest)}"]


def source(processes: Processes) -> str:
    """The processes in the language of models."""
    fields = {
        **{f"at_{name}": (0, len(processes.places(name)) - 1, 0) for name in processes.edges},
        **processes.variables,
    }
    named = re.compile(rf"\b({'|'.join(fields)})\b")
    steps = [
        tuple([named.sub(r"self.\1", text) for text in texts] for texts in step)
        for step in processes.steps()
    ]
    lines = [
        f"    {name}: int = Int({high}, {start}, low={low})"
        for name, (low, high, start) in fields.items()
    ]
    lines += [f"    go_{number}: Trigger" for number in range(len(steps))]
    lines.append("    ROWS = (")
    lines += [
        f'        Row("go_{number}", "there", STAY, "may_{number}", "do_{number}", "it goes on"),'
        for number in range(len(steps))
    ]
    lines.append("    )")
    for number, (asked, done) in enumerate(steps):
        lines += [f"    def may_{number}(self) -> bool:", f"        return {' and '.join(asked)}"]
        lines += [f"    def do_{number}(self) -> None:", *(f"        {each}" for each in done)]
    listed = "".join(f'Step("all", "go_{number}"), ' for number in range(len(steps)))
    untaken = {f"all.go_{n}": processes.dead for n in range(len(steps)) if processes.dead}
    return (
        HEADER
        + "\n".join(lines)
        + f"\n\n\nclass System(ClosedSystem):\n    STEPS = ({listed})\n"
        + f"    UNTAKEN = {untaken}\n"
        + "    all: Processes = machines(Processes)\n"
    )
