"""A target in an object store whose columns have changed is one DataFrame, and one Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import epochgate
from epochgate.environment import set_in_environment
from epochgate.runtime.objects.client import open_url
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.spark.ingest.simulated import SimulatedIngest, options_for
from tests.spark.shared import session_of

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]

SOURCE, TARGET = f"s3://{BUCKET}/lines", f"s3://{BUCKET}/grown"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as found, set_in_environment(found):
        yield found


@pytest.fixture
def spark(
    request: pytest.FixtureRequest, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    session = session_of(request.node.nodeid.partition("::")[0])
    for name, value in server.items():
        monkeypatch.setitem(session.sparkContext.environment, name, value)
    return session


def test_rows_of_all_schemas_are_read_in_the_columns_of_all(spark: Any, tmp_path: Path) -> None:
    objects = open_url(SOURCE)
    contents = [
        b'{"id": 1, "spot": {"x": 1.5}}\n{"id": 2, "spot": {"x": 2.0}}\n',
        b'{"id": 3, "spot": {"x": 2.5, "label": "c"}, "name": "Cyd"}\n',
    ]
    for number, content in enumerate(contents):
        objects.put(f"{number}.jsonl", content)
        simulated = SimulatedIngest(
            options_for(
                tmp_path,
                source=SOURCE,
                target=TARGET,
                schema_evolution="add",
                split_bytes_target=1_000,
            ),
            name=f"run-{number}",
        )
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", result.reason
    expected = [
        (1, (1.5, None), None),
        (2, (2.0, None), None),
        (3, (2.5, "c"), "Cyd"),
    ]
    table = epochgate.read(TARGET)
    rows = sorted(table.to_pylist(), key=lambda row: int(row["id"]))
    assert [(row["id"], tuple(row["spot"].values()), row["name"]) for row in rows] == expected
    frame = epochgate.read(TARGET, spark=spark)
    assert dict(frame.dtypes) == {
        "id": "bigint",
        "spot": "struct<x:double,label:string>",
        "name": "string",
        "checkpoint": "bigint",
    }
    found = frame.select("id", "spot", "name").orderBy("id").collect()
    assert [(row.id, tuple(row.spot), row.name) for row in found] == expected
    assert frame.select("checkpoint").distinct().count() == 2
