"""A landing zone on real Spark: what does not fit is kept, columns grow, and Spark reads it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from epochgate.spark.ingest import IngestCommit, ingest
from tests.spark.shared import session_of

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]


@pytest.fixture
def spark(request: pytest.FixtureRequest) -> Any:
    return session_of(request.node.nodeid.partition("::")[0])


def priced(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(double=frame["price"] * 2)


def test_spark_reads_rows_of_all_schemas_and_the_rejected_ones(spark: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "parallelism": 2,
        "checkpoint_every_s": 0.2,
        "delimiter": ";",
        "on_bad_row": "reject",
        "schema_evolution": "widen",
        "transform": priced,
    }
    source, target = tmp_path / "in", tmp_path / "out"
    first = source / "dt=2024-01-01" / "a.csv"
    first.parent.mkdir(parents=True)
    first.write_text("id;price\n1;10\nx;y;z\n2;20\n")
    schema = "id INT NOT NULL, price INT"
    seen: list[IngestCommit] = []
    failures = [OSError("no answer")]

    def look(commit: IngestCommit) -> None:
        assert all([*target.rglob(file)] for file in commit.files), "readers see them by now"
        if failures and commit.rows:
            raise failures.pop()
        seen.append(commit)

    result = ingest(spark, str(source), str(target), schema=schema, after_commit=look, **options)
    assert (result.rows_committed, result.rows_rejected, result.is_complete()) == (2, 1, False)
    ids = [commit.checkpoint_id for commit in seen]
    assert ids == sorted(set(ids))
    assert ids[-1] == result.last_checkpoint_id
    assert (sum(one.rows for one in seen), sum(one.rows_rejected for one in seen)) == (2, 1)
    assert any("OSError: no answer" in warning for warning in result.report.warnings)

    second = source / "dt=2024-01-02" / "b.csv"
    second.parent.mkdir()
    second.write_text("name;price;id\nCyd;30.5;3\n;1;\n")
    wider = "id BIGINT NOT NULL, price DOUBLE, name STRING"
    result = ingest(spark, str(source), str(target), schema=wider, **options)
    assert (result.rows_committed, result.rows_rejected) == (1, 1)

    table = spark.read.parquet(str(target))
    assert dict(table.dtypes) == {
        "id": "bigint",
        "price": "double",
        "dt": "date",
        "double": "double",
        "name": "string",
        "checkpoint": "int",
    }
    rows = table.selectExpr("id", "price", "string(dt)", "double", "name").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [
        (1, 10.0, "2024-01-01", 20.0, None),
        (2, 20.0, "2024-01-01", 40.0, None),
        (3, 30.5, "2024-01-02", 61.0, "Cyd"),
    ]
    rejected = spark.read.parquet(result.rejected_path).orderBy("file")
    found = rejected.selectExpr("split(file, '/')[size(split(file, '/')) - 1]", "line", "raw")
    assert [tuple(row) for row in found.collect()] == [("a.csv", 3, "x;y;z"), ("b.csv", 3, ";1;")]
