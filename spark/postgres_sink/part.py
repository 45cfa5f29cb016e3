"""The committable that a writer hands over at a barrier, the names of rows that it has staged; and
the one that a task that has moved them passes on, how many they are.

Decides the plain forms of both. Used in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from epochgate.runtime import CommittableBatch, CommittableOperator, Committables
from epochgate.spark.counting_sink import read_committables

_KEY: Final = "epochgate.moved"


@dataclass(frozen=True)
class Part:
    """Rows that one COPY has staged: a name that no other COPY uses, how many, their columns."""

    name: str
    rows: int
    columns: tuple[str, ...]

    def to_list(self) -> list[Any]:
        """A list of plain values, for msgpack and JSON."""
        return [self.name, self.rows, list(self.columns)]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Part:
        """Inverse of `to_list`; TypeError or ValueError for anything else."""
        name, rows, columns = values
        if not isinstance(columns, list):
            raise TypeError(f"not a list of columns: {columns!r}")
        return cls(str(name), int(rows), tuple(str(column) for column in columns))


@dataclass(frozen=True)
class Moved:
    """The number of rows that a task has moved."""

    rows: int

    def to_plain(self) -> dict[str, int]:
        """A plain value, for msgpack."""
        return {_KEY: self.rows}

    @classmethod
    def from_plain(cls, value: Any) -> Moved:
        """Inverse of `to_plain`; KeyError, TypeError or ValueError for anything else."""
        return cls(int(value[_KEY]))


class PassingOn(CommittableOperator):
    """Behind the committer of a task: puts the number of rows in the place of their names."""

    def open(self, state: bytes | None) -> None:
        """There is no state."""

    def process(self, batch: CommittableBatch) -> Committables:
        """One value for each subtask that has moved rows."""
        return {
            subtask: [Moved(sum(Part.from_list(value).rows for value in values)).to_plain()]
            for subtask, values in batch.committables.items()
            if values
        }


def parted(committables: Committables) -> tuple[dict[int, list[Part]], dict[int, int]]:
    """Return the rows that each subtask has staged, and how many of them its task has moved. Raises
    CommittableUnreadable.
    """
    staged: dict[int, list[Part]] = {}
    moved: dict[int, int] = {}
    for subtask in committables:
        for one in read_committables({subtask: committables[subtask]}, _staged_or_moved):
            if isinstance(one, Part):
                staged.setdefault(subtask, []).append(one)
            else:
                moved[subtask] = moved.get(subtask, 0) + one.rows
    return staged, moved


def _staged_or_moved(value: Any) -> Part | Moved:
    return Moved.from_plain(value) if isinstance(value, dict) else Part.from_list(value)
