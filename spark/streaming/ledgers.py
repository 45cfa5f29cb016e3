"""Ledgers for `once`: where it is written down which batches of a query a function was called for.

A ledger that lies where the function writes carries its entry in the function's own transaction, so
that a batch takes effect once. One that lies elsewhere is written after the function has returned:
a process that dies in between has the function called again, at least once in all. Plain values
that can be pickled; connections are made where the batch runs.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime import RetryLater
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.spark.extras import library
from epochgate.spark.streaming.notes import DirectoryNotes, NoteStore, ObjectNotes

Call = Callable[..., Any]
"""The user's function, with frame and number of the batch given; a transaction is its argument."""


class Ledger(ABC):
    """Where entries lie. `name`: keeps ledgers apart that share a place."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """What it is called in messages."""

    @abstractmethod
    def notes(self) -> NoteStore:
        """Where batches, offsets and locations are noted."""

    def number(self, query: str) -> int:
        """How many batches it has entries of, of those that a transaction carried; 0 where there is
        no transaction.
        """
        return 0

    @abstractmethod
    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call the function; whether its effect carries the entry. Raises RetryLater if another
        process has come before, or if it is not known whether the transaction took effect.
        """

    def sweep(self, query: str, batch: int) -> None:
        """Nothing is staged."""


@dataclass(frozen=True)
class DirectoryLedger(Ledger):
    """In a directory that the driver reaches; the function is called at least once for a batch."""

    path: str

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    def notes(self) -> DirectoryNotes:
        """A file in it."""
        return DirectoryNotes(self.path)

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it; the entry comes afterwards."""
        function()
        return False


@dataclass(frozen=True)
class ObjectLedger(Ledger):
    """Below a URL of an object store; the function is called at least once for a batch.

    `open_objects`: with what, for tests.
    """

    url: str
    open_objects: Callable[[str], ObjectStore] = open_url

    @property
    def shown(self) -> str:
        """The URL."""
        return self.url

    def notes(self) -> ObjectNotes:
        """Objects with numbers."""
        return ObjectNotes(self.open_objects(self.url), "queries")

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it; the entry comes afterwards."""
        function()
        return False


@dataclass(frozen=True)
class PostgresLedger(Ledger):
    """In a table `epochgate_batches` of a PostgreSQL database. The function gets a connection of
    psycopg as its third argument, in whose transaction the entry is: what it writes through it
    takes effect once. It must neither commit nor roll back.
    """

    dsn: str = field(repr=False)
    name: str = "epochgate"

    @property
    def shown(self) -> str:
        """The database, without a password."""
        return f"the ledger {self.name!r} ({_postgres().shown(self.dsn)})"

    def notes(self) -> NoteStore:
        """A row beside the entries."""
        _postgres()
        from epochgate.spark.streaming.targets.postgres import PostgresNotes

        return PostgresNotes(self.dsn, self.name)

    def number(self, query: str) -> int:
        """The entry, with those of batches that were recorded afterwards. Raises RetryLater."""
        psycopg = _psycopg()
        try:
            with _postgres().connect(self.dsn) as connection:
                connection.execute("select pg_advisory_xact_lock(hashtext('epochgate'))")
                connection.execute(_BATCHES)
                found = connection.execute(_NUMBER, [self.name, query]).fetchone()
        except psycopg.OperationalError as error:
            raise RetryLater(f"{self.shown}: {error}") from error
        return 0 if found is None else int(found[0])

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it in a transaction that begins with the entry, so that others wait for its end."""
        psycopg = _psycopg()
        try:
            connection = _postgres().connect(self.dsn)
        except psycopg.OperationalError as error:
            raise RetryLater(f"{self.shown}: {error}") from error
        with connection:
            key = {"ledger": self.name, "query": query, "batch": batch}
            if not connection.execute(_ENTER, key).rowcount:
                raise RetryLater(f"{self.shown} has another number of batches of {query} by now")
            function(connection)
            try:
                connection.commit()
            except psycopg.OperationalError as error:
                raise RetryLater(f"{self.shown}: {error}") from error
        return True


_BATCHES = """create table if not exists epochgate_batches
    (ledger text, query text, number bigint not null, primary key (ledger, query))"""
_NUMBER = "select number from epochgate_batches where ledger = %s and query = %s"
_ENTER = """
    insert into epochgate_batches as known values (%(ledger)s, %(query)s, %(batch)s + 1)
    on conflict (ledger, query) do update set number = excluded.number
    where known.number <= %(batch)s"""


@dataclass(frozen=True)
class DeltaTransaction:
    """What makes a write to the Delta table of the ledger carry the entry."""

    application: str
    version: int

    def options(self) -> dict[str, str]:
        """For a write by Spark's own Delta: `df.write.format("delta").options(**...)`."""
        return {"txnAppId": self.application, "txnVersion": str(self.version)}

    def properties(self, **metadata: str) -> Any:
        """For `deltalake.write_deltalake(..., commit_properties=...)`."""
        delta = library("deltalake", what="a ledger in a Delta table", extra="delta")
        return delta.CommitProperties(
            custom_metadata=metadata,
            app_transactions=[delta.Transaction(self.application, self.version)],
        )


