"""A machine as Markdown tables: every row, and what every event does in every state.

The second table is the full product of states and triggers; committed, it is the snapshot that a
review and a test compare with.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from epochgate.diagrams.passages import described, reason
from epochgate.fsm import Handling, Machine, Row, handling_table
from epochgate.fsm.declaration import expand

WORDS = {
    Handling.TAKEN: "**takes**",
    Handling.IGNORED: "ignores",
    Handling.PARTLY: "**partly**",
    Handling.REFUSED: "·",
}
LEGEND = (
    "**takes**: some row takes it, whatever the guards say. ignores: nothing happens, and the "
    "caller is told so. **partly**: refused when no row's guards hold. ·: refused, with an error "
    "that names what would be accepted."
)
LEGEND_READ = (
    "**takes**: some row takes it, whatever the guards say. ignores: nothing happens. **partly**: "
    "nothing happens when no row's guards hold. ·: refused, with an error of the library. Of "
    "several rows that hold, the first is taken."
)
"""Of a machine of another library."""


def cell(text: str) -> str:
    """Escape the text of a table cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of one Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def code(names: Iterable[str]) -> str:
    """Names as code, comma-separated."""
    return ", ".join(f"`{name}`" for name in names)


def source_text(machine: type[Machine], row: Row) -> str:
    """The source states of a row."""
    states = expand(machine.STATES, row)
    if len(states) < 2:
        return code(states)
    told = described(machine, states).removeprefix("in ")
    return told if told.startswith("every") else code(states)


def row_cells(machine: type[Machine], row: Row) -> list[str]:
    """One row of the table of rows."""
    dest = "*ignored*" if row.is_ignored else f"`{row.dest}`" if row.dest else "*stays*"
    condition = " and ".join(f"`{n}`" if held else f"not `{n}`" for n, held in row.literals)
    return [
        f"`{row.trigger}`",
        source_text(machine, row),
        dest,
        condition,
        code(row.actions),
        cell(reason(row)),
    ]


def product_lines(machine: type[Machine]) -> list[str]:
    """The table of all states and triggers."""
    cells = {(c.state, c.trigger): WORDS[c.handling] for c in handling_table(machine)}
    head = ["", *(f"`{state}`" for state in machine.STATES)]
    rows = [[f"`{t}`", *(cells[s, t] for s in machine.STATES)] for t in machine.triggers()]
    return table(head, rows)


def machine_table(name: str, machine: type[Machine], picture: str | None = None) -> str:
    """The Markdown page of one machine; `picture` is the file to show at its top."""
    each = f", one for each {' and '.join(machine.INDEX)}" if machine.INDEX else ""
    about = (inspect.getdoc(machine) or "").split("\n\n")[0].replace("\n", " ")
    ends = f"; ends in {code(machine.TERMINAL)}" if machine.TERMINAL else ""
    lines = [f"# {name}", "", about, ""] if about else [f"# {name}", ""]
    lines += [f"`{machine.__name__}`{each}. Begins in `{machine.INITIAL}`{ends}.", ""]
    if picture:
        lines += [f"![The states of {name}]({picture})", ""]
    head = ["trigger", "in", "to", "when", "does", "because"]
    lines += ["## Rows", "", *table(head, (row_cells(machine, row) for row in machine.ROWS)), ""]
    legend = LEGEND_READ if machine.IS_READ else LEGEND
    lines += ["## Every event in every state", "", *product_lines(machine), "", legend]
    return "\n".join(lines) + "\n"
