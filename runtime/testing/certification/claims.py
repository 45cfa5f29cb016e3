"""The guarantees of a certified sink, and the judge of what a reader sees.

The judge knows which rows each completed checkpoint holds, from the checkpoints themselves. At any
moment a reader must see exactly the rows up to one of them, never fewer than before, each once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from epochgate.runtime.testing.certification.case import Row, expected_row

SOURCE = "rows"
"""The operator id of the program's source, whose states say which rows a checkpoint holds."""
ROWS_OF_LANE = 1000
"""Lane 1 begins with row 1000."""


class Guarantee(Enum):
    """The guarantees, in the order of the report."""

    COMPLETE = ("complete", "each row of a completed checkpoint is visible exactly once")
    ATOMIC = ("atomic", "a checkpoint is visible as a whole or not at all")
    EARLY = ("no early rows", "no row is visible before its checkpoint is complete")
    ORDER = ("order", "checkpoints become visible in order")
    REPLAY = (
        "idempotent replay",
        "calls repeated after a failure change nothing: no row is duplicated or lost",
    )
    FENCING = (
        "fencing",
        "an older driver or a replaced attempt that still runs cannot affect its successor",
    )
    BACK = (
        "older checkpoint",
        "a start from an older checkpoint withdraws newer rows if it may, or refuses",
    )
    RESCALING = ("rescaling", "a start with more or fewer subtasks changes no visible row")
    HISTORY = (
        "bounded history",
        "an old commit is still recognized, and the record of commits does not grow",
    )
    RECOVERY = ("recovery", "after the failure the job continues and ends")
    TIDY = ("no orphans", "no staged data outlives the job")

    def __init__(self, title: str, sentence: str) -> None:
        self.title, self.sentence = title, sentence


@dataclass(frozen=True)
class Broken:
    """A guarantee that does not hold."""

    guarantee: Guarantee
    finding: str
    seen: str
    expected: str


class Judge:
    """Of one schedule; `on_loss` names what is broken when rows are doubled or lost."""

    def __init__(self, on_loss: Guarantee) -> None:
        self.on_loss = on_loss
        self.lineage: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
        self.shown = 0
        self._left: frozenset[int] = frozenset()
        self._floor: int | None = None
        self._shown_before = 0

    def note(self, checkpoint: int, states: Iterable[bytes]) -> None:
        """A checkpoint is stored, with these states of the source."""
        rows: set[int] = set()
        for state in states:
            for lane, end in json.loads(state).items():
                first = int(lane) * ROWS_OF_LANE
                rows.update(range(first, first + end))
        self.lineage.append((checkpoint, frozenset(rows)))

    def goes_back(self, checkpoint: int, *, may_withdraw: bool) -> None:
        """A start from an older checkpoint begins; whether what came later may be withdrawn."""
        self._shown_before = self.shown
        if may_withdraw:
            self._floor = self._position(checkpoint)

    def is_ahead_of(self, checkpoint: int) -> bool:
        """Return whether a later checkpoint is visible, as far as a reader can tell."""
        return self.shown > self._position(checkpoint)

    def has_stayed(self) -> None:
        """The start was refused: everything must be as it was before it."""
        self.shown, self._floor = max(self.shown, self._shown_before), None

    def _position(self, checkpoint: int) -> int:
        return max(i for i, (number, _) in enumerate(self.lineage) if number <= checkpoint)

    def has_gone_back(self, checkpoint: int) -> None:
        """It has begun: what came later must be withdrawn."""
        self._left, self._floor = self.lineage[-1][1], None
        self.lineage = [entry for entry in self.lineage if entry[0] <= checkpoint]
        self.shown = min(self.shown, len(self.lineage) - 1)

    def require(self, checkpoint: int, moment: str) -> Broken | None:
        """Return what is broken unless this checkpoint is visible, whose commit has returned."""
        position = self._position(checkpoint)
        if self.shown >= position or self.lineage[position][1] == self.lineage[self.shown][1]:
            return None
        missing = self.lineage[position][1] - self.lineage[self.shown][1]
        return Broken(
            self.on_loss,
            f"commit({checkpoint}) has returned and {_rows(missing)} of it cannot be seen {moment}",
            _rows(self.lineage[self.shown][1]),
            _rows(self.lineage[position][1]),
        )

    def judge(self, rows: Iterable[Row], moment: str) -> Broken | None:
        """Return what is broken about what a reader sees at this moment."""
        found: list[int] = []
        for row in rows:
            if isinstance(row, int):
                found.append(row)
                continue
            number = row.get("number")
            if not isinstance(number, int) or dict(row) != expected_row(number):
                return Broken(
                    Guarantee.ATOMIC,
                    f"a row is not as it was written, {moment}",
                    repr(dict(row)),
                    repr(expected_row(number))
                    if isinstance(number, int)
                    else f"the columns 'number' and 'text', as in {expected_row(7)!r}",
                )
            found.append(number)
        counts = Counter(found)
        seen = frozenset(counts)
        least = self.shown if self._floor is None else min(self.shown, self._floor)
        for position in range(least, len(self.lineage)):
            if seen == self.lineage[position][1] and len(found) == len(seen):
                while (
                    position + 1 < len(self.lineage)
                    and self.lineage[position + 1][1] == self.lineage[position][1]
                ):
                    position += 1
                self.shown = position
                return None
        guarantee, finding = self._diagnosis(seen, counts)
        return Broken(guarantee, f"{finding} {moment}", _counted(counts), self._expected())

    def _diagnosis(self, seen: frozenset[int], counts: Counter[int]) -> tuple[Guarantee, str]:
        complete, visible = self.lineage[-1][1], self.lineage[self.shown][1]
        if doubled := {number for number, times in counts.items() if times > 1}:
            return self.on_loss, f"{_rows(doubled)} can be seen more than once"
        if lost := visible - seen:
            return self.on_loss, f"{_rows(lost)} could be seen before and cannot any more"
        if late := (seen - complete) & self._left:
            return self.on_loss, (
                f"{_rows(late)} can be seen, of checkpoints newer than the restored one,"
            )
        if early := seen - complete:
            return Guarantee.EARLY, f"{_rows(early)} can be seen and are in no completed checkpoint"
        gap = False
        for (_, before), (number, rows) in zip(self.lineage, self.lineage[1:], strict=False):
            new = rows - before
            if new & seen and new - seen:
                return (
                    Guarantee.ATOMIC,
                    f"of checkpoint {number}, {_rows(new & seen)} can be seen and "
                    f"{_rows(new - seen)} cannot",
                )
            if new & seen and gap:
                return (
                    Guarantee.ORDER,
                    f"checkpoint {number} can be seen, and one before it cannot",
                )
            gap = gap or bool(new - seen)
        return self.on_loss, "the rows are those of no checkpoint"

    def _expected(self) -> str:
        allowed = dict.fromkeys(_rows(rows) for _, rows in self.lineage[self.shown :])
        return ", or ".join(allowed)


def _counted(counts: Counter[int]) -> str:
    text = _rows(frozenset(counts))
    doubled = {number: times for number, times in counts.items() if times > 1}
    return text + "".join(
        f", {number} {'twice' if times == 2 else f'{times} times'}"
        for number, times in sorted(doubled.items())
    )


def _rows(numbers: Iterable[int]) -> str:
    """Rows as ranges.

    >>> _rows({0, 1, 2, 1000})
    'rows 0-2, 1000'
    """
    ordered = sorted(numbers)
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    parts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges]
    if not parts:
        return "no rows"
    return ("row " if len(ordered) == 1 else "rows ") + ", ".join(parts)
