"""Changes of a machine since another revision: its states, its rows, and the text of its guards and
actions, painted on one picture of both, and told as Markdown.

A row that only one side has is added or removed. Rows that agree in enough columns are one row that
has changed, and so is a row of which a guard or an action, or a method that these call, has another
text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from epochgate.diagrams.description import Description, Mark, Painting
from epochgate.diagrams.passages import spaced
from epochgate.fsm import Row

ALIKE: tuple[Callable[[Row], tuple[object, ...]], ...] = (
    lambda row: (row.trigger, row.dest, row.because),
    lambda row: (row.trigger, row.source, row.dest),
    lambda row: (row.trigger, row.source, row.when),
    lambda row: (row.trigger, row.because),
)
"""The columns in which two rows agree that are one row that has changed, the closest first."""
COLUMNS = ("source", "dest", "when", "after", "because")


@dataclass(frozen=True)
class Difference:
    """A machine before and after, None where it is not there; `pairs` has the rows of both sides
    that belong together, and `bodies` the methods whose text differs.
    """

    before: Description | None
    after: Description | None
    pairs: tuple[tuple[Row, Row], ...]
    bodies: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the machine."""
        return self._present.name

    @property
    def _present(self) -> Description:
        found = self.after or self.before
        assert found is not None, "one side has it"
        return found

    def rows(self, side: Description | None) -> list[Row]:
        """Return the rows of one side that the other does not have."""
        known = {row for pair in self.pairs for row in pair}
        return [] if side is None else [row for row in side.rows if row not in known]

    def states(self) -> tuple[list[str], list[str]]:
        """Return the states that were added, and those that were removed."""
        old = self.before.states if self.before else ()
        new = self.after.states if self.after else ()
        return [s for s in new if s not in old], [s for s in old if s not in new]

    def is_there(self) -> bool:
        """Return true if anything has changed."""
        return bool(
            self.before is None
            or self.after is None
            or self.bodies
            or any(self.states())
            or any(old != new for old, new in self.pairs)
            or [*self.rows(self.before), *self.rows(self.after)]
            or [*self._others()]
        )

    def picture(self) -> tuple[Description, Painting]:
        """The machine of both sides, and what is painted on it."""
        added, removed = self.states()
        marks: dict[Row, Mark] = {}
        for old, new in self.pairs:
            if note := self._changed(old, new):
                marks[new] = Mark("changed", note, "changed")
        marks |= {row: Mark("added", "added", "added") for row in self.rows(self.after)}
        gone = self.rows(self.before)
        marks |= {row: Mark("removed", "removed", "removed") for row in gone}
        states = {state: Mark("added", "added") for state in added}
        states |= {state: Mark("removed", "removed") for state in removed}
        present = self._present
        if self.after is not None and self.before is not None:
            ends = (s for s in self.before.terminal if s in removed)
            present = replace(
                present,
                states=(*present.states, *removed),
                terminal=(*present.terminal, *ends),
                rows=(*present.rows, *gone),
                drawn_ignored=frozenset(row for row in marks if row.is_ignored),
            )
        return present, Painting("change", marks, states, is_partial=True)

    def _changed(self, old: Row, new: Row) -> str:
        """Tell the changes of a row in words; empty if there are none."""
        notes = []
        for column in COLUMNS:
            was, now = getattr(old, column), getattr(new, column)
            if was != now:
                told = ", ".join(was) if isinstance(was, tuple) else was
                absent = "to stay" if column == "dest" else "nothing"
                notes.append(f"{_HEADS[column]} was {spaced(told) if told else absent}")
        called = _called(self._present.bodies, (*(n for n, _ in new.literals), *new.actions))
        if bodies := [name for name in self.bodies if name in called]:
            notes.append(f"text of {', '.join(map(spaced, bodies))} has changed")
        return "; ".join(notes)

    def _others(self) -> Iterator[str]:
        """Tell all other changes, as lines of a diff."""
        if self.before is None or self.after is None:
            return
        for told, was, now in (
            ("begins in", self.before.initial, self.after.initial),
            ("ends in", ", ".join(self.before.terminal), ", ".join(self.after.terminal)),
            ("one for each", ", ".join(self.before.index), ", ".join(self.after.index)),
        ):
            if was != now:
                yield from (f"- {told} {was}", f"+ {told} {now}")
        old, new = self.before.fields, self.after.fields
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                yield from (f"- field {name}: {old[name]}",) if name in old else ()
                yield from (f"+ field {name}: {new[name]}",) if name in new else ()

    def markdown(self) -> str:
        """The section about the machine in a comment on a pull request."""
        added, removed = self.states()
        lines = [f"- state {state}" for state in removed] + [f"+ state {state}" for state in added]
        lines += self._others()
        for old, new in self.pairs:
            if old != new:
                lines += [f"- {_told(old)}", f"+ {_told(new)}"]
            elif note := self._changed(old, new):
                lines.append(f"! {_told(new)}: {note}")
        lines += [f"- {_told(row)}" for row in self.rows(self.before)]
        lines += [f"+ {_told(row)}" for row in self.rows(self.after)]
        verb = "" if self.before and self.after else ", added" if self.after else ", removed"
        parts = [f"### {self.name}{verb}", "", "```diff", *lines, "```", ""]
        for name in self.bodies:
            parts += ["```diff", *self._body(name), "```", ""]
        return "\n".join(parts)

    def _body(self, name: str) -> Iterator[str]:
        old, new = (
            (side.texts.get(name, "") if side else "").splitlines()
            for side in (self.before, self.after)
        )
        yield from (line for line in difflib.ndiff(old, new) if not line.startswith("?"))


_HEADS = {
    "source": "source",
    "dest": "destination",
    "when": "condition",
    "after": "what it does",
    "because": "reason",
}


def differences(
    before: Mapping[str, Description], after: Mapping[str, Description]
) -> list[Difference]:
    """Return what has changed in each machine that has changed, in the order of `after`."""
    names = dict.fromkeys((*after, *before))
    found = (_difference(before.get(name), after.get(name)) for name in names)
    return [one for one in found if one.is_there()]


def _difference(before: Description | None, after: Description | None) -> Difference:
    if before is None or after is None:
        return Difference(before, after, (), ())
    old, new = [*before.rows], [*after.rows]
    pairs: list[tuple[Row, Row]] = []
    for key in (lambda row: row, *ALIKE):
        for row in [*new]:
            mate = next((one for one in old if key(one) == key(row)), None)
            if mate is not None and mate.is_ignored == row.is_ignored:
                pairs.append((mate, row))
                old.remove(mate)
                new.remove(row)
    names = dict.fromkeys((*after.bodies, *before.bodies))
    bodies = tuple(n for n in names if before.bodies.get(n) != after.bodies.get(n))
    return Difference(before, after, tuple(pairs), bodies)


def _called(bodies: Mapping[str, str], names: tuple[str, ...]) -> set[str]:
    """These methods, and those that they call."""
    found, frontier = set[str](), [*names]
    while frontier:
        name = frontier.pop()
        if name not in found:
            found.add(name)
            frontier += re.findall(r"\bself\.(\w+)\(", bodies.get(name, ""))
    return found


def _told(row: Row) -> str:
    """One row on one line of plain text."""
    sources = row.source if isinstance(row.source, str) else ", ".join(row.source)
    dest = "ignored" if row.is_ignored else f"-> {row.dest}" if row.dest else "stays"
    when = f" [{row.when}]" if row.when else ""
    after = f" / {', '.join(row.actions)}" if row.actions else ""
    return f"{row.trigger} in {sources} {dest}{when}{after} ({row.because})"
