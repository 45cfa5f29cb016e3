"""A machine as pictures, tables and comparisons see it: data, of this revision or of another, and
what is painted on its rows and states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochgate.diagrams.describing import data_of
from epochgate.fsm import Ignore, Machine, Row
from epochgate.fsm.declaration import expand


@dataclass(frozen=True)
class Description:
    """One machine. Of its methods `bodies` has by name what is compared, `texts` what is read;
    `fields` has the text of each field.
    """

    name: str
    title: str
    about: str
    index: tuple[str, ...]
    states: tuple[str, ...]
    initial: str
    terminal: tuple[str, ...]
    is_read: bool
    fields: Mapping[str, str]
    rows: tuple[Row, ...]
    bodies: Mapping[str, str]
    texts: Mapping[str, str]
    drawn_ignored: frozenset[Row] = frozenset()
    """Rows of ignored events that its picture has nevertheless."""

    @property
    def each(self) -> str:
        """The index of the instances, in words that follow the class; empty for a single one."""
        return f", one for each {' and '.join(self.index)}" if self.index else ""

    def sources(self, row: Row) -> tuple[str, ...]:
        """Return the states that a row begins in."""
        return expand(self.states, row)

    def triggers(self) -> tuple[str, ...]:
        """Return the triggers, in the order of the rows."""
        return tuple(dict.fromkeys(row.trigger for row in self.rows))


@dataclass(frozen=True)
class Mark:
    """A paint, which is a key of `theme.PAINTS` or "", a remark, and a word that stands
    for it in a folded picture.
    """

    paint: str
    note: str
    word: str = ""


UNPAINTED = Mark("", "")


@dataclass(frozen=True)
class Painting:
    """The paints of a machine: of a row in one of its states, or else of the row. With `is_partial`
    a row without a mark stands back.
    """

    subject: str
    rows: Mapping[Row, Mark] = field(default_factory=dict)
    states: Mapping[str, Mark] = field(default_factory=dict)
    places: Mapping[tuple[Row, str], Mark] = field(default_factory=dict)
    is_partial: bool = False

    def on(self, row: Row, states: Sequence[str]) -> Mark:
        """Return what is painted on a row where it is shown for these states."""
        of_row = self.rows.get(row, UNPAINTED)
        return self.places.get((row, states[0]), of_row) if len(states) == 1 else of_row


def of_data(data: Mapping[str, Any]) -> Description:
    """Read what `describing` has written."""
    return Description(
        name=data["name"],
        title=data["title"],
        about=data["about"],
        index=tuple(data["index"]),
        states=tuple(data["states"]),
        initial=data["initial"],
        terminal=tuple(data["terminal"]),
        is_read=data["is_read"],
        fields=data["fields"],
        rows=tuple(map(_row, data["rows"])),
        bodies={name: body for name, (body, _) in data["methods"].items()},
        texts={name: text for name, (_, text) in data["methods"].items()},
    )


def describe(machines: Mapping[str, type[Machine]]) -> dict[str, Description]:
    """Describe machines of this revision, by their names."""
    return {name: of_data(data_of(name, machine)) for name, machine in machines.items()}


def _row(data: Mapping[str, Any]) -> Row:
    source = tuple(data["source"])
    if data["is_ignored"]:
        return Ignore(data["trigger"], source, data["when"], data["because"])
    after = tuple(data["after"]) or None
    return Row(data["trigger"], source, data["dest"], data["when"], after, data["because"])
