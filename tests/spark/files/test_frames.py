"""A transform may take batches, tables and frames of pandas and polars, told by its annotation."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from epochgate.spark.files import BatchTransform, FileSplit, SplitPosition, TransformFailed
from epochgate.spark.files.frames import Takes, TransformUnclear, takes_of
from epochgate.spark.files.reader import ReadBatch
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source

if TYPE_CHECKING:
    import pandas
    import pyspark

VALUES = pa.record_batch(
    {
        "id": pa.array([1, None, 3], pa.int64()),
        "name": pa.array(["Ada", None, ""], pa.string()),
        "price": pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(10, 2)),
        "day": pa.array([datetime.date(2024, 1, 1), None, None], pa.date32()),
        "at": pa.array([1, None, 2], pa.timestamp("us", tz="UTC")),
        "tags": pa.array([["a"], None, []], pa.list_(pa.string())),
        "none": pa.array([None, None, None], pa.int32()),
        "flag": pa.array([True, None, False]),
    }
)


def read_of(batch: pa.RecordBatch) -> ReadBatch:
    split = FileSplit("/in/a.csv", "csv", "none", 9, 0, 0, 9)
    return ReadBatch(split, batch, range(batch.num_rows), SplitPosition(9))


def applied(function: Callable[[Any], Any], batch: pa.RecordBatch = VALUES) -> pa.Table:
    made = BatchTransform(function, takes_of(function, None)).apply(read_of(batch))
    return pa.Table.from_batches(made)


def of_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def of_polars(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def of_table(table: pa.Table) -> pa.Table:
    return table


def of_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def for_checkers(frame: pandas.DataFrame) -> Any:
    return frame


class Rules:
    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (of_pandas, "pandas"),
        (of_polars, "polars"),
        (of_table, "table"),
        (of_batch, "arrow"),
        (for_checkers, "pandas"),
        (Rules(), "pandas"),
        (functools.partial(of_pandas), "pandas"),
        (lambda batch: batch, "arrow"),
        (min, "arrow"),
    ],
)
def test_what_a_function_takes_is_told_by_its_annotation(
    function: Callable[[Any], Any], takes: Takes
) -> None:
    assert takes_of(function, None) == takes
    assert takes_of(function, "polars") == "polars"


@pytest.mark.parametrize("function", [of_pandas, of_polars, of_table, of_batch])
def test_a_batch_comes_back_with_its_values_and_types(function: Callable[[Any], Any]) -> None:
    found = applied(function)
    assert found.schema == VALUES.schema
    assert found.to_pylist() == VALUES.to_pylist()


def test_missing_values_change_no_type_in_a_frame_of_pandas() -> None:
    def doubled(frame: pd.DataFrame) -> pd.DataFrame:
        frame["id"] = frame["id"] * 2
        return frame[frame["id"] > 2]

    found = applied(doubled)
    assert found["id"].to_pylist() == [6]
    assert found.schema.field("id").type == pa.int64()


def never(frame: pd.DataFrame) -> Any:
    frame["id"] = 1


def bare(frame: pd.DataFrame) -> Any:
    if len(frame):
        return
    frame["id"] = 1


def nothing_taken() -> Any:
    return 1


def of_spark(frame: pyspark.sql.DataFrame) -> Any:
    return frame


def of_dict(frame: dict[str, int]) -> Any:
    return frame


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (never, "never returns nothing: every row would be left out; return the batch"),
        (bare, "bare returns nothing"),
        (nothing_taken, "takes no argument"),
        (of_spark, r"takes frame: pyspark.sql.DataFrame: no batch .* --transform-takes arrow"),
        (of_dict, "takes frame: .*dict.*annotate its first parameter"),
    ],
)
def test_a_function_that_cannot_be_a_transform_is_refused_before_it_runs(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TransformUnclear, match=message):
        takes_of(function, None)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"id": [1]}, "it returned a dict; expected RecordBatch, .* return a pandas.DataFrame"),
        (pd.Series([1]), r"it returned a pandas.Series; return series.to_frame\(\)"),
        (pl.DataFrame({"a": [1]}), "takes a pandas.DataFrame and returned a polars.DataFrame"),
        ([pd.DataFrame()], "a list with a pandas.DataFrame in it; .* return a pandas.DataFrame"),
        (pd.DataFrame({"x": [None]}), "column 'x' without a value and so without a type"),
        (pa.table([[1], [2]], names=["x", "x"]), "columns of the same name, x"),
    ],
)
def test_a_wrong_result_is_named_with_what_to_return(result: Any, message: str) -> None:
    def wrong(frame: pd.DataFrame) -> Any:
        return result

    with pytest.raises(TransformFailed, match=message):
        applied(wrong)


def test_a_column_without_values_keeps_the_type_it_came_with() -> None:
    def emptied(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(name=None)

    assert applied(emptied).schema.field("name").type == pa.string()


def fewer(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["x"] % 2 == 0].assign(length=lambda rows: rows["name"].str.len())


def test_an_ingestion_runs_a_transform_of_pandas(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path, transform=fewer))
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert visible(tmp_path / "out") == [row for row in rows if row % 2 == 0]
    assert set(visible(tmp_path / "out", "length")) == {6, 7}
