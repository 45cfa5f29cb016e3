"""A merge writes files again: rows that stay, and rows that come, have the values that they had."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.ingest.simulated import SimulatedIngest, make_older, options_for
from tests.spark.tables import delta_replay, iceberg_replay

FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)
UTC = datetime.UTC
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [math.nan, -0.0, 5e-324, 1e308, -math.inf, None]),
    "float": (pa.float32(), [math.nan, -0.0, 1.5, 16777216.0, math.inf, None]),
    "price": (pa.decimal128(38, 9), [Decimal(text) for text in ("-0.5", "0", "1e-9", "9e28")]),
    "small": (pa.decimal128(5, 2), [Decimal(text) for text in ("-0.01", "0.00", "999.99")]),
    "whole": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1, 0, None]),
    "flag": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [FIRST.date(), LAST.date(), datetime.date(1582, 10, 10), None]),
    "at": (pa.timestamp("us", "UTC"), [LAST.replace(tzinfo=UTC), FIRST.replace(tzinfo=UTC), None]),
    "local": (pa.timestamp("us"), [LAST, FIRST, datetime.datetime(1969, 12, 31, 23), None]),
    "text": (pa.string(), ["", " ", "NULL", "caf\u00e9\U0001f600", "a\x00b", "\\N", "'\"`", None]),
    "bytes": (pa.binary(), [b"", b"\x00\xff", None]),
    "items": (pa.list_(pa.field("element", pa.int64())), [[], [1, None], None]),
    "entry": (
        pa.struct([("a", pa.string()), ("b", pa.float64())]),
        [{"a": None, "b": -0.0}, {"a": "", "b": math.nan}, None],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("", None), ("k", 1)], None]),
}
ROWS = 30


def rows(first: int, begin: int) -> pa.Table:
    """Rows with these keys, of which each column takes its values in turn from `begin` on."""
    made = {
        name: pa.array([values[(begin + n) % len(values)] for n in range(ROWS)], kind)
        for name, (kind, values) in COLUMNS.items()
    }
    return pa.table({"id": pa.array(range(first, first + ROWS), pa.int64()), **made})


@pytest.fixture(params=["delta", "delta, partitioned", "iceberg"])
def target(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """Options, and how the files are found."""
    if request.param == "iceberg":
        pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
        for name, value in iceberg_replay.catalog(tmp_path).items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
        given = {"target": "iceberg:lake.sales.events"}
        yield given | {"checkpoint_directory": str(tmp_path / "checkpoints")}
        return
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    by = {"partition_by": ("flag", "day", "at")} if "partitioned" in request.param else {}
    yield {"target": f"delta:{tmp_path / 'out'}", **by}


def test_values_stay_as_they_were(target: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = options_for(tmp_path, merge_on=("id",), batch_rows=1000, **target)
    expected: dict[int, dict[str, Any]] = {}
    for number, first in enumerate((0, 10, 45)):
        path = tmp_path / "in" / f"{number}.parquet"
        delivered = rows(first, 7 * number)
        pq.write_table(delivered, path)
        make_older(path)
        simulated = SimulatedIngest(options, name=f"run{number}")
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", result.reason
        expected |= {row["id"]: row for row in delivered.to_pylist()}
    found = read(tmp_path, target)
    assert [repr(row) for row in found] == [repr(expected[key]) for key in sorted(expected)]


RISING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    "price": (pa.decimal128(5, 2), [Decimal(one) for one in ("-9.10", "-0.10", "0.00", "9.09")]),
    "text": (pa.string(), ["", "A", "a", "\u00e9"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    "flag": (pa.bool_(), [False, True]),
    "day": (pa.date32(), [FIRST.date(), datetime.date(1969, 12, 31), LAST.date()]),
    "at": (pa.timestamp("us", "UTC"), [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [FIRST, datetime.datetime(1969, 12, 31, 23, 59), LAST]),
}


@pytest.mark.extended
@pytest.mark.parametrize("target", ["delta", "iceberg"], indirect=True)
@pytest.mark.parametrize("name", RISING)
def test_keys_and_orders_of_each_type_compare_as_they_are(
    name: str, target: dict[str, Any], tmp_path: Path
) -> None:
    kind, values = RISING[name]
    by = {"merge_on": ("key",), "merge_order": ("order",)}
    options = options_for(tmp_path, batch_rows=1000, **by, **target)
    (tmp_path / "in").mkdir()
    orders = [values[1], values[0], values[-1]]
    for number, order in enumerate(orders):
        delivered = {
            "key": pa.array(values, kind),
            "order": pa.array([order] * len(values), kind),
            "number": pa.array([number] * len(values)),
        }
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(pa.table(delivered), path)
        make_older(path)
        simulated = SimulatedIngest(options, name=f"run{number}")
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", result.reason
        assert result.rows_visible == len(values)
        newest = max(orders[: number + 1])
        last = max(at for at, one in enumerate(orders[: number + 1]) if one == newest)
        files = (
            iceberg_replay.active_files(tmp_path)
            if target["target"].startswith("iceberg")
            else delta_replay.active_files(tmp_path / "out")
        )
        found = pa.concat_tables(pq.read_table(one) for one in files).to_pylist()
        assert sorted(row["key"] for row in found) == values
        assert {row["number"] for row in found} == {last}


def read(place: Path, target: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows, the columns in the order of the files that came."""
    if target["target"].startswith("iceberg"):
        whole = pa.concat_tables(pq.read_table(one) for one in iceberg_replay.active_files(place))
    elif "partition_by" in target:
        # Of partitions the values are in the log alone, which the library reads.
        deltalake = pytest.importorskip("deltalake")
        whole = pa.table(deltalake.DeltaTable(place / "out").to_pyarrow_table())
    else:
        files = delta_replay.active_files(place / "out")
        whole = pa.concat_tables(pq.read_table(one) for one in files)
    return sorted(whole.select(["id", *COLUMNS]).to_pylist(), key=lambda row: int(row["id"]))