@dataclass(frozen=True)
class DeltaLedger(Ledger):
    """In the log of the Delta table in the directory `path`. The function gets a `DeltaTransaction`
    as its third argument; a write to this table that has its options or properties takes effect
    once. A function that makes no such write is called at least once.
    """

    path: str

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    def notes(self) -> DirectoryNotes:
        """In the working directory of the table."""
        return DirectoryNotes(f"{self.path}/_epochgate")

    def number(self, query: str) -> int:
        """1 more than the version of the query's last transaction."""
        last = self._last(query)
        return 0 if last is None else last + 1

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it, and look whether the log has its transaction."""
        delta = library("deltalake.exceptions", what="a ledger in a Delta table", extra="delta")
        try:
            function(DeltaTransaction(query, batch))
        except delta.CommitFailedError as error:
            raise RetryLater(f"{self.path}: {error}") from error
        return self._last(query) == batch

    def _last(self, query: str) -> int | None:
        from epochgate.spark.delta_sink.log import DeltaLog

        log = DeltaLog(self.path)
        return log.transaction(query) if log.read() else None


@dataclass(frozen=True)
class IcebergLedger(Ledger):
    """Among the properties of the Iceberg table `table` of `catalog`. The function gets a
    transaction of pyiceberg on this table as its third argument: what it does through it takes
    effect once. It must not commit it.
    """

    catalog: str
    table: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """Catalog and table."""
        return f"{self.catalog}.{self.table}"

    def notes(self) -> DirectoryNotes:
        """In the working directory of the table."""
        return DirectoryNotes(f"{self._loaded().directory}/_epochgate")

    def number(self, query: str) -> int:
        """That among the properties."""
        return int(self._loaded().properties.get(_key(query), "0"))

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it, and commit the transaction with the entry, on the snapshot that was read."""
        from epochgate.spark.iceberg_sink.errors import OutcomeUnknown, TableOvertaken

        table = self._loaded()
        if int(table.properties.get(_key(query), "0")) > batch:
            raise RetryLater(f"{self.shown} has another number of batches of {query} by now")
        transaction = table.begin()
        function(transaction)
        try:
            table.end(transaction, {_key(query): str(batch + 1)})
        except (OutcomeUnknown, TableOvertaken) as error:
            raise RetryLater(str(error)) from error
        return True

    def _loaded(self) -> Any:
        from epochgate.errors import UsageError
        from epochgate.spark.iceberg_sink.table import IcebergTable

        table = IcebergTable(self.catalog, self.table, self.properties)
        if not table.load():
            raise UsageError(
                f"there is no Iceberg table {self.shown} for the ledger; make it first"
            )
        return table


def _key(query: str) -> str:
    return f"epochgate.once.{hashlib.sha256(query.encode()).hexdigest()[:16]}"


def _psycopg() -> Any:
    return library("psycopg", what="a ledger in PostgreSQL", extra="postgres")


def _postgres() -> Any:
    _psycopg()
    from epochgate.spark.postgres_sink import database

    return database
