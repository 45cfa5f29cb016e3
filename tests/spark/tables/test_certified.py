"""The sinks into tables are certified, as any sink of a user is: all schedules in the long run, and
a start from an older checkpoint each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epochgate.environment import set_in_environment
from epochgate.runtime.testing.certification import Guarantee, certify, report
from epochgate.testing import SinkCase, certify_sink
from tests.runtime.objects.servers import seaweedfs
from tests.spark.tables import iceberg_objects
from tests.spark.tables.certified import (
    DeltaCase,
    DeltaInTasksCase,
    DeltaMergingCase,
    DeltaObjectsCase,
    IcebergCase,
    IcebergMergingCase,
    IcebergObjectsCase,
    IcebergRestObjectsCase,
    PostgresCase,
    PostgresGrowingCase,
    PostgresInTasksCase,
    PostgresMergingCase,
    PostgresTellingCase,
)
from tests.spark.tables.postgres_server import Server

OF_DELTA = {"in tasks": DeltaInTasksCase, "merging": DeltaMergingCase, "delta": DeltaCase}
OF_POSTGRES = {
    "merging": PostgresMergingCase,
    "in tasks": PostgresInTasksCase,
    "told": PostgresTellingCase,
    "growing": PostgresGrowingCase,
    "postgres": PostgresCase,
}
KINDS = [
    "delta",
    "delta, in tasks",
    pytest.param("delta, in objects", marks=pytest.mark.extended),
    "delta, merging",
    "iceberg",
    pytest.param("iceberg, in objects, sql", marks=pytest.mark.extended),
    pytest.param("iceberg, in objects, rest", marks=pytest.mark.extended),
    pytest.param("iceberg, merging", marks=pytest.mark.extended),
    "postgres",
    pytest.param("postgres, merging", marks=pytest.mark.extended),
    "postgres, told",
    pytest.param("postgres, growing", marks=pytest.mark.deep),
    "postgres, in tasks",
]


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest) -> Iterator[SinkCase]:
    if request.param == "delta, in objects":
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        folder = request.getfixturevalue("tmp_path")
        with seaweedfs(folder) as variables, set_in_environment(variables):
            yield DeltaObjectsCase()
    elif "delta" in request.param:
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        yield next(kind for name, kind in OF_DELTA.items() if request.param.endswith(name))()
    elif "iceberg" in request.param:
        pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
        if "objects" not in request.param:
            yield IcebergMergingCase() if "merging" in request.param else IcebergCase()
            return
        is_rest = "rest" in request.param
        with iceberg_objects.served(request.getfixturevalue("tmp_path")) as served:
            yield (IcebergRestObjectsCase if is_rest else IcebergObjectsCase)(served)
    else:
        server: Server = request.getfixturevalue("server")
        kind = next(kind for name, kind in OF_POSTGRES.items() if request.param.endswith(name))
        case = kind(server.dsn)
        yield case
        case.close()


def test_a_start_from_an_older_checkpoint_withdraws_or_is_refused_and_goes_on_from_the_newest(
    case: SinkCase,
) -> None:
    found = certify(case, about=(Guarantee.BACK,), stride=2)
    assert found.has_passed, report(found)
    answer = "withdraws" if isinstance(case, PostgresTellingCase) else "refuses"
    assert found.answers_to_going_back == {answer}


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_it_is_certified_at_every_point(case: SinkCase) -> None:
    # A commit into an object store moves no files, so there are fewer steps to fail at.
    expected = 90 if isinstance(case, DeltaObjectsCase | IcebergObjectsCase) else 150
    assert certify_sink(case).points > expected
