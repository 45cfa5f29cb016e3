"""The places that the benchmark of sinks commits to: one for each kind of sink, with a real sink.

Decides how files and rows are staged as tasks would stage them, without the work of tasks: each
file is a link to the same small one. Leaves all that is measured to the sinks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.benchmarks.object_server import BUCKET, ServerMissing, seaweedfs
from epochgate.benchmarks.postgres_server import PostgresMissing, PostgresServer
from epochgate.environment import set_in_environment
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import open_url
from epochgate.spark.parquet_sink.committable import (
    Committable,
    footer_crc32,
    schema_id,
    staged_path,
    with_written_schema,
)

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
TABLE = "events"
LINKS_MOST = 30_000
"""To one file: some file systems allow 65,000."""


class Place(Protocol):
    """An empty place, and what is staged for it."""

    sink: Sink

    def stage(self, run_id: str, first: int, count: int) -> list[Any]:
        """Stage so much, and return what tasks hand over for it; after the sink's claim."""


class FilesPlace:
    """A directory in which tasks stage files."""

    def __init__(self, folder: Path, sink: Sink, working: Path) -> None:
        self.sink, self._working = sink, working
        self._template, self._links = folder / "template-0.parquet", 0
        self._template.parent.mkdir(parents=True, exist_ok=True)
        written = SCHEMA.with_metadata(with_written_schema(SCHEMA))
        rows = pa.table({"number": [1], "text": ["one"]}, schema=written)
        pq.write_table(rows, self._template)
        self.content = self._template.read_bytes()
        crc32 = footer_crc32(LocalFileSystem(), str(self._template), len(self.content))
        assert crc32 is not None, "a Parquet file has a footer"
        self._footer_crc32 = crc32

    def link(self, path: Path) -> None:
        """Make the file under another name."""
        self._links += 1
        if self._links % LINKS_MOST == 0:
            self._template = self._template.with_name(f"template-{self._links}.parquet")
            self._template.write_bytes(self.content)
        os.link(self._template, path)

    def committable(self, run_id: str, number: int, *, in_place: bool = False) -> Committable:
        """Return what a task hands over for a file of this number."""
        path = staged_path(run_id, 0, 1, number, in_place=in_place)
        size, schema = len(self.content), schema_id(SCHEMA)
        return Committable(0, 1, number, path, 1, size, self._footer_crc32, schema)

    def stage(self, run_id: str, first: int, count: int) -> list[Any]:
        """Link each file to the one that was written."""
        made = [self.committable(run_id, number) for number in range(first, first + count)]
        for one in made:
            path = self._working / one.path
            path.parent.mkdir(parents=True, exist_ok=True)
            self.link(path)
        return [one.to_list() for one in made]


class ObjectsPlace(FilesPlace):
    """A folder of a bucket, in which tasks write objects."""

    def __init__(self, folder: Path) -> None:
        from epochgate.spark.parquet_sink import ParquetSink

        self.url = f"s3://{BUCKET}/{folder.name}"
        super().__init__(folder, ParquetSink(self.url), folder)
        self.objects = open_url(self.url)

    def stage(self, run_id: str, first: int, count: int) -> list[Any]:
        """Write each object."""
        numbers = range(first, first + count)
        made = [self.committable(run_id, number, in_place=True) for number in numbers]
        for one in made:
            self.objects.put(one.path, self.content)
        return [one.to_list() for one in made]


class PostgresPlace:
    """A table, and its staging table, to which tasks copy rows."""

    def __init__(self, dsn: str, table: str) -> None:
        import psycopg

        from epochgate.spark.postgres_sink import PostgresSink

        self.dsn, self.table = dsn, table
        with psycopg.connect(dsn) as connection:
            connection.execute(f'create table "{table}" (number bigint, text text)'.encode())
        self.sink: Sink = PostgresSink(dsn, table)

    def stage(self, run_id: str, first: int, count: int) -> list[Any]:
        """Stage a row for each part."""
        import psycopg

        from epochgate.spark.postgres_sink.part import Part

        numbers = range(first, first + count)
        with psycopg.connect(self.dsn) as connection:
            statement = (
                f'insert into "epochgate_staged_{self.table}" (number, text, epochgate_part)'
                " select i, 'one', %s || i from generate_series(%s::bigint, %s::bigint) i"
            )
            last = first + count - 1
            connection.execute(statement.encode(), [f"{run_id}/0/1/", first, last])
        columns = tuple(SCHEMA.names)
        return [Part(f"{run_id}/0/1/{number}", 1, columns).to_list() for number in numbers]


def parquet_place(folder: Path) -> FilesPlace:
    """A directory of Parquet files."""
    from epochgate.spark.parquet_sink import ParquetSink

    sink = ParquetSink(str(folder / "target"))
    return FilesPlace(folder, sink, folder / ".target.epochgate")


def delta_place(folder: Path) -> FilesPlace:
    """A Delta table."""
    from epochgate.spark.delta_sink import DeltaSink

    return FilesPlace(folder, DeltaSink(str(folder / TABLE)), folder / TABLE / "_epochgate")


def iceberg_place(folder: Path) -> FilesPlace:
    """An Iceberg table of a catalog in SQLite."""
    from epochgate.spark.iceberg_sink import IcebergSink

    sink = IcebergSink("bench", f"bench.{TABLE}", iceberg_catalog(folder))
    return FilesPlace(folder, sink, folder / "warehouse" / "bench" / TABLE / "_epochgate")


def iceberg_catalog(folder: Path) -> dict[str, str]:
    """The properties of the catalog in this folder."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }


Kinds = dict[str, Callable[[Path], Place]]
"""The name of a kind of sink -> makes an empty place in a folder."""
PARQUET, OBJECTS, DELTA, ICEBERG, POSTGRES = (
    "Parquet directory",
    "object store",
    "Delta",
    "Iceberg",
    "PostgreSQL",
)


@contextlib.contextmanager
def kinds(folder: Path, note: Callable[[str], None]) -> Iterator[Kinds]:
    """All kinds, with the servers that two of them need; one whose server is not installed is left
    out, and noted.
    """
    found: Kinds = {PARQUET: parquet_place}
    with contextlib.ExitStack() as stack:
        try:
            variables = stack.enter_context(seaweedfs(folder))
            stack.enter_context(set_in_environment(variables))
            found[OBJECTS] = ObjectsPlace
        except ServerMissing as missing:
            note(f"left out: {missing}")
        found |= {DELTA: delta_place, ICEBERG: iceberg_place}
        try:
            server = PostgresServer()
            stack.callback(server.remove)
            found[POSTGRES] = lambda place: PostgresPlace(server.dsn, place.name)
        except PostgresMissing as missing:
            note(f"left out: {missing}")
        yield found
