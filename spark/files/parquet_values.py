"""Values of Parquet files that Arrow would change, or hand on unseen: timestamps of the old type
INT96 that have nanoseconds, texts that are no UTF-8, and rows too long for a task's memory.

Decides that they are refused, the former two with the column, and how many rows are read at once.
INT96 is read as microseconds, because many of its timestamps, such as 9999-12-31, lie beyond
nanoseconds of 64 bits. Leaves to others which part of the file is bad then (`reader`). Runs in a
task.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from epochgate.spark.files.records import RECORD_BYTES_MAX

BATCH_BYTES = RECORD_BYTES_MAX
"""About as much is decompressed at once."""
_WAY_ON = "Write it again, or leave the column out: --columns (columns in Python) names those read"


def has_text(kind: pa.DataType) -> bool:
    """Return whether values of the type hold texts.

    >>> has_text(pa.list_(pa.string())), has_text(pa.binary())
    (True, False)
    """
    if pa.types.is_dictionary(kind):
        return has_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return has_text(kind.storage_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return is_text or pa.types.is_string_view(kind) or any(map(has_text, inner))


def rows_at_once(group: pq.RowGroupMetaData, batch_rows: int) -> int:
    """The rows of a batch: `batch_rows`, or fewer if rows are long, by the row group's mean.

    Raises ValueError if a row is longer than a record of text may be: a file of a few kilobytes can
    hold a value of gigabytes.
    """
    mean: int = max(0, group.total_byte_size) // max(1, group.num_rows)
    if mean > RECORD_BYTES_MAX:
        raise ValueError(
            f"a row has {mean} bytes on average, decompressed, and {RECORD_BYTES_MAX} are the most "
            "that a row may have. Write its long values elsewhere, or leave their columns out of "
            "the file"
        )
    return min(batch_rows, max(1, BATCH_BYTES // max(1, mean)))


def require_utf_8(batch: pa.RecordBatch) -> None:
    """Refuse bytes that are no UTF-8 where there should be text. Raises ValueError."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not has_text(field.type) or _is_ascii(column):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {field.name!r}: its text is no UTF-8. {_WAY_ON}") from error


def _is_ascii(column: pa.Array) -> bool:
    """Return whether that shows at once, which costs a tenth of looking at each text."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return True
    width = np.int32 if pa.types.is_string(column.type) else np.int64
    ends = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    return bool(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].max(initial=0) < 0x80)


def require_microseconds(
    coarse: pq.ParquetFile,
    opened: Callable[..., pq.ParquetFile],
    group: int,
    columns: Sequence[str],
    batch_rows: int,
) -> None:
    """Refuse a row group in which INT96 timestamps of these columns are no microseconds.

    coarse: the file with microseconds; opened: opens it with another `int96_unit`.
    Raises ValueError.
    """
    leaves = (coarse.schema.column(at) for at in range(len(coarse.schema)))
    if not any(leaf.physical_type == "INT96" for leaf in leaves):
        return
    with opened(int96_unit="ns") as fine, opened(int96_unit="s") as whole:
        names = [
            name
            for name in columns
            if fine.schema_arrow.field(name).type != coarse.schema_arrow.field(name).type
        ]
        readings = (
            file.iter_batches(batch_rows, [group], names, use_threads=False)
            for file in (fine, coarse, whole)
        )
        for batches in zip(*readings, strict=True):
            for name in names:
                _require_same(name, *(batch.column(name) for batch in batches))


def _require_same(name: str, fine: pa.Array, coarse: pa.Array, whole: pa.Array) -> None:
    """Refuse timestamps that are not the same in all units: nanoseconds wrap around far from 1970,
    as does a thousand times the microseconds; seconds do not.
    """
    units = (fine, coarse, whole)
    if pa.types.is_timestamp(coarse.type):
        ns, us, s = (array.view(pa.int64()) for array in units)
        begun = pc.floor_temporal(coarse, unit="second").cast(whole.type, safe=False)
        differs = pc.or_(
            pc.not_equal(pc.multiply(us, 1000), ns), pc.not_equal(begun.view(pa.int64()), s)
        )
        if pc.any(differs).as_py():
            raise ValueError(
                f"column {name!r} has a timestamp of the type INT96 with nanoseconds "
                f"(...{ns.filter(differs)[0].as_py() % 10**9:09d}), or one far beyond the year "
                f"9999; INT96 is read in microseconds. {_WAY_ON}"
            )
        return
    for part in _parts(coarse.type):
        _require_same(name, *(part(array) for array in units))


def _parts(kind: pa.DataType) -> Sequence[Callable[[Any], pa.Array]]:
    """Return the function that takes the arrays within an array of the type."""
    if pa.types.is_map(kind):
        return [operator.attrgetter("keys"), operator.attrgetter("items")]
    if pa.types.is_struct(kind):
        return [operator.methodcaller("field", at) for at in range(kind.num_fields)]
    return [operator.attrgetter("values")] if kind.num_fields else []
