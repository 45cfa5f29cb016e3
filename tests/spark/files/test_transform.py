"""A user's function may return several shapes of result; its failures name the rows."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from epochgate.spark.files import (
    BatchTransform,
    FileEnumeration,
    ReadBatch,
    SplitReader,
    TransformFailed,
)
from tests.runtime.doors import RAISED


@pytest.fixture
def reads(tmp_path: Path) -> list[ReadBatch]:
    (tmp_path / "a.csv").write_text("a\n" + "".join(f"{number}\n" for number in range(5)))
    enumeration = FileEnumeration(tmp_path)
    (split,) = enumeration.discover()
    assert enumeration.layout is not None
    return list(SplitReader(enumeration.layout, batch_rows=2).read(split))


def twice(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch
    yield batch.slice(0, 0)
    yield batch


@pytest.mark.parametrize(
    ("function", "copies"),
    [
        (None, 1),
        (lambda batch: batch, 1),
        (lambda batch: None, 0),
        (lambda batch: [], 0),
        (lambda batch: batch.slice(0, 0), 0),
        (lambda batch: pa.Table.from_batches([batch]), 1),
        (lambda batch: [batch, batch], 2),
        (twice, 2),
    ],
)
def test_every_accepted_result_becomes_batches(
    reads: list[ReadBatch], function: Any, copies: int
) -> None:
    results = BatchTransform(function).apply(reads[1])
    assert [batch.to_pydict() for batch in results] == [{"a": [2, 3]}] * copies


def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise KeyError("no such column")


def fail_late(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch
    raise KeyError("no such column")


@pytest.mark.parametrize("raised", RAISED, ids=lambda kind: kind.__name__)
def test_whatever_a_function_raises_is_told_with_file_and_rows(
    reads: list[ReadBatch], raised: type[BaseException]
) -> None:
    def leave(batch: pa.RecordBatch) -> None:
        raise raised("no such column")

    with pytest.raises(
        TransformFailed, match=rf"rows 2 to 3 .*a\.csv.*{raised.__name__}"
    ) as caught:
        BatchTransform(leave).apply(reads[1])
    assert isinstance(caught.value.__cause__, raised)


@pytest.mark.parametrize("function", [fail, fail_late])
def test_a_failure_names_the_file_the_split_the_rows_and_the_cause(
    reads: list[ReadBatch], function: Any
) -> None:
    with pytest.raises(TransformFailed) as caught:
        BatchTransform(function).apply(reads[1])
    error = caught.value
    assert error.rows == range(2, 4)
    assert error.split_id == reads[1].split.split_id
    for part in ("rows 2 to 3", "a.csv", "KeyError: 'no such column'"):
        assert part in str(error)
    assert isinstance(error.__cause__, KeyError)
    frames = str(error).split("\n")[1:]
    assert frames[0].startswith(f'  File "{__file__}", line ')
    assert frames[0].endswith(f", in {function.__name__}")
    assert frames[1] == '    raise KeyError("no such column")'
    assert len(frames) == 2, "no frame of epochgate"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (pd.DataFrame({"a": [1]}), "pandas.DataFrame; return pyarrow.RecordBatch.from_pandas"),
        (
            pd.DataFrame({"a": [1]}),
            "annotate its first parameter .* or say it by --transform-takes",
        ),
        (pd.Series([1]), "returned a pandas.Series; return pyarrow.RecordBatch.from_pandas"),
        (pl.DataFrame({"a": [1]}), r"returned a polars.DataFrame; return frame.to_arrow\(\)"),
        (pl.DataFrame().lazy(), r"returned a polars.LazyFrame; return frame.collect\(\).to_arrow"),
    ],
)
def test_a_result_of_another_library_is_named_with_what_to_return_instead(
    reads: list[ReadBatch], result: Any, message: str
) -> None:
    with pytest.raises(TransformFailed, match=message):
        BatchTransform(lambda batch: result).apply(reads[0])


@pytest.mark.parametrize("result", [7, "text", {"a": 1}, [1], pa.array([1])])
def test_a_result_of_another_kind_is_a_failure_that_says_what_is_expected(
    reads: list[ReadBatch], result: Any
) -> None:
    with pytest.raises(TransformFailed, match="expected RecordBatch"):
        BatchTransform(lambda batch: result).apply(reads[0])
