"""The target of a query is set back behind its batches: what the refusal names as a way on is
followed to the letter, and the query goes on. For each target without Spark, for two with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from epochgate.spark.streaming.errors import BatchesMissing
from epochgate.spark.streaming.options import parse
from epochgate.spark.streaming.targets.parquet import ObjectBatches
from epochgate.spark.streaming.targets.target import BatchTarget
from tests.runtime.objects.stores import Memory
from tests.spark.streaming.queries import Numbers
from tests.spark.streaming.test_targets import (
    LOCATION,
    QUERY,
    commit,
    object_rows,
    of_kind,
    parquet_rows,
    staged,
)
from tests.spark.tables import delta_replay, iceberg_replay

GIVE_UP = re.compile(r'\.option\("giveUp", "([^"]+)"\)')
REMOVE = re.compile(r"from (\S+)/commits .* from (\d+) on and from \1/offsets those from (\d+) on")


class InParquet:
    """A directory, which is kept and brought back with the working directory beside it."""

    def __init__(self, path: Path, request: pytest.FixtureRequest) -> None:
        self.path = path
        self.target = self.made(request)

    def made(self, request: pytest.FixtureRequest) -> BatchTarget:
        return of_kind("parquet", self.path)

    def rows(self) -> list[int]:
        return parquet_rows(self.path / "out")

    def keep(self) -> None:
        shutil.copytree(self.path / "out", self.path / "kept")

    def set_back(self) -> None:
        shutil.rmtree(self.path / "out")
        shutil.copytree(self.path / "kept", self.path / "out")


class InObjects(InParquet):
    """A prefix in an object store, of which an older copy is brought back."""

    def made(self, request: pytest.FixtureRequest) -> BatchTarget:
        self._memory = Memory()
        return ObjectBatches("s3://bucket/out", open_objects=self._memory.open)

    def rows(self) -> list[int]:
        return object_rows(self._memory)

    def keep(self) -> None:
        self._kept = set(self._memory.open("s3://bucket/out").list(""))

    def set_back(self) -> None:
        objects = self._memory.open("s3://bucket/out")
        for key in set(objects.list("")) - self._kept:
            objects.delete(key)


class InDelta(InParquet):
    """A Delta table, of which an older copy is brought back."""

    def made(self, request: pytest.FixtureRequest) -> BatchTarget:
        return of_kind("delta", self.path)

    def rows(self) -> list[int]:
        return delta_replay.rows(self.path / "out")


class RestoredDelta(InDelta):
    """A Delta table, which `RESTORE` sets back."""

    def keep(self) -> None:
        import deltalake

        self._version = deltalake.DeltaTable(self.path / "out").version()

    def set_back(self) -> None:
        import deltalake

        deltalake.DeltaTable(self.path / "out").restore(self._version)


class InIceberg(InParquet):
    """An Iceberg table, whose branch is rolled back."""

    def made(self, request: pytest.FixtureRequest) -> BatchTarget:
        pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
        from epochgate.spark.streaming.targets.iceberg import IcebergBatches

        return IcebergBatches("lake", "sales.events", iceberg_replay.catalog(self.path))

    def rows(self) -> list[int]:
        return iceberg_replay.rows(self.path)

    def _table(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("lake", **iceberg_replay.catalog(self.path)).load_table("sales.events")

    def keep(self) -> None:
        self._snapshot = self._table().current_snapshot().snapshot_id

    def set_back(self) -> None:
        self._table().manage_snapshots().rollback_to_snapshot(self._snapshot).commit()


class InPostgres(InParquet):
    """A table of PostgreSQL, of which table and ledger are brought back."""

    def made(self, request: pytest.FixtureRequest) -> BatchTarget:
        self._dsn = request.getfixturevalue("dsn")
        self._sql("create table events (x bigint)")
        from epochgate.spark.streaming.targets.postgres import PostgresBatches

        return PostgresBatches(self._dsn, "public.events")

    def _sql(self, *statements: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self._dsn) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def rows(self) -> list[int]:
        return [row[0] for row in self._sql("select x from events order by x")]

    def keep(self) -> None:
        for table in ("events", "epochgate_ledger"):
            self._sql(f"create table kept_{table} as select * from {table}")

    def set_back(self) -> None:
        for table in ("events", "epochgate_ledger"):
            self._sql(f"delete from {table}", f"insert into {table} select * from kept_{table}")


Place = Callable[[Path, pytest.FixtureRequest], InParquet]
KINDS = [InParquet, InObjects, InDelta, RestoredDelta, InIceberg, InPostgres]


def refused(place: InParquet, batch: int, nonce: str) -> str:
    before = place.rows()
    part = staged(place.target, batch, [batch], nonce)
    with pytest.raises(BatchesMissing) as raised:
        commit(place.target, part)
    assert place.rows() == before, "nothing is changed by a refusal"
    return str(raised.value)


def accepted(place: InParquet, said: str, batch: int) -> tuple[int, int]:
    """Return what the option that a refusal names comes to for this batch."""
    found = GIVE_UP.search(said)
    assert found is not None, said
    options = parse({"sink": "parquet", "path": "/out", "giveUp": found[1]}).accepted
    return options.code(place.target.notes().read(), QUERY, LOCATION, batch)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["give up", "write again"])
def test_a_query_goes_on_in_a_target_that_was_set_back(
    tmp_path: Path, request: pytest.FixtureRequest, kind: Place, way: str
) -> None:
    place = kind(tmp_path, request)
    for batch in (0, 1):
        commit(place.target, staged(place.target, batch, [batch], f"a{batch}"))
    place.keep()
    for batch in (2, 3):
        commit(place.target, staged(place.target, batch, [batch], f"a{batch}"))
    place.set_back()
    assert place.rows() == [0, 1]
    said = refused(place, 4, "b4")
    if way == "give up":
        options = accepted(place, said, 4)
        commit(place.target, staged(place.target, 4, [4], "c4"), accepts=options)
        commit(place.target, staged(place.target, 4, [4], "d4"), accepts=options)
        assert accepted(place, said, 5) == (0, 0), "what is lost later is refused"
        expected = [0, 1, 4, 5]
    else:
        for batch in (2, 3, 4, 4):
            commit(place.target, staged(place.target, batch, [batch], f"e{batch}"))
        expected = [0, 1, 2, 3, 4, 5]
    for nonce in ("f5", "g5"):
        commit(place.target, staged(place.target, 5, [5], nonce))
        assert place.rows() == expected
    place.set_back()
    refused(place, 6, "h6")


def remove_as_said(said: str) -> None:
    """The files of Spark's logs that a refusal names."""
    found = REMOVE.search(said)
    assert found is not None, said
    for name, first in (("commits", found[2]), ("offsets", found[3])):
        for path in (Path(found[1]) / name).iterdir():
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdecimal() and int(number) >= int(first):
                path.unlink()


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.parametrize(("kind", "way"), [("parquet", "write again"), ("delta", "give up")])
def test_a_query_of_spark_goes_on_in_a_target_that_was_set_back(
    tmp_path: Path, session: Any, kind: str, way: str
) -> None:
    query = Numbers(tmp_path, kind)
    query.add_files(1)
    query.run(session)
    shutil.copytree(query.target, tmp_path / "kept")
    query.add_files(2)
    query.run(session)
    shutil.rmtree(query.target)
    shutil.copytree(tmp_path / "kept", query.target)
    query.add_files(1)
    with pytest.raises(StreamingQueryException) as raised:
        query.run(session)
    said = str(raised.value)
    assert "BatchesMissing" in said
    if way == "give up":
        found = GIVE_UP.search(said)
        assert found is not None, said
        assert query.run(session, giveUp=found[1]) == [3]
        expected = [*query.expected[:10], *query.expected[30:]]
    else:
        remove_as_said(said)
        query.run(session)
        expected = query.expected
    assert query.rows() == expected
    query.add_files(1)
    query.run(session)
    assert query.rows() == [*expected, *query.expected[40:]]
