"""The case of a sink that a user has certified: how to make one, and how an independent reader sees
what it has made visible.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from epochgate.errors import UsageError
from epochgate.runtime.api.rescaling import Redistribution, keep_nothing
from epochgate.runtime.api.sink import Sink

Row = int | Mapping[str, Any]


class CaseMisused(UsageError):
    """The case, and not its sink, cannot be used as it is."""


class SinkCase(ABC):
    """A sink under test; the name of the class heads the report.

    Each schedule gets a `place` of its own, an empty directory. A sink that does not write to a
    file system uses the directory's name as the name of its table, bucket or topic.
    """

    clients: ClassVar[Sequence[str]] = ()
    """Factories of clients, such as `psycopg:connect`: each call of a client is a fault point."""
    calls: ClassVar[Sequence[str]] = ()
    """Functions or methods that write, such as `pyarrow.parquet:write_table`: fault points too."""
    redistribute: Redistribution = staticmethod(keep_nothing)
    """Redistributes the writers' states (`SinkWriter.snapshot`) over another parallelism."""

    @abstractmethod
    def sink(self, place: Path) -> Sink:
        """Make the sink for one start of the driver; called again for each start."""

    @abstractmethod
    def rows(self, place: Path) -> Iterable[Row]:
        """Return every row that a reader sees now, in any order, as a mapping or as its `number`.

        Read as a reader of the target does, and not through the sink. Return no rows for a place
        in which the sink has made nothing yet.
        """

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        """Make the batch for `SinkWriter.write`, by default a pyarrow.RecordBatch.

        `rows` are mappings such as `{"number": 7, "text": "row 7"}`.
        """
        import pyarrow as pa

        return pa.RecordBatch.from_pylist(rows)

    def error(self) -> Exception:
        """Make the error of a client whose store is unreachable; files raise OSError."""
        return ConnectionError("the store cannot be reached (made by certify-sink)")

    def staged(self, place: Path) -> Iterable[str] | None:
        """Return the names of all staged data, which readers do not see, to check that none
        outlives the job. None: do not check this.
        """
        return None

    def kept(self, place: Path) -> int | None:
        """Return the number of records that the sink keeps to recognize old commits, such as the
        rows of its ledger, to check that it is bounded. None: do not check this.
        """
        return None

    def remove(self, place: Path) -> None:
        """Remove everything that a schedule has written; by default the directory."""
        shutil.rmtree(place, ignore_errors=True)


def expected_row(number: int) -> dict[str, Any]:
    """Return the row with this number as `SinkCase.rows` must return it."""
    return {"number": number, "text": f"row {number}"}


def batch_tried(case: SinkCase) -> None:
    """Make one batch. Raises CaseMisused if the case cannot."""
    try:
        case.batch([expected_row(0)])
    except ModuleNotFoundError as error:
        raise CaseMisused(
            f"{type(case).__name__}.batch cannot make a batch: {error}. Install {error.name}, or "
            "override `batch` in the case: it is given rows as dicts and returns what "
            "SinkWriter.write of the sink takes"
        ) from error


def rows_read(case: SinkCase, place: Path) -> list[Row]:
    """Read what a reader sees. Raises CaseMisused for a row that is neither a mapping nor a number,
    and what the case's `rows` raises.
    """
    rows = list(case.rows(place))
    for row in rows:
        if not isinstance(row, int | Mapping):
            raise CaseMisused(
                f"{type(case).__name__}.rows returned {row!r}, a {type(row).__name__}; it must "
                f"return each row as a mapping, such as {expected_row(7)!r}, or as its number "
                "alone, such as 7"
            )
    return rows
