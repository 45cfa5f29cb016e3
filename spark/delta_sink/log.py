"""A table's log, as the library `deltalake` reads and writes it.

Decides nothing: creates, reads and appends on the snapshot that was read, and makes the log's files
survive a power cut, which the library does not. Runs on the driver, one call at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from epochgate.runtime.objects.client import ObjectStore, is_url, open_url, settings_of_library
from epochgate.runtime.objects.errors import what_was_said
from epochgate.spark.delta_sink.durable import make_durable
from epochgate.spark.delta_sink.entries import actions_of, moment_of, numbers_of
from epochgate.spark.delta_sink.errors import LogFailed, LogOvertaken
from epochgate.spark.delta_sink.features import OF_VERSIONS
from epochgate.spark.delta_sink.statements import carry_out
from epochgate.spark.extras import library
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.partitions import values_of
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.merge import Merge

HISTORY_LOOKED_AT = 100
"""Entries among which a write whose answer was lost is looked for."""
CLEANED_EVERY = 100
"""Versions after which expired entries are removed. The library would look for expired entries
after each commit, which costs four times as much as the commit where the log has 10,000 entries."""


_ESCAPE = re.compile("%[0-9a-fA-F]{2}")
_TREE = re.compile("\\s*\\n\\s*(\x1b\\[\\d+m)?\u21b3?(\x1b\\[0m)?\\s*")
"""Between the causes of an error, as the library draws them."""
_FOLDER = "_delta_log"
NAMED_IN = 200
"""The newest entries in which files are looked for that may be orphans."""


Files = Mapping[str, Committable]
"""By the path by which an entry names them."""


class DeltaLog:
    """The log of the table in the directory or at the URL `path`; `read` it before anything else.

    open_objects: with what the entries of a log in an object store are read, beside the library.
    """

    def __init__(self, path: str, open_objects: Callable[[str], ObjectStore] = open_url) -> None:
        """Raises ExtraMissing without the library, ObjectStoreUnusable, and TableUnusable for a
        path of which the library makes another one.
        """
        self._objects = open_objects(path) if is_url(path) else None
        self._settings = settings_of_library(path)
        if escape := _ESCAPE.search(path if self._objects else os.path.abspath(path)):
            raise TableUnusable(
                f"the Delta table {path!r}",
                f"the Delta library reads {escape[0]!r} in a path as {unquote(escape[0])!r}, and "
                "so do those who read the table with it, who would not find it",
                "Give a directory without '%' before two hexadecimal digits in its path.",
            )
        self.path = path
        self._delta = library("deltalake", what="writing to Delta tables", extra="delta")
        self._actions = library("deltalake.transaction", what="a Delta table", extra="delta")
        self._table: Any = None

    def read(self) -> bool:
        """Read the newest snapshot; false if there is no table.

        Raises LogFailed or LogOvertaken.
        """
        with self._translating():
            if self._table is not None:
                self._table.update_incremental()
            elif self._delta.DeltaTable.is_deltatable(self.path, storage_options=self._settings):
                self._table = self._opened()
        return self._table is not None

    def _opened(self) -> Any:
        return self._delta.DeltaTable(self.path, storage_options=self._settings)

    def version(self) -> int:
        """The number of the snapshot."""
        return int(self._table.version())

    def transaction(self, application: str) -> int | None:
        """The last number that an application has put into the snapshot; none without one."""
        return self._table.transaction_version(application)  # type: ignore[no-any-return]

    def schema(self) -> pa.Schema:
        """The Arrow schema of the snapshot."""
        return pa.schema(self._table.schema().to_arrow())

    def metadata(self) -> Any:
        """The snapshot's metadata: `id`, `partition_columns`, `configuration`."""
        return self._table.metadata()

    def column_rules(self) -> set[str]:
        """The keys of what the columns demand, such as "delta.generationExpression"."""
        return {key for field in self._table.schema().fields for key in field.metadata}

    def writer_features(self) -> set[str]:
        """Return the features that the table demands of a writer, by name; nothing where it has
        none by name, and any of those that versions of writers up to `OF_VERSIONS` know.
        """
        protocol = self._table.protocol()
        if protocol.writer_features is not None:
            return set(protocol.writer_features)
        version = protocol.min_writer_version
        return set() if version <= OF_VERSIONS else {f"writer version {version}"}

    def has_said(self, key: str, value: str) -> bool:
        """Return whether one of the newest entries has this value of its writer's."""
        return any(entry.get(key) == value for entry in self._table.history(HISTORY_LOOKED_AT))

    def changed_without_transaction(self, after: int) -> list[int]:
        """The versions after this one whose entries change rows and name no application.

        Such an entry may be of any writer. Maintenance changes no rows, and writers that are done
        once name themselves. A version whose file is gone counts as well. Raises LogFailed.
        """
        versions = range(after + 1, self.version() + 1)
        return [version for version in versions if self._is_of_anyone(version)]

    def _is_of_anyone(self, version: int) -> bool:
        if not (actions := self._entry(version)):
            return True
        changes = (action.get("add") or action.get("remove") for action in actions)
        changes_rows = any(found and found.get("dataChange", True) for found in changes)
        return changes_rows and not any("txn" in action for action in actions)

    def held(self, application: str, *others: str) -> tuple[int | None, list[int]]:
        """The newest number of an application whose rows are in the table, none if there is none;
        and those after it that a RESTORE has taken back, as `taken_back` finds them. The newest
        snapshot itself has the number of before the RESTORE. Raises LogOvertaken or LogFailed.
        """
        last, lost = self.transaction(application), self.taken_back(application, *others)
        if last in lost:
            last = min(lost) - 1 if min(lost) > 0 else None
        return last, lost

    def taken_back(self, application: str, *others: str) -> list[int]:
        """The numbers of an application whose entries a RESTORE has taken back, since the newest
        entry with a number of the application or of `others`.

        Looks at no older entry where there was no RESTORE, nor at entries that have expired. Raises
        LogOvertaken or LogFailed.
        """
        lost: list[int] = []
        version = self.version()
        while version >= 0 and (entry := self._entry(version)):
            if not numbers_of(entry).keys().isdisjoint((application, *others)):
                break
            back = [target for one in entry if (target := self._restored(one)) is not None]
            before = back[0] if back else version - 1
            for between in range(version - 1, before, -1):
                lost += [n for a, n in numbers_of(self._entry(between)).items() if a == application]
            version = before
        return lost

    def _restored(self, action: Mapping[str, Any]) -> int | None:
        """The version to which an entry with this action sets the table back; none for another."""
        said = action.get("commitInfo") or {}
        if said.get("operation") != "RESTORE":
            return None
        given = said.get("operationParameters") or {}
        if given.get("version") is not None:
            return int(given["version"])
        try:
            with self._translating():
                then = self._opened()
                then.load_as_version(
                    moment_of(str(given.get("datetime") or given.get("timestamp")))
                )
                return int(then.version())
        except (LogFailed, ValueError):
            return -1  # of an unknown version all that followed may be gone; a person looks

    def _entry(self, version: int) -> list[dict[str, Any]]:
        """The actions of an entry; none if it has expired. Raises LogFailed."""
        name = f"{_FOLDER}/{version:020d}.json"
        try:
            if self._objects is None:
                with open(os.path.join(self.path, name), "rb") as file:
                    return actions_of(file.read())
            return actions_of(self._objects.get(name))
        except FileNotFoundError:
            return []
        except OSError as error:
            if self._objects is None:
                raise
            raise LogFailed(self.path, str(error)) from error

    def named_since(self, moment_ns: int) -> tuple[int, set[str]]:
        """The paths that entries since this moment name, in the time of the object store, or since
        the one that is returned: of older entries than `NAMED_IN`, or that are gone, nothing is
        known. Raises OSError or LogFailed.
        """
        assert self._objects is not None, "the files of a directory are moved before they are named"
        times_ns = {one.key: one.modified_ns for one in self._objects.find(_FOLDER)}
        named: set[str] = set()
        since_ns = sys.maxsize
        for version in range(self.version(), self.version() - NAMED_IN, -1):
            if version < 0:
                return 0, named
            if since_ns < moment_ns or not (entry := self._entry(version)):
                break
            since_ns = times_ns.get(f"{_FOLDER}/{version:020d}.json", since_ns)
            named |= {
                unquote(one[kind]["path"])
                for one in entry
                for kind in ("add", "remove")
                if kind in one
            }
        return since_ns, named

    def rows(self) -> int:
        """The rows of the snapshot, of the files that say how many they have."""
        counts = pa.table(self._table.get_add_actions(flatten=True))["num_records"]
        return sum(count or 0 for count in counts.to_pylist()) - self._deleted()

    def _deleted(self) -> int:
        """Rows that are in the files, and not in the table."""
        if "deletionVectors" not in self.writer_features():
            return 0
        vectors = pa.table(self._table.deletion_vectors())
        return sum(kept.count(False) for kept in vectors["selection_vector"].to_pylist())

    def create(
        self,
        schema: pa.Schema,
        files: Files,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        configuration: Mapping[str, str] | None = None,
        partition_by: Sequence[str] = (),
    ) -> None:
        """Make the table, with its first files, these table properties and partitions.

        Raises LogFailed or LogOvertaken, also if there is one by now.
        """
        with self._translating():
            self._create(
                schema, files, transactions, metadata, dict(configuration or {}), partition_by
            )
        self._make_durable(-1)

    def _create(
        self,
        schema: pa.Schema,
        files: Files,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        configuration: dict[str, str],
        partition_by: Sequence[str],
    ) -> None:
        self._actions.create_table_with_add_actions(
            self.path,
            self._delta.Schema.from_arrow(schema),
            [self._added(*named) for named in files.items()],
            mode="error",
            partition_by=list(partition_by),
            configuration=configuration,
            storage_options=self._settings,
            commit_properties=self._properties(transactions, metadata, retries=0),
        )
        self._table = self._opened()

    def add_columns(
        self,
        fields: Sequence[pa.Field],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """Let the snapshot that was read have these columns, or those within a column, too. `read`
        shows them.

        Raises LogOvertaken if one of these applications or another schema has come before, and
        LogFailed.
        """
        before = self._table.version()
        with self._translating():
            self._table.alter.add_columns(
                list(self._delta.Schema.from_arrow(pa.schema(fields)).fields),
                commit_properties=self._properties(transactions, metadata),
            )
        self._make_durable(before)

    def append(
        self,
        files: Files,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """Add files to the snapshot that was read, and numbers of applications. `read` shows them.

        Raises LogOvertaken if one of these applications has come before, and LogFailed.
        """
        self._write("append", files, transactions, metadata)

    def replace(
        self,
        files: Files,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """The same, in the place of the files of the snapshot that was read. Raises LogOvertaken,
        LogFailed.
        """
        self._write("overwrite", files, transactions, metadata)

    def merge(
        self,
        rows: pa.RecordBatchReader,
        merge: Merge,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """Merge rows, one of each key and with the mark of those that delete, into the snapshot
        that was read, with numbers of applications, in one entry. `read` shows them.

        Raises LogOvertaken if any entry has come before, and LogFailed.
        """
        before = self._table.version()
        # A later entry of another writer may have rows of the same keys.
        given = self._properties(transactions, metadata, retries=0)
        with self._translating():
            carry_out(self._table, rows, merge, given, self._after_commit(before))
        if self._table.version() == before:
            # The library makes no entry where no row changes; this one is on the same snapshot.
            self._write("append", {}, transactions, metadata, retries=0)
            return
        self._make_durable(before, with_files=True)

    def _write(
        self,
        mode: str,
        files: Files,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        retries: int | None = None,
    ) -> None:
        before = self._table.version()
        with self._translating():
            self._table.create_write_transaction(
                [self._added(*named) for named in files.items()],
                mode,
                self._table.schema(),
                commit_properties=self._properties(transactions, metadata, retries),
                post_commithook_properties=self._after_commit(before),
            )
        self._make_durable(before)

    def _after_commit(self, before: int) -> Any:
        is_cleaned = (before + 1) % CLEANED_EVERY == 0
        return self._delta.PostCommitHookProperties(
            create_checkpoint=True, cleanup_expired_logs=None if is_cleaned else False
        )

    def _properties(
        self,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        retries: int | None = None,
    ) -> Any:
        """`retries`: 0 for what holds on the snapshot that was read alone, such as the making of a
        table; the library would repeat it on a newer one, whatever applications both name.
        """
        return self._delta.CommitProperties(
            custom_metadata=dict(metadata),
            max_commit_retries=retries,
            app_transactions=[self._delta.Transaction(*item) for item in transactions.items()],
        )

    def _added(self, path: str, file: Committable) -> Any:
        return self._actions.AddAction(
            path=path,
            size=file.size_bytes,
            partition_values=values_of(file.directory),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if isinstance(error, self._delta.exceptions.CommitFailedError):
                raise LogOvertaken(self.path, str(error)) from error
            if self._objects is not None and isinstance(error, OSError):
                said = _TREE.sub(": ", str(error)).strip()
                raise LogFailed(self.path, what_was_said(said)) from error
            if isinstance(error, self._delta.exceptions.DeltaError):
                raise LogFailed(self.path, str(error)) from error
            raise

    def _make_durable(self, after: int, *, with_files: bool = False) -> None:
        """`with_files`: also the files of rows, where the library has written these."""
        if self._objects is not None:
            return  # what an object store has taken is durable
        written = [
            one["path"]
            for action in (self._entry(after + 1) if with_files else ())
            if (one := action.get("add") or action.get("cdc"))
        ]
        make_durable(self.path, _FOLDER, after, map(unquote, written))


def refusal_of(
    schema: pa.Schema, configuration: Mapping[str, str], partition_by: Sequence[str] = ()
) -> str | None:
    """Return the reason why the library makes no table with the schema; None if it does."""
    with tempfile.TemporaryDirectory(prefix="epochgate-") as place:
        try:
            table = DeltaLog(os.path.join(place, "table"))
            table.create(schema, {}, {}, {}, configuration, partition_by)
        except LogFailed as error:
            return str(error.args[1])
    return None
