"""Arrow types as Iceberg has them: what is converted comes back from the table as it was."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pyarrow as pa
import pytest

from epochgate.spark.tables.types import conformed
from epochgate.spark.values.errors import TypeNotInTable
from epochgate.spark.values.formats import ICEBERG
from tests.spark.tables.test_delta_types import VALUES
from tests.spark.tables.test_iceberg_target import claimed, library, stage

pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
OWN = [
    (pa.int16(), -7, -7),
    (pa.time32("s"), time(12, 30), time(12, 30)),
    (pa.time64("us"), time(12, 30, 0, 5), time(12, 30, 0, 5)),
]


def test_every_value_is_the_same_in_the_table(tmp_path: Path) -> None:
    values = [*VALUES, *OWN]
    arrays = [pa.array([value], kind) for kind, value, _ in values]
    batch = pa.RecordBatch.from_arrays(arrays, names=[f"c{at}" for at in range(len(values))])
    agreed = ICEBERG.schema(batch.schema)
    target = claimed(tmp_path, "r1")
    written = conformed(batch, agreed, "here")
    target.commit(1, stage(tmp_path, "r1", dict(zip(agreed.names, written.columns, strict=True))))
    found = library(tmp_path).scan().to_arrow().to_pylist()
    assert found == [{f"c{at}": expected for at, (_, _, expected) in enumerate(values)}]
    assert target.schema() == agreed, "a restart reads the schema from the catalog"
    target.release()


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.decimal256(50, 2)])
def test_a_type_that_iceberg_does_not_have_is_named(kind: pa.DataType) -> None:
    with pytest.raises(TypeNotInTable, match=r"Iceberg has no type for column 'c\.inner'"):
        ICEBERG.schema(pa.schema([("c", pa.struct([("inner", kind)]))]))
