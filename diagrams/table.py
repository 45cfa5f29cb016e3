"""A machine as Markdown tables: every row, and what every event does in every state.

The second table is the full product of states and triggers; committed, it is the snapshot that a
review and a test compare with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from epochgate.diagrams.description import Description, Mark, Painting
from epochgate.diagrams.passages import described, reason
from epochgate.fsm import Handling, Row
from epochgate.fsm.table import handling

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


def source_text(machine: Description, row: Row) -> str:
    """The source states of a row."""
    states = machine.sources(row)
    if len(states) < 2:
        return code(states)
    told = described(machine, states).removeprefix("in ")
    return told if told.startswith("every") else code(states)


def row_cells(machine: Description, row: Row) -> list[str]:
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


def product_lines(machine: Description) -> list[str]:
    """The table of all states and triggers."""
    head = ["", *(f"`{state}`" for state in machine.states)]
    rows = [
        [f"`{trigger}`", *(WORDS[_handling(machine, state, trigger)] for state in machine.states)]
        for trigger in machine.triggers()
    ]
    return table(head, rows)


def _handling(machine: Description, state: str, trigger: str) -> Handling:
    rows = (row for row in machine.rows if row.trigger == trigger)
    return handling(tuple(row for row in rows if state in machine.sources(row)))


def machine_table(
    machine: Description, picture: str | None = None, painting: Painting | None = None
) -> str:
    """The Markdown page of one machine; `picture` is the file to show at its top."""
    name = machine.name
    ends = f"; ends in {code(machine.terminal)}" if machine.terminal else ""
    lines = [f"# {name}", "", machine.about, ""] if machine.about else [f"# {name}", ""]
    lines += [f"`{machine.title}`{machine.each}. Begins in `{machine.initial}`{ends}.", ""]
    if picture:
        lines += [f"![The states of {name}]({picture})", ""]
    head = ["trigger", "in", "to", "when", "does", "because"]
    rows = [row_cells(machine, row) for row in machine.rows]
    if painting is not None:
        head.append(painting.subject)
        notes = (painting.rows.get(row) for row in machine.rows)
        rows = [[*r, _told(mark)] for r, mark in zip(rows, notes, strict=True)]
    lines += ["## Rows", "", *table(head, rows), ""]
    legend = LEGEND_READ if machine.is_read else LEGEND
    lines += ["## Every event in every state", "", *product_lines(machine), "", legend]
    return "\n".join(lines) + "\n"


def _told(mark: Mark | None) -> str:
    if mark is None:
        return ""
    return f"**{cell(mark.note)}**" if mark.paint else cell(mark.note)
