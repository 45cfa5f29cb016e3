"""Ledgers for `once`: records of the batches for which a function was called.

A ledger in the place that the function writes to has its entry in the function's transaction, so
that a batch takes effect once. Another ledger is written after the function has returned: if the
process dies in between, the function is called again (at least once). Ledgers are plain values that
can be pickled; connections are made where the batch runs.
"""

from __future__ import annotations

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from epochgate.runtime import RetryLater
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.spark.extras import library
from epochgate.spark.streaming.errors import (
    CountedElsewhere,
    TransactionLost,
    TransactionMissing,
    TransactionTaken,
    TransactionUnused,
)
from epochgate.spark.streaming.identity import counter_of
from epochgate.spark.streaming.notes import DirectoryNotes, NoteStore, ObjectNotes, notes_in
from epochgate.spark.tables.staged import WORKING

if TYPE_CHECKING:
    from epochgate.spark.delta_sink.log import DeltaLog

Call = Callable[..., Any]
"""The user's function with frame and batch bound; its argument, if any, is a transaction."""


class Ledger(ABC):
    """A place for entries. `name` separates ledgers that share a place."""

    third: ClassVar[str | None] = None
    """The third argument of the function; "" for a function of two, None if that is not known."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The name of the ledger in messages."""

    @abstractmethod
    def notes(self) -> NoteStore:
        """Return the store of batches, offsets and locations."""

    def number(self, query: str) -> int:
        """Return the number of batches whose entries were part of a transaction; 0 without
        transactions.
        """
        return 0

    @abstractmethod
    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call the function; return whether its transaction contains the entry.

        Raises RetryLater if another process was first, or if it is unknown whether the transaction
        took effect.
        """

    def sweep(self, query: str, batch: int) -> None:
        """Do nothing: a ledger stages no data."""


@dataclass(frozen=True)
class DirectoryLedger(Ledger):
    """A ledger in a directory that the driver reaches; calls the function at least once."""

    third: ClassVar[str | None] = ""
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
    """A ledger below a URL of an object store; calls the function at least once.

    `open_objects` opens the URL, for tests.
    """

    third: ClassVar[str | None] = ""
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
    """A ledger in the table `epochgate_batches` of a PostgreSQL database.

    The third argument of the function is a psycopg connection, whose transaction contains the
    entry: everything written through it takes effect once. The function must neither commit nor
    roll back, and lets errors of statements out, unless they are in a savepoint
    (`with connection.transaction():`).
    """

    third: ClassVar[str | None] = "connection"
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
        """Call it in a transaction that begins with the entry, so that other processes wait.

        Raises TransactionLost if the function has ended the transaction, or a statement has.
        """
        psycopg = _psycopg()
        try:
            connection = _postgres().connect(self.dsn)
        except psycopg.OperationalError as error:
            raise RetryLater(f"{self.shown}: {error}") from error
        with connection:
            key = {"ledger": self.name, "query": query, "batch": batch}
            if not connection.execute(_ENTER, key).rowcount:
                raise RetryLater(f"{self.shown} has another number of batches of {query} by now")
            self._in_savepoint(connection, query, batch, function)
            try:
                connection.commit()
            except psycopg.OperationalError as error:
                raise RetryLater(f"{self.shown}: {error}") from error
        return True

    def _in_savepoint(self, connection: Any, query: str, batch: int, function: Call) -> None:
        """Call it in a savepoint: psycopg refuses a commit inside of it, and PostgreSQL refuses to
        release the savepoint of a transaction that has ended.
        """
        psycopg = _psycopg()
        lost = functools.partial(TransactionLost, self.shown, query, batch)
        try:
            with connection.transaction():
                function(connection)
                status = connection.info.transaction_status
                if status == psycopg.pq.TransactionStatus.INERROR:
                    # COMMIT would roll back, and report success.
                    raise lost("a statement of the function failed, and it has gone on")
                if connection.closed and not connection.broken:
                    raise lost("the function has closed the connection")
                if status == psycopg.pq.TransactionStatus.IDLE:
                    raise lost("the function has ended the transaction")
        except psycopg.errors.InvalidSavepointSpecification as error:
            raise lost("the function has ended the transaction") from error


_BATCHES = """create table if not exists epochgate_batches
    (ledger text, query text, number bigint not null, primary key (ledger, query))"""
_NUMBER = "select number from epochgate_batches where ledger = %s and query = %s"
_ENTER = """
    insert into epochgate_batches as known values (%(ledger)s, %(query)s, %(batch)s + 1)
    on conflict (ledger, query) do update set number = excluded.number
    where known.number <= %(batch)s"""


@dataclass
class DeltaTransaction:
    """The entry of a batch, to be passed to the batch's one write to the ledger's Delta table.

    Each write is a commit of its own, and the first with the entry is the batch to the log, so the
    entry is given once.
    """

    application: str
    version: int
    _is_taken: bool = field(default=False, init=False, repr=False, compare=False)
    _is_skipped: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def is_taken(self) -> bool:
        """True if a write was given the entry."""
        return self._is_taken and not self._is_skipped

    @property
    def is_skipped(self) -> bool:
        """True if the function has said that it writes nothing."""
        return self._is_skipped

    def skip(self) -> None:
        """Say that the batch writes nothing to the table, so that changes of the table are those of
        other writers. Raises TransactionTaken.
        """
        self._take()
        self._is_skipped = True

    def options(self) -> dict[str, str]:
        """Return options for Spark's Delta: `df.write.format("delta").options(**...)`. Raises
        TransactionTaken.
        """
        self._take()
        return {"txnAppId": self.application, "txnVersion": str(self.version)}

    def properties(self, **metadata: str) -> Any:
        """Return `commit_properties` for `deltalake.write_deltalake`. Raises TransactionTaken."""
        delta = library("deltalake", what="a ledger in a Delta table", extra="delta")
        self._take()
        return delta.CommitProperties(
            custom_metadata=metadata,
            app_transactions=[delta.Transaction(self.application, self.version)],
        )

    def _take(self) -> None:
        if self._is_taken:
            raise TransactionTaken(self.version)
        self._is_taken = True


@dataclass(frozen=True)
class DeltaLedger(Ledger):
    """A ledger in the log of the Delta table in the directory or at the URL `path`.

    The third argument of the function is a `DeltaTransaction`; a write to this table with its
    options or properties takes effect once. A function that writes nothing to this table is called
    at least once.
    """

    third: ClassVar[str | None] = "transaction"
    path: str

    @property
    def shown(self) -> str:
        """The path."""
        return self.path

    def notes(self) -> NoteStore:
        """In the working directory of the table."""
        return notes_in(self.path, WORKING)

    def number(self, query: str) -> int:
        """1 more than the version of the query's last transaction. Raises CountedElsewhere."""
        log = self._log()
        if log is not None and (number := log.transaction(counter_of(query))) is not None:
            raise CountedElsewhere(self.path, query, number)
        last = self._last(query)
        return 0 if last is None else last + 1

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it, and look whether the log has its transaction.

        Raises TransactionUnused if the function took the transaction and the log does not have it,
        and TransactionMissing if it did not, and rows have changed without any transaction.
        """
        delta = library("deltalake.exceptions", what="a ledger in a Delta table", extra="delta")
        before = self._version()
        transaction = DeltaTransaction(query, batch)
        try:
            function(transaction)
        except delta.CommitFailedError as error:
            raise RetryLater(f"{self.path}: {error}") from error
        log = self._log()
        last = None if log is None else log.held(query)[0]
        if last == batch:
            return True
        if last is not None and last > batch:
            raise RetryLater(f"{self.path} has another number of batches of {query} by now")
        if transaction.is_taken:
            raise TransactionUnused(self.path, batch, query)
        if log is not None and not transaction.is_skipped:
            changed = log.changed_without_transaction(-1 if before is None else before)
            if changed:
                raise TransactionMissing(self.path, batch, changed, before)
        return False

    def _last(self, query: str) -> int | None:
        log = self._log()
        return None if log is None else log.held(query)[0]

    def _version(self) -> int | None:
        log = self._log()
        return None if log is None else log.version()

    def _log(self) -> DeltaLog | None:
        """The newest snapshot; none if there is no table."""
        from epochgate.spark.delta_sink.log import DeltaLog

        log = DeltaLog(self.path)
        return log if log.read() else None


@dataclass(frozen=True)
class IcebergLedger(Ledger):
    """A ledger in the properties of the Iceberg table `table` of `catalog`.

    The third argument of the function is a pyiceberg transaction on this table: everything done
    through it takes effect once. The function must not commit it.
    """

    third: ClassVar[str | None] = "transaction"
    catalog: str
    table: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """Catalog and table."""
        return f"{self.catalog}.{self.table}"

    def notes(self) -> NoteStore:
        """In the working directory of the table."""
        return notes_in(self._loaded().directory, WORKING)

    def number(self, query: str) -> int:
        """That among the properties."""
        return int(self._loaded().properties.get(_key(query), "0"))

    def call(self, query: str, batch: int, function: Call) -> bool:
        """Call it, and commit the transaction with the entry, on the snapshot that was read.

        Raises TransactionLost if the function has committed it.
        """
        from epochgate.spark.iceberg_sink.errors import OutcomeUnknown, TableOvertaken

        table = self._loaded()
        if int(table.properties.get(_key(query), "0")) > batch:
            raise RetryLater(f"{self.shown} has another number of batches of {query} by now")
        transaction, read = table.begin(), table.metadata_location
        function(transaction)
        if table.metadata_location != read:
            cause = "the function has ended the transaction"
            raise TransactionLost(self.shown, query, batch, cause)
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
