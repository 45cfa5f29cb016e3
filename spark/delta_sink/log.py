"""A table's log, as the library `deltalake` reads and writes it.

Decides nothing: creates, reads and appends on the snapshot that was read, and makes the log's files
survive a power cut, which the library does not. Runs on the driver, one call at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from epochgate.spark.delta_sink.errors import LogFailed, LogOvertaken
from epochgate.spark.extras import library
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.tables.errors import TableUnusable

HISTORY_LOOKED_AT = 100
"""Entries among which a write whose answer was lost is looked for."""
CLEANED_EVERY = 100
"""Versions after which expired entries are removed. The library would look for expired entries
after each commit, which costs four times as much as the commit where the log has 10,000 entries."""


_ESCAPE = re.compile("%[0-9a-fA-F]{2}")


class DeltaLog:
    """The log of the table in the directory `path`; `read` it before anything else."""

    def __init__(self, path: str) -> None:
        """Raises ExtraMissing without the library, and TableUnusable for a path of which it makes
        another one.
        """
        if escape := _ESCAPE.search(os.path.abspath(path)):
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
            elif self._delta.DeltaTable.is_deltatable(self.path):
                self._table = self._delta.DeltaTable(self.path)
        return self._table is not None

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
        """Return the features that the table demands of a writer beyond version 2, by name."""
        protocol = self._table.protocol()
        if protocol.writer_features is not None:
            return set(protocol.writer_features)
        return (
            set()
            if protocol.min_writer_version <= 2
            else {f"writer version {protocol.min_writer_version}"}
        )

    def has_said(self, key: str, value: str) -> bool:
        """Return whether one of the newest entries has this value of its writer's."""
        return any(entry.get(key) == value for entry in self._table.history(HISTORY_LOOKED_AT))

    def changed_without_transaction(self, after: int) -> list[int]:
        """The versions after this one whose entries change rows and name no application.

        Such an entry may be of any writer. Maintenance changes no rows, and writers that are done
        once name themselves. A version whose file is gone counts as well.
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
            if not _numbers(entry).keys().isdisjoint((application, *others)):
                break
            back = [target for one in entry if (target := self._restored(one)) is not None]
            before = back[0] if back else version - 1
            for between in range(version - 1, before, -1):
                lost += [n for a, n in _numbers(self._entry(between)).items() if a == application]
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
                then = self._delta.DeltaTable(self.path)
                then.load_as_version(_moment(str(given.get("datetime") or given.get("timestamp"))))
                return int(then.version())
        except (LogFailed, ValueError):
            return -1  # of an unknown version all that followed may be gone; a person looks

    def _entry(self, version: int) -> list[dict[str, Any]]:
        """The actions of an entry; none if it has expired."""
        try:
            path = os.path.join(self.path, "_delta_log", f"{version:020d}.json")
            with open(path, encoding="utf-8") as lines:
                return [json.loads(line) for line in lines if line.strip()]
        except FileNotFoundError:
            return []

    def rows(self) -> int:
        """The rows of the snapshot, of the files that say how many they have."""
        counts = pa.table(self._table.get_add_actions(flatten=True))["num_records"]
        return sum(count or 0 for count in counts.to_pylist())

    def create(
        self,
        schema: pa.Schema,
        files: Sequence[Committable],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        """Make the table, with its first files and these table properties.

        Raises LogFailed or LogOvertaken, also if there is one by now.
        """
        with self._translating():
            self._create(schema, files, transactions, metadata, dict(configuration or {}))
        self._make_durable(-1)

    def _create(
        self,
        schema: pa.Schema,
        files: Sequence[Committable],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        configuration: dict[str, str],
    ) -> None:
        self._actions.create_table_with_add_actions(
            self.path,
            self._delta.Schema.from_arrow(schema),
            [self._added(file) for file in files],
            mode="error",
            configuration=configuration,
            commit_properties=self._properties(transactions, metadata, retries=0),
        )
        self._table = self._delta.DeltaTable(self.path)

    def append(
        self,
        files: Sequence[Committable],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """Add files to the snapshot that was read, and numbers of applications. `read` shows them.

        Raises LogOvertaken if one of these applications has come before, and LogFailed.
        """
        self._write("append", files, transactions, metadata)

    def replace(
        self,
        files: Sequence[Committable],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        """The same, in the place of the files of the snapshot that was read. Raises LogOvertaken,
        LogFailed.
        """
        self._write("overwrite", files, transactions, metadata)

    def _write(
        self,
        mode: str,
        files: Sequence[Committable],
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
    ) -> None:
        before = self._table.version()
        is_cleaned = (before + 1) % CLEANED_EVERY == 0
        with self._translating():
            self._table.create_write_transaction(
                [self._added(file) for file in files],
                mode,
                self._table.schema(),
                commit_properties=self._properties(transactions, metadata),
                post_commithook_properties=self._delta.PostCommitHookProperties(
                    create_checkpoint=True, cleanup_expired_logs=None if is_cleaned else False
                ),
            )
        self._make_durable(before)

    def _properties(
        self,
        transactions: Mapping[str, int],
        metadata: Mapping[str, str],
        retries: int | None = None,
    ) -> Any:
        """`retries`: 0 for the making of a table, which the library would repeat as the next
        version of a table that another has made meanwhile, whatever applications both name.
        """
        return self._delta.CommitProperties(
            custom_metadata=dict(metadata),
            max_commit_retries=retries,
            app_transactions=[self._delta.Transaction(*item) for item in transactions.items()],
        )

    def _added(self, file: Committable) -> Any:
        return self._actions.AddAction(
            path=file.file_name,
            size=file.size_bytes,
            partition_values={},
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
            if isinstance(error, self._delta.exceptions.DeltaError):
                raise LogFailed(self.path, str(error)) from error
            raise

    def _make_durable(self, after: int) -> None:
        log = os.path.join(self.path, "_delta_log")
        for version in itertools.count(after + 1):
            try:
                _fsync(os.path.join(log, f"{version:020d}.json"))
            except FileNotFoundError:
                break
            with contextlib.suppress(FileNotFoundError):
                _fsync(os.path.join(log, f"{version:020d}.checkpoint.parquet"))
        with contextlib.suppress(FileNotFoundError):
            _fsync(os.path.join(log, "_last_checkpoint"))
        _fsync(log)
        _fsync(self.path)


def _moment(text: str) -> datetime:
    """Return the moment of a commit, as the library (ms since 1970) or Spark (local time) says."""
    if text.isdecimal():
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    return datetime.fromisoformat(text).astimezone()


def _numbers(entry: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The numbers of applications in an entry."""
    found = [one["txn"] for one in entry if "txn" in one]
    return {one["appId"]: int(one["version"]) for one in found}


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
