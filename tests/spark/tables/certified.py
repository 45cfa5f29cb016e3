"""The sinks into tables, as `epochgate certify-sink` tries them.

epochgate certify-sink tests.spark.tables.certified:DeltaCase
epochgate certify-sink tests.spark.tables.certified:DeltaMergingCase
epochgate certify-sink tests.spark.tables.certified:IcebergCase
epochgate certify-sink tests.spark.tables.certified:postgres_case
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq

from epochgate.runtime import Sink
from epochgate.spark.delta_sink import DeltaSink
from epochgate.spark.iceberg_sink import IcebergSink
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.spark.postgres_sink import PostgresSink
from epochgate.spark.tables.merge import Merge
from epochgate.testing import SinkCase
from tests.spark.tables import delta_replay, iceberg_objects, iceberg_replay
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.postgres_server import Server

OF_OBJECTS = (
    "epochgate.runtime.objects.client:ObstoreObjects.create",
    "epochgate.runtime.objects.client:ObstoreObjects.put",
    "epochgate.runtime.objects.client:ObstoreObjects.delete",
)
BY_NUMBER = Merge(("number",))


class DeltaCase(SinkCase):
    """A Delta table; the library's writes are points beside those of files."""

    calls: ClassVar[Sequence[str]] = (
        "deltalake.table:DeltaTable.create_write_transaction",
        "deltalake.transaction:create_table_with_add_actions",
    )

    commit_in: ClassVar[CommitIn] = "driver"

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        return DeltaSink(str(place / "table"), commit_in=self.commit_in)

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees that replays the log."""
        for file in delta_replay.active_files(place / "table"):
            yield from pq.read_table(file).to_pylist()

    def staged(self, place: Path) -> list[str]:
        """Staged files."""
        return [file.name for file in place.glob("table/_epochgate/staged/*/*")]

    def error(self) -> Exception:
        """Return what the library raises where the log cannot be written."""
        from deltalake.exceptions import DeltaError

        return DeltaError("Generic error: no answer")


class DeltaObjectsCase(DeltaCase):
    """A Delta table in an object store, which the variables of the environment name; requests of
    the sink that change an object are points, too.
    """

    calls = (*DeltaCase.calls, *OF_OBJECTS)

    def _seen(self, place: Path) -> Seen:
        return Seen(dict(os.environ), f"certified/of-{place.name}", place)

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        return DeltaSink(self._seen(place).url, commit_in=self.commit_in)

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees that replays the log, with Arrow's client."""
        for file in delta_replay.active_files(self._seen(place).copied()):
            yield from pq.read_table(file).to_pylist()

    def staged(self, place: Path) -> list[str]:
        """Objects that the log does not name."""
        seen = self._seen(place)
        named = {file.name for file in delta_replay.active_files(seen.copied())}
        return [key for key in seen.files("data") if key.rpartition("/")[2] not in named]

    def remove(self, place: Path) -> None:
        """Remove the objects."""
        self._seen(place).remove()
        super().remove(place)


class DeltaMergingCase(DeltaCase):
    """A Delta table into which rows are merged; the library's statement is a point, too."""

    calls = (*DeltaCase.calls, "deltalake.table:TableMerger.execute")

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        return DeltaSink(str(place / "table"), merge=BY_NUMBER)


class DeltaInTasksCase(DeltaCase):
    """The same where tasks move the files."""

    commit_in = "tasks"


class IcebergCase(SinkCase):
    """An Iceberg table of a catalog in SQLite; what the catalog does are points, too."""

    calls: ClassVar[Sequence[str]] = (
        "pyiceberg.catalog.sql:SqlCatalog.load_table",
        "pyiceberg.catalog.sql:SqlCatalog.create_table",
        "pyiceberg.catalog.sql:SqlCatalog.commit_table",
    )

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        return IcebergSink("test", "sales.events", iceberg_replay.catalog(place))

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees that follows the catalog to the files."""
        for file in iceberg_replay.active_files(place):
            yield from pq.read_table(file).to_pylist()

    def staged(self, place: Path) -> list[str]:
        """Staged files."""
        return [file.name for file in place.glob("warehouse/sales/events/_epochgate/staged/*/*")]

    def kept(self, place: Path) -> int:
        """The properties of the table."""
        return len((iceberg_replay.metadata(place) or {"properties": ()})["properties"])

    def error(self) -> Exception:
        """Return what the library raises where it does not know whether a commit was made."""
        from pyiceberg.exceptions import CommitStateUnknownException

        return CommitStateUnknownException("503 Service Unavailable (made by certify-sink)")


class IcebergObjectsCase(IcebergCase):
    """An Iceberg table in an object store; requests of the sink that change an object are points
    beside what the catalog does.
    """

    kind: ClassVar[iceberg_objects.Kind] = "sql"
    calls = (*IcebergCase.calls, *OF_OBJECTS)

    def __init__(self, server: iceberg_objects.Server) -> None:
        self._server = server
        self._lakes: dict[Path, iceberg_objects.Lake] = {}

    def _lake(self, place: Path) -> iceberg_objects.Lake:
        if place not in self._lakes:
            self._lakes[place] = iceberg_objects.Lake(self._server, self.kind, place)
        return self._lakes[place]

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        lake = self._lake(place)
        return IcebergSink("test", lake.table, lake.properties)

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees that follows the catalog to the files, with Arrow's client."""
        for file in self._lake(place).active_files():
            yield from pq.read_table(file).to_pylist()

    def staged(self, place: Path) -> list[str]:
        """Objects that no snapshot names."""
        lake = self._lake(place)
        named = {file.name for file in lake.active_files()}
        return [key for key in lake.seen.files("data") if key.rpartition("/")[2] not in named]

    def kept(self, place: Path) -> int:
        """The properties of the table."""
        return len(self._lake(place).metadata().get("properties", ()))

    def remove(self, place: Path) -> None:
        """Remove the objects; those of a catalog's own bucket stay, which no other table has."""
        if self.kind == "sql":
            self._lake(place).seen.remove()
        self._lakes.pop(place, None)
        super().remove(place)


