"""What a user writes to have a sink certified: how to make one, and how an independent reader sees
what it has made visible.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from epochgate.runtime.api.rescaling import Redistribution, keep_nothing
from epochgate.runtime.api.sink import Sink

Row = int | Mapping[str, Any]


class SinkCase(ABC):
    """A sink under test; the name of the class heads the report.

    Every schedule gets a place of its own, an empty directory; a sink that does not write to a file
    system takes the directory's name for its table, bucket or topic.
    """

    clients: ClassVar[Sequence[str]] = ()
    """What makes clients of a store, as `psycopg:connect`: each call of one is a fault point."""
    calls: ClassVar[Sequence[str]] = ()
    """Single functions or methods that write, as `pyarrow.parquet:write_table`: fault points too.
    """
    redistribute: Redistribution = staticmethod(keep_nothing)
    """For another parallelism: of the writers' states (`SinkWriter.snapshot`)."""

    @abstractmethod
    def sink(self, place: Path) -> Sink:
        """Make the sink of one start; called for each, as each is another process."""

    @abstractmethod
    def rows(self, place: Path) -> Iterable[Row]:
        """Every row that a reader sees now, in any order: as a mapping, or its `number` alone.

        Read as readers do, and not through the sink; a place without anything yet has no rows.
        """

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        """Make what `SinkWriter.write` gets of rows such as `{"number": 7, "text": "row 7"}`."""
        import pyarrow as pa

        return pa.RecordBatch.from_pylist(rows)

    def error(self) -> Exception:
        """Make what a client raises whose store cannot be reached; files raise OSError."""
        return ConnectionError("the store cannot be reached (made by certify-sink)")

    def staged(self, place: Path) -> Iterable[str] | None:
        """Name everything that lies there and is not visible, for nothing to be left behind; none:
        this is not checked.
        """
        return None

    def kept(self, place: Path) -> int | None:
        """Count what the sink keeps to recognize what it has committed, such as the rows of its
        ledger, for its history to be bounded; none: this is not checked.
        """
        return None

    def remove(self, place: Path) -> None:
        """Remove what a schedule has left; by default the directory."""
        shutil.rmtree(place, ignore_errors=True)


def expected_row(number: int) -> dict[str, Any]:
    """The row of a number, as `SinkCase.rows` has to see it."""
    return {"number": number, "text": f"row {number}"}
