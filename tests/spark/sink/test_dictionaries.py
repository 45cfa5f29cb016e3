"""A column keeps its dictionary as long as that makes its files smaller."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.spark.parquet_sink import Committable, StagingWriter

ROWS = 600_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("words", pa.list_(pa.string())),
    ]
)


def batch(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(range(rows), pa.int64()),
            "status": pa.array(["open", "paid", "sent"] * (rows // 3)),
            "words": pa.array([["a"], [], None] * (rows // 3), pa.list_(pa.string())),
        },
        schema=SCHEMA,
    )


def with_dictionaries(folder: Path, committable: Committable) -> set[str]:
    group = pq.read_metadata(folder / committable.path).row_group(0)
    columns = map(group.column, range(group.num_columns))
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def staged(writer: StagingWriter, checkpoint: int, *batches: pa.RecordBatch) -> Committable:
    for one in batches:
        writer.write(one)
    (committable,) = writer.prepare_commit(checkpoint)
    return committable


def test_distinct_values_lose_their_dictionary_and_others_keep_it(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    first, second, third = (staged(writer, number, batch(ROWS)) for number in (1, 2, 3))
    everything = {"id", "status", "words.list.element"}
    assert with_dictionaries(tmp_path, first) == everything
    assert with_dictionaries(tmp_path, second) == everything - {"id"}
    assert with_dictionaries(tmp_path, third) == everything - {"id"}
    assert second.size_bytes < first.size_bytes
    assert pq.read_table(tmp_path / second.path).equals(pa.Table.from_batches([batch(ROWS)]))


def test_a_file_of_few_rows_tells_nothing_of_the_next(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    staged(writer, 1, batch(300))
    assert "id" in with_dictionaries(tmp_path, staged(writer, 2, batch(ROWS)))


def test_another_schema_begins_with_all_dictionaries(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "r1", 0, 0)
    staged(writer, 1, batch(ROWS))
    longer = batch(ROWS).append_column("amount", pa.array([0.5] * ROWS))
    writer.change_schema(longer.schema)
    found = with_dictionaries(tmp_path, staged(writer, 2, longer))
    assert found == {"id", "status", "words.list.element", "amount"}
