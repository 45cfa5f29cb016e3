"""The targets of ingestions whose processes are killed, each with a reader that does not use the
sink's own library.

Those in object stores are reached through a relay that keeps answers back, after the store or the
catalog has done what it was asked; readers go to the server itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import psycopg
import pytest

from epochgate.benchmarks import object_server
from tests.runtime.objects.cutting import cutting
from tests.soak.folders import ObjectTable
from tests.spark.tables import delta_replay, iceberg_objects, iceberg_replay
from tests.spark.tables.delta_objects import Seen
from tests.spark.tables.postgres_server import Server

CUT_EVERY = 10
"""One of this number of answers to requests that change something is kept back, about."""
READABLE_S = 120.0
POLL_S = 0.1
LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg"}

Row = tuple[int, str]


@dataclass
class Target:
    """The words of a driver, and how a reader sees the target. `crash` crashes its server; `cuts`
    counts the answers that were kept back.
    """

    name: str
    read: Callable[[], list[Row]]
    environment: dict[str, str] = field(default_factory=dict)
    crash: Callable[[], None] | None = None
    cuts: Callable[[], int] = lambda: 0

    @property
    def kind(self) -> str:
        """In one word."""
        kind, colon, _ = self.name.partition(":")
        return kind if colon else "directory"


@contextlib.contextmanager
def target_of(kind: str, place: Path) -> Iterator[Target]:
    """An empty target of this kind, which ends with the block."""
    for word, library in LIBRARIES.items():
        if kind.startswith(word):
            pytest.importorskip(library, reason=f"the library {library} is not installed")
    table = place / "table"
    if kind == "directory":
        yield Target(str(table), lambda: rows_of(table.rglob("*.parquet")))
    elif kind == "delta":
        yield Target(f"delta:{table}", lambda: rows_of(delta_replay.active_files(table)))
    elif kind == "iceberg":
        described = {
            f"PYICEBERG_CATALOG__LAKE__{name.upper()}": value
            for name, value in iceberg_replay.catalog(place).items()
        }
        yield Target(
            "iceberg:lake.sales.events",
            lambda: rows_of(iceberg_replay.active_files(place)),
            described,
        )
    elif kind == "postgres":
        yield from _of_postgres()
    else:
        yield from _in_object_store(kind, place)


def rows_of(files: Iterable[Path]) -> list[Row]:
    """All rows of these files, as DuckDB finds them."""
    names = [str(file) for file in files]
    if not names:
        return []
    query = "select x, name from read_parquet(?) order by x, name"
    return duckdb.execute(query, [names]).fetchall()


def _in_object_store(kind: str, place: Path) -> Iterator[Target]:
    folder = place / "server"
    folder.mkdir()
    rest, *on = object_server.ports(object_server.PORTS + 1)
    with ExitStack() as running, ExitStack() as relays:

        def start() -> dict[str, str]:
            server = object_server.seaweedfs(folder, on, rest if "rest" in kind else 0)
            return running.enter_context(server)

        try:
            variables = start()
        except object_server.ServerMissing as missing:
            pytest.skip(str(missing))
        if "rest" in kind:
            object_server.make_table_bucket(folder, on, iceberg_objects.TABLES)
        store, catalog = (
            relays.enter_context(cutting(port, CUT_EVERY, port))
            for port in (on[object_server.S3], rest)
        )
        name, files, described = _table(kind, place, variables, rest, catalog.port)

        def crash() -> None:
            running.close()
            start()
            readable_s = time.monotonic() + READABLE_S
            while True:  # the server answers before it has found all of its volumes
                try:
                    files()
                    return
                except OSError:
                    if time.monotonic() > readable_s:
                        raise
                time.sleep(POLL_S)

        yield Target(
            name,
            lambda: rows_of(files()),
            object_server.client_variables(store.port) | described,
            crash,
            lambda: store.cuts + catalog.cuts,
        )


def _table(
    kind: str, place: Path, variables: dict[str, str], rest: int, relayed: int
) -> tuple[str, Callable[[], Iterable[Path]], dict[str, str]]:
    """The words of a driver, copies of the visible files, and what else the driver's environment
    says.
    """
    bucket = object_server.BUCKET
    if kind == "delta objects":
        seen = Seen(variables, "table", place)
        url = f"delta:s3://{bucket}/table"
        return url, lambda: delta_replay.active_files(seen.copied()), {}
    if kind == "objects":
        table = ObjectTable(f"{bucket}/table", place / "copies", variables)
        return f"s3://{bucket}/table", lambda: table.files().iterdir(), {}
    server = iceberg_objects.Server(variables, f"http://127.0.0.1:{rest}")
    if "rest" in kind:
        lake = iceberg_objects.Lake(server, "rest", place)
        described = lake.environment(uri=f"http://127.0.0.1:{relayed}")
    else:
        lake = iceberg_objects.Lake(server, "sql", place)
        described = lake.environment()
    return f"iceberg:lake.{lake.table}", lake.active_files, described


def _of_postgres() -> Iterator[Target]:
    server = Server()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table events (x bigint, name text)")

    def read() -> list[Row]:
        with psycopg.connect(server.dsn) as connection:
            return connection.execute("select x, name from events order by x, name").fetchall()

    def crash() -> None:
        server.crash()
        server.start()

    yield Target(f"postgres:{server.dsn}#events", read, crash=crash)
    server.remove()
