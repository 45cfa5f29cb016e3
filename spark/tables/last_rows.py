"""The rows of a checkpoint that are merged into a table of files: of each key the last.

Decides which of several rows of a key counts: the greatest by the columns of the order, and that
rows of which none is the last are refused, unless they are the same. Reads staged files, of which
it holds the keys of all rows in memory, and the other columns batch by batch. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.tables.merge import DELETED, KeyAmbiguous, Merge, shown_key
from epochgate.spark.tables.staged import Staged

NUMBER: Final = "epochgate_number"
"""The column that numbers the rows of all files."""
BATCH_ROWS: Final = 65_536


class LastRows:
    """Those of staged files, which are as they were handed over; `shown` names the table."""

    def __init__(
        self, staged: Staged, files: Sequence[Committable], merge: Merge, shown: str
    ) -> None:
        """Raises OSError."""
        self._staged, self._files, self._merge, self._shown = staged, files, merge, shown
        found = pa.Table.from_batches(
            self._read([*merge.columns, DELETED]), self._schema([*merge.columns, DELETED])
        )
        numbered = found.append_column(NUMBER, pa.array(range(found.num_rows), pa.int64()))
        by = [(name, "ascending") for name in (*merge.columns, NUMBER)]
        self._sorted = numbered.take(pc.sort_indices(numbered, sort_keys=by))
        self._same_key = _same_as_next(self._sorted, merge.on)
        self.keys = self._sorted.filter(pc.invert(self._same_key))
        """Key, order, mark and number of the last row of each key."""

    def require_clear(self) -> None:
        """Raise KeyAmbiguous for different rows of one key of which none is the last."""
        same = pc.and_(self._same_key, _same_as_next(self._sorted, self._merge.order))
        numbers, tied = self._sorted[NUMBER], set[int]()
        places = pc.indices_nonzero(same).to_pylist()
        for place in reversed(places):
            if place + 1 in tied or not self._same_key[place + 1].as_py():
                tied.add(place)
        if not tied:
            return
        pairs = [(numbers[at].as_py(), numbers[at + 1].as_py(), at) for at in tied]
        rows = self._shown_rows({number for one, other, _ in pairs for number in (one, other)})
        for one, other, at in pairs:
            if rows[one] != rows[other]:
                row = self._sorted.slice(at, 1).to_pylist()[0]
                key = shown_key(self._merge.on, [row[name] for name in self._merge.on])
                raise KeyAmbiguous(self._shown, key)

    def batches(self, keys: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """The rows themselves, in the order of the files; or those of some `keys`."""
        numbers = (self.keys if keys is None else keys)[NUMBER].combine_chunks()
        begin = 0
        for batch in self._read():
            end = begin + batch.num_rows
            own = pa.array(range(begin, end), pa.int64())
            yield batch.filter(pc.is_in(own, value_set=numbers))
            begin = end

    def reader(self) -> pa.RecordBatchReader:
        """The same as a stream."""
        return pa.RecordBatchReader.from_batches(self._schema(), self.batches())

    def _schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        whole = self._staged.schema_of(self._files[0])
        return whole if columns is None else pa.schema([whole.field(name) for name in columns])

    def _read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        schema = self._schema(columns)
        for file in self._files:
            with pq.ParquetFile(self._staged.open(file)) as parquet:
                for batch in parquet.iter_batches(BATCH_ROWS, columns=columns):
                    yield batch.select(schema.names).cast(schema)

    def _shown_rows(self, numbers: set[int]) -> dict[int, str]:
        """The rows of these numbers as texts, which are the same if all their values are."""
        found: dict[int, str] = {}
        begin = 0
        for batch in self._read():
            end = begin + batch.num_rows
            own = sorted(number for number in numbers if begin <= number < end)
            rows = batch.take(pa.array([number - begin for number in own], pa.int64()))
            found |= zip(own, map(repr, rows.to_pylist()), strict=True)
            begin = end
        return found


def without_mark(schema: pa.Schema) -> pa.Schema:
    """The columns of the table, of those of a staged file."""
    return pa.schema([field for field in schema if field.name != DELETED])


def _same_as_next(rows: pa.Table, names: Sequence[str]) -> Any:
    """Of each row, whether the next one has the same values; the last one has no next."""
    count = max(0, rows.num_rows - 1)
    same = pa.chunked_array([pa.array([True] * count, pa.bool_())])
    for name in names:
        column = rows[name]
        same = pc.and_(same, pc.equal(column.slice(0, count), column.slice(1)))
    ends = [[False]] if rows.num_rows else []
    return pa.chunked_array([*same.chunks, *ends], pa.bool_())
