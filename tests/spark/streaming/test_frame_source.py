"""Files as a DataFrame: the rows of the files that are there, of the types that are declared."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from epochgate.errors import EpochgateError
from tests.spark.shared import session_of

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.streaming import OptionsWrong, bad_files
from epochgate.spark.streaming.frame_source import FrameReader
from epochgate.spark.streaming.left_out import StateOutOfReach
from epochgate.spark.streaming.source_options import parse_source

ZIP = t.StructType([t.StructField("id", t.LongType()), t.StructField("zip", t.StringType())])


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "a.csv").write_text("zip,id\n01234,1\n")
    (folder / "b.csv").write_text("id,zip,more\n2,5,x\n3,6,y\n")
    return folder


def rows_of(landing: Path, **options: str) -> list[tuple[Any, ...]]:
    parsed = parse_source({"source": str(landing), **options}, of_frame=True)
    reader = FrameReader(parsed, ZIP)
    partitions = reader.partitions()
    in_task = pickle.loads(pickle.dumps(reader))
    batches = [batch for one in partitions for batch in in_task.read(one)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


ROWS = [(1, "01234"), (2, "5"), (3, "6")]


@pytest.mark.parametrize("options", [{}, {"partitions": "1"}, {"batchRows": "1"}])
def test_a_frame_has_the_rows_of_the_files(landing: Path, options: dict[str, str]) -> None:
    assert rows_of(landing, **options) == ROWS


def test_a_bad_row_is_named_with_a_way_on_that_this_door_has(landing: Path, tmp_path: Path) -> None:
    (landing / "c.csv").write_text("id,zip\n4,7\nx,8\n")
    with pytest.raises(EpochgateError, match=r"(?s)c\.csv', at line 3, column 'id'.*onBadFile"):
        rows_of(landing)
    state = str(tmp_path / "state")
    for _ in range(2):
        assert rows_of(landing, onBadFile="skip", state=state) == [*ROWS, (4, "7")]
        assert [(Path(bad.path).name, bad.position) for bad in bad_files(state)] == [
            ("c.csv", "line 3, column 'id'")
        ]


def test_a_task_that_cannot_list_a_bad_file_fails(landing: Path, tmp_path: Path) -> None:
    (landing / "c.csv").write_text("id,zip\n4,7\nx,8\n")
    options = {"source": str(landing), "state": str(tmp_path / "state"), "onBadFile": "skip"}
    reader = FrameReader(parse_source(options, of_frame=True), ZIP)
    partitions = reader.partitions()
    (tmp_path / "state").rename(tmp_path / "of another machine")
    with pytest.raises(StateOutOfReach):
        list(reader.read(partitions[-1]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"onBadFile": "skip"}, 'onBadFile of spark.read needs .option("state", ...)'),
        ({"source": "shop:Pages"}, "spark.read reads files"),
        ({"filter": "id > 1"}, "spark.read has no option 'filter'"),
    ],
)
def test_what_a_frame_cannot_have_is_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionsWrong) as caught:
        parse_source({"source": "in", **options}, of_frame=True)
    assert told in str(caught.value)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.slow
def test_spark_reads_files_as_a_frame(landing: Path) -> None:
    from epochgate.spark.streaming import register

    spark = session_of("tests/spark/streaming/test_frame_source.py")
    register(spark)
    (landing / "b.csv").write_text("id,zip\n2,5\n3,6\n")
    read = spark.read.format("epochgate")
    told = read.load(str(landing))
    assert told.dtypes == [("zip", "string"), ("id", "bigint")]
    assert sorted((row.id, row.zip) for row in told.collect()) == ROWS
    named = read.option("addColumn", "from=file.name,n=file.row").load(str(landing))
    assert sorted((row.id, row["from"], row.n) for row in named.collect()) == [
        (1, "a.csv", 1),
        (2, "b.csv", 1),
        (3, "b.csv", 2),
    ]
    read = spark.read.format("epochgate")
    declared = read.schema("zip string, id decimal(5,1)").option("source", str(landing)).load()
    assert sorted(map(str, (row.id for row in declared.collect()))) == ["1.0", "2.0", "3.0"]


PLACES = t.StructType([*ZIP.fields, t.StructField("n", t.LongType())])


def test_a_frame_says_where_a_row_comes_from(landing: Path) -> None:
    options = {"source": str(landing), "addColumn": "file.name, n=file.row"}
    parsed = parse_source(options, of_frame=True)
    with pytest.raises(OptionsWrong, match="adds 'file_name'"):
        FrameReader(parsed, PLACES).partitions()
    parsed = parse_source({**options, "addColumn": "n=file.row"}, of_frame=True)
    reader = FrameReader(parsed, PLACES)
    rows = [one for part in reader.partitions() for one in reader.read(part)]
    found = [tuple(row.values()) for batch in rows for row in batch.to_pylist()]
    assert found == [(1, "01234", 1), (2, "5", 1), (3, "6", 2)]
