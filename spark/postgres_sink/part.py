"""What a writer hands over at a barrier: the names of rows that it has staged.

Decides the plain form of a committable. Used in tasks and on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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