class IcebergRestObjectsCase(IcebergObjectsCase):
    """The same of a REST catalog."""

    kind = "rest"
    calls = (
        "pyiceberg.catalog.rest:RestCatalog.load_table",
        "pyiceberg.catalog.rest:RestCatalog.create_table",
        "pyiceberg.catalog.rest:RestCatalog.commit_table",
        *OF_OBJECTS,
    )


class IcebergMergingCase(IcebergCase):
    """An Iceberg table into which rows are merged."""

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        described = iceberg_replay.catalog(place)
        return IcebergSink("test", "sales.events", described, merge=BY_NUMBER)


class PostgresCase(SinkCase):
    """A table of PostgreSQL; each call of a connection, a cursor or a COPY is a point."""

    clients = ("psycopg:connect",)
    columns: ClassVar[str] = "number bigint primary key, text text not null"
    commit_in: ClassVar[CommitIn] = "driver"
    merge: ClassVar[Merge | None] = None

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Any = None

    def sink(self, place: Path) -> Sink:
        """The sink on an empty table."""
        self._run(f'create table if not exists "{place.name}" ({self.columns})')
        return PostgresSink(self._dsn, place.name, commit_in=self.commit_in, merge=self.merge)

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees who knows nothing of the sink."""
        if self._is_there(place.name):
            for number, text in self._run(f'select number, text from "{place.name}"'):
                yield {"number": number, "text": text}

    def staged(self, place: Path) -> list[str]:
        """Staged rows."""
        staged = f"epochgate_staged_{place.name}"
        parts = (
            self._run(f'select epochgate_part from "{staged}"') if self._is_there(staged) else []
        )
        return [part for (part,) in parts]

    def kept(self, place: Path) -> int:
        """Rows of the ledger."""
        return len(self._run(f"select 1 from epochgate_ledger where target = '{place.name}'"))

    def error(self) -> Exception:
        """Return what the library raises where the connection breaks."""
        import psycopg

        return psycopg.OperationalError("server closed the connection (made by certify-sink)")

    def remove(self, place: Path) -> None:
        """Drop the table, too."""
        super().remove(place)
        self._run(f'drop table if exists "{place.name}", "epochgate_staged_{place.name}"')

    def _is_there(self, table: str) -> bool:
        return bool(self._run(f"select 1 where to_regclass('\"{table}\"') is not null"))

    def _run(self, statement: str) -> list[Any]:
        import psycopg

        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the reader's connection."""
        if self._connection is not None:
            self._connection.close()


class PostgresGrowingCase(PostgresCase):
    """A table that lacks a column of the rows, and has a narrower type of the other. A reader who
    comes in the midst of a change of the table waits for its end: here it has what it had before.
    """

    columns = "number integer"

    def __init__(self, dsn: str) -> None:
        super().__init__(f"{dsn} options='-c lock_timeout=5'")
        self._sink_dsn = dsn
        self._found: dict[str, list[Any]] = {}

    def sink(self, place: Path) -> Sink:
        """The sink on a table that is to grow."""
        sink = super().sink(place)
        assert isinstance(sink, PostgresSink)
        return replace(sink, dsn=self._sink_dsn, evolution="widen")

    def _run(self, statement: str) -> list[Any]:
        import psycopg

        with contextlib.suppress(psycopg.errors.LockNotAvailable):
            self._found[statement] = super()._run(statement)
        return self._found.get(statement, [])

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Return what a reader sees, whatever columns there are."""
        if self._is_there(place.name):
            for (row,) in self._run(f'select to_jsonb(seen) from "{place.name}" as seen'):
                yield row


class PostgresTellingCase(PostgresCase):
    """A table whose rows say of which checkpoint they are."""

    columns = f"{PostgresCase.columns}, epochgate_checkpoint bigint"


class PostgresMergingCase(PostgresCase):
    """The same into which rows are merged: none is withdrawn, although it says so."""

    columns = PostgresTellingCase.columns
    merge = BY_NUMBER


class PostgresInTasksCase(PostgresTellingCase):
    """The same where tasks move the rows, for a reader who joins the ledger to see whole
    checkpoints; others see one subtask's rows before another's.
    """

    commit_in = "tasks"

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """Those of checkpoints that the ledger has."""
        if self._is_there(place.name):
            whole = f"select checkpoint from epochgate_ledger where target = '{place.name}'"
            found = (
                f'select number, text from "{place.name}" where epochgate_checkpoint <= ({whole})'
            )
            for number, text in self._run(found) if self._is_there("epochgate_ledger") else ():
                yield {"number": number, "text": text}


def postgres_case() -> PostgresCase:
    """On a server that ends with the process."""
    server = Server(fsync=False)
    atexit.register(server.remove)
    return PostgresCase(server.dsn)
