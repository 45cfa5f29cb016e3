"""A table of a catalog, as the library `pyiceberg` reads and writes it.

Decides nothing of who may commit; makes a commit one that fails when the branch main has changed
since it was read, which the library's retries would hide: they put a stale commit on top of what
has come in between. Runs on the driver, one call at a time.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import is_remote, is_url, open_url, settings_of_library
from epochgate.runtime.objects.errors import ObjectStoreUnusable
from epochgate.spark.extras import library
from epochgate.spark.iceberg_sink.errors import CatalogUnusable, OutcomeUnknown, TableOvertaken
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.transforms import TAKEN
from epochgate.spark.values.formats import ICEBERG

RETRIES = "commit.retry.num-retries"
MERGING = "commit.manifest-merge.enabled"
IO = "py-io-impl"
WAREHOUSE = "warehouse"
_LOCAL = "file://"
VERSION_MAX = 2
"""Of the format; manifests of a newer one are not written by the library."""
_OF_STORES = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
    "s3.region": "AWS_REGION",
}
"""Properties of a catalog, and what the tasks' client goes by: the environment, or a profile."""
_OF_NO_ARROW_TYPE = re.compile("fixed|uuid|timestamp(tz)?_ns|unknown|variant|geo")
MAX_AGE_MS = "history.expire.max-snapshot-age-ms"
MIN_KEPT = "history.expire.min-snapshots-to-keep"
_OF_A_NEW_TABLE = {
    "write.metadata.delete-after-commit.enabled": "true",
    MAX_AGE_MS: str(24 * 3600 * 1000),
    MIN_KEPT: "100",
}
"""Of the metadata before, the last hundred files stay, and snapshots for a day: one of each for
every checkpoint would not do.
"""


class IcebergTable:
    """The table `name`, such as "sales.events", of the catalog; `load` it before anything else."""

    def __init__(self, catalog: str, name: str, properties: Mapping[str, str]) -> None:
        """Raises ExtraMissing, and CatalogUnusable for a catalog that is not described."""
        what, extra = "writing to Iceberg tables", "iceberg"
        catalogs = library("pyiceberg.catalog", what=what, extra=extra)
        described = library("pyiceberg.utils.config", what=what, extra=extra).Config()
        self._errors = library("pyiceberg.exceptions", what=what, extra=extra)
        self._tables = library("pyiceberg.table", what=what, extra=extra)
        self._arrow = library("pyiceberg.io.pyarrow", what=what, extra=extra)
        self._expressions = library("pyiceberg.expressions", what=what, extra=extra)
        self._unknown = (OSError, self._errors.RESTError, *_database_errors())
        self.name, self.shown = name, f"{catalog}.{name}"
        known = {**(described.get_catalog_config(catalog) or {}), **properties}
        if not known:
            raise CatalogUnusable(catalog, "nothing describes it")
        try:
            self._catalog = catalogs.load_catalog(catalog, **known)
        except Exception as error:  # of any kind of catalog, which the library does not tell apart
            raise CatalogUnusable(catalog, str(error).partition("\n")[0]) from error
        from epochgate.spark.iceberg_sink.durable_files import NAME

        self._catalog.properties.setdefault(IO, NAME)
        settings = dict(os.environ)
        with contextlib.suppress(ObjectStoreUnusable):  # which a table elsewhere does not need
            settings |= settings_of_library("s3://")
        for key, variable in _OF_STORES.items():
            if value := settings.get(variable):
                self._catalog.properties.setdefault(key, value)
        self._partitions = library(
            "epochgate.spark.iceberg_sink.partitions", what=what, extra=extra
        )
        self._rewriting = library("epochgate.spark.iceberg_sink.rewriting", what=what, extra=extra)
        self._table: Any = None
        self.partitions_when_made: tuple[str, ...] = ()
        """Of a table whose first columns come with a commit."""
        self._parents: dict[int, int | None] = {}

    def load(self) -> bool:
        """Read the newest metadata; false if there is no table. Raises OutcomeUnknown."""
        with self._failing():
            try:
                whole = self._catalog.load_table(self.name)
            except self._errors.NoSuchTableError:
                self._table = None
                return False
            self._parents = {one.snapshot_id: one.parent_snapshot_id for one in whole.snapshots()}
            self._table = self._as_committed_to(whole)
        return self._table is not None

    def create(self) -> None:
        """Make the table, without columns yet; harmless if there is one by now.

        Raises TableUnusable without a warehouse, and OutcomeUnknown.
        """
        namespace, _, last = self.name.rpartition(".")
        warehouse = self._catalog.properties.get(WAREHOUSE)
        if warehouse is None:
            reason = "there is no such table, and the catalog has no `warehouse` to make it in"
            raise TableUnusable(
                f"the Iceberg table {self.shown}",
                reason,
                "Make the table, or give the catalog one.",
            )
        location = "/".join([warehouse.rstrip("/"), *namespace.split("."), last])
        schema = library("pyiceberg.schema", what="an Iceberg table", extra="iceberg").Schema()
        with self._failing():
            if "://" not in (local := location.removeprefix(_LOCAL)):
                # The library makes directories with the permissions of the umask.
                LocalFileSystem().make_directory(local)
            self._catalog.create_namespace_if_not_exists(namespace)
            with contextlib.suppress(self._errors.TableAlreadyExistsError):
                self._catalog.create_table(
                    self.name, schema, location=location, properties=_OF_A_NEW_TABLE
                )

    @property
    def identity(self) -> str:
        """The text that tells this table from one of the same name."""
        return str(self._table.metadata.table_uuid)

    @property
    def directory(self) -> str:
        """The table's local directory, or its URL. Raises TableUnusable for another store."""
        location: str = self._table.location().rstrip("/")
        path = location.removeprefix(_LOCAL)
        if is_remote(path) and not is_url(path):
            raise TableUnusable(
                f"the Iceberg table {self.shown}",
                f"it lies at {location}, and this sink has no client of such a store",
                "Give a table in a directory, or in a store of s3://, gs:// or abfss://.",
            )
        return path

    def named_since(self, moment_ns: int) -> tuple[int, set[str]]:
        """The paths below the table's URL that snapshots since this moment have added, in the time
        of the object store, or since the one that is returned: of older ones nothing is kept, and
        of those whose metadata lies elsewhere it is not known when they were made. Raises OSError
        or OutcomeUnknown.
        """
        objects, named, since_ns = open_url(self.directory), set[str](), sys.maxsize
        with self._failing():
            whole = self._catalog.load_table(self.name)
            of_each = {one.sequence_number: one for one in whole.snapshots()}
            number = whole.metadata.last_sequence_number
            while (one := of_each.get(number)) and since_ns >= moment_ns:
                if "://" in (listed := self._below(one.manifest_list)):
                    break
                since_ns = objects.status(listed).modified_ns
                named |= {
                    self._below(entry.data_file.file_path)
                    for manifest in one.manifests(whole.io)
                    if manifest.added_snapshot_id == one.snapshot_id
                    for entry in manifest.fetch_manifest_entry(whole.io, discard_deleted=False)
                }
                number -= 1
        return (since_ns if number else 0), named

    def _below(self, location: str) -> str:
        """A location's path below the table's."""
        return location.removeprefix(f"{self.directory}/")

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return dict(self._table.properties)

    def schema(self) -> pa.Schema:
        """The columns as Arrow has them; those that are required may have no null."""
        found = self._arrow.schema_to_pyarrow(self._table.schema(), include_field_ids=False)
        both = zip(found, ICEBERG.schema(found), strict=True)
        return pa.schema([_demanding(one, made) for one, made in both])

    def demands(self) -> str:
        """Return what the table demands of its writers and this sink cannot keep; "" if nothing."""
        for one in self._table.spec().fields:
            if found := self._unsplittable(one):
                return found
        for field in self._table.schema().fields:
            if found := _unwritable(field.name, field.field_type):
                return found
        version: int = self._table.metadata.format_version
        if version > VERSION_MAX:
            return (
                f"it is of format version {version}, and the library pyiceberg writes up to "
                f"{VERSION_MAX} ('format-version' = '{VERSION_MAX}')"
            )
        return ""

    def transforms(self) -> list[str]:
        """Return the transforms by which new files are partitioned, as tasks are told them; void
        ones, of which nothing is made, are none.
        """
        schema = self._table.schema()
        return [
            f"{one.transform} {schema.find_column_name(one.source_id)}"
            for one in self._table.spec().fields
            if str(one.transform) != "void"
        ]

    def _unsplittable(self, field: Any) -> str:
        """Return why rows cannot be partitioned by this field of the spec; "" if they can."""
        name = self._table.schema().find_column_name(field.source_id)
        shown = f"it is partitioned by {field.transform} of {name!r}"
        kind = str(field.transform).partition("[")[0]
        if kind == "void":
            return ""
        if name not in [one.name for one in self._table.schema().fields]:
            return f"{shown}, which is within another column"
        of = str(self._table.schema().find_type(field.source_id))
        return "" if of in TAKEN.get(kind, ()) else f"{shown}, which is {of}"

    def has_said(self, key: str, value: str) -> bool:
        """Return whether the summary of a snapshot that is kept has this value."""
        found = self._catalog.load_table(self.name).snapshots()
        return any(one.summary is not None and one.summary[key] == value for one in found)

    def rows(self) -> int:
        """The rows of the newest snapshot, but for those that are deleted by their values."""
        return self._total("records") - self._total("position-deletes")

    def _total(self, what: str) -> int:
        snapshot = self._table.current_snapshot()
        summary = None if snapshot is None else snapshot.summary
        return 0 if summary is None else int(summary[f"total-{what}"] or 0)

    def has_lost(self, snapshot: int) -> bool:
        """Return whether a snapshot that the table still knows is no ancestor of the newest."""
        if snapshot not in self._parents:
            return False
        newest = self._table.current_snapshot()
        ancestor = None if newest is None else newest.snapshot_id
        while ancestor is not None and ancestor != snapshot:
            ancestor = self._parents.get(ancestor)
        return ancestor != snapshot

    def newest_said(self, key: str, beside: Mapping[str, str]) -> int:
        """The number that the newest snapshot of main has under `key`, of those that have all of
        `beside` in their summaries; 0 if none of them is kept.
        """
        of_each = {one.snapshot_id: one for one in self._table.snapshots()}
        current = self._table.current_snapshot()
        while current is not None:
            said = {} if current.summary is None else current.summary.additional_properties
            if key in said and beside.items() <= said.items():
                return int(said[key])
            current = of_each.get(current.parent_snapshot_id)
        return 0

    def commit(
        self,
        paths: Sequence[str],
        columns: Sequence[pa.Schema],
        properties: Mapping[str, str],
        summary: Mapping[str, str],
        snapshot_property: str,
        removed: Sequence[Any] = (),
    ) -> None:
        """Add files to the snapshot that was read, with these properties, in one step; columns that
        are new become part of the table. The new snapshot's id goes into `snapshot_property`.
        `removed`: files that go in the same step, as `with_keys` names them.

        Raises TableOvertaken if main has changed since `load`: nothing was done then; or
        OutcomeUnknown.
        """
        self._commit(paths, columns, properties, summary, snapshot_property, removed=removed)

    def replace(
        self,
        paths: Sequence[str],
        columns: Sequence[pa.Schema],
        properties: Mapping[str, str],
        summary: Mapping[str, str],
        snapshot_property: str,
    ) -> None:
        """The same, in the place of the rows that are there. Raises
        TableOvertaken, OutcomeUnknown.
        """
        self._commit(paths, columns, properties, summary, snapshot_property, replaces=True)

    def _commit(
        self,
        paths: Sequence[str],
        columns: Sequence[pa.Schema],
        properties: Mapping[str, str],
        summary: Mapping[str, str],
        snapshot_property: str,
        *,
        replaces: bool = False,
        removed: Sequence[Any] = (),
    ) -> None:
        with self._unless_overtaken(), self._failing():
            transaction = self._table.transaction()
            for schema in columns:
                with transaction.update_schema() as update:
                    update.union_by_name(schema)
            if columns and not self._table.schema().fields:
                self._partitions.divide(transaction, self.partitions_when_made)
            if replaces:
                transaction.delete(self._expressions.AlwaysTrue())
            if paths or removed:
                self._partitions.add_files(transaction, self._table.io, paths, summary, removed)
            else:
                producer = transaction.update_snapshot(snapshot_properties=dict(summary))
                producer.fast_append().commit()
            new = transaction.table_metadata.current_snapshot().snapshot_id
            transaction.set_properties({**properties, snapshot_property: str(new)})
            transaction.commit_transaction()

    def has_equality_deletes(self) -> bool:
        """Return whether rows of the newest snapshot are deleted by their values."""
        return self._total("equality-deletes") > 0

    def with_keys(self, ends: Sequence[tuple[str, Any, Any]]) -> list[Any]:
        """Return the files that may have rows of which each of these columns is between the least
        and the greatest value. Raises OutcomeUnknown.
        """
        with self._failing():
            return self._rewriting.with_keys(self._table, ends)  # type: ignore[no-any-return]

    def read(self, task: Any, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Read the rows of one of these files, or some columns of it. Raises OutcomeUnknown."""
        with self._failing():
            yield from self._rewriting.read(self._table, task, columns)

    @property
    def metadata_location(self) -> str:
        """The file of the snapshot that was read; of a transaction's commit, once there was one."""
        return str(self._table.metadata_location)

    def begin(self) -> Any:
        """A transaction of the library on the snapshot that was read, for another one to fill."""
        return self._table.transaction()

    def end(self, transaction: Any, properties: Mapping[str, str]) -> None:
        """Commit it, with these properties. Raises TableOvertaken or OutcomeUnknown."""
        with self._unless_overtaken(), self._failing():
            transaction.set_properties(dict(properties))
            transaction.commit_transaction()

    def expire(self, at_most: int) -> None:
        """Expire the `at_most` oldest snapshots of those that are older than the table's property
        says, if it has one, except the newest ones that another property keeps, and heads of
        branches and tags. Data files stay. Raises TableOvertaken, also for a snapshot that has
        gone meanwhile and for a property that is no number, or OutcomeUnknown.
        """
        if MAX_AGE_MS not in self.properties:
            return
        with self._unless_overtaken(ValueError), self._failing():
            whole = self._catalog.load_table(self.name)
            kept = max(1, int(whole.properties.get(MIN_KEPT, 1)))
            made_ms = sorted(one.timestamp_ms for one in whole.snapshots())
            until_ms = int(time.time() * 1000) - int(whole.properties[MAX_AGE_MS])
            # The library asks of each snapshot whether it is in a list of all that go.
            old_ms = [at_ms for at_ms in made_ms[:-kept] if at_ms < until_ms][:at_most]
            if old_ms:
                before_ms = min(old_ms[-1] + 1, made_ms[-kept])
                before = datetime.fromtimestamp(before_ms / 1000, UTC)
                whole.maintenance.expire_snapshots().older_than(before).commit()

    def close(self) -> None:
        """Close the catalog's connections."""
        self._catalog.close()

    def _as_committed_to(self, table: Any) -> Any:
        """As it is read, but for the retries and the merging of manifests, which the library looks
        up here alone, and for older snapshots, of which it would make a dozen copies for a commit.
        The catalog applies what is committed to the whole metadata.
        """
        newest = table.current_snapshot()
        own = {
            "properties": {MERGING: "true", **table.metadata.properties, RETRIES: "0"},
            "snapshots": [] if newest is None else [newest],
            "snapshot_log": [],
            "metadata_log": [],
        }
        metadata = table.metadata.model_copy(update=own)
        return self._tables.Table(
            table.name(), metadata, table.metadata_location, table.io, self._catalog
        )

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except self._unknown as error:
            raise OutcomeUnknown(self.shown, f"{type(error).__name__}: {error}") from error

    @contextlib.contextmanager
    def _unless_overtaken(self, *also: type[Exception]) -> Iterator[None]:
        try:
            yield
        except (self._errors.CommitFailedException, *also) as error:
            raise TableOvertaken(self.shown, str(error)) from error


def _unwritable(name: str, kind: Any) -> str:
    """Return what cannot be kept of a column, or of what is in it; "" if everything can."""
    if hasattr(kind, "fields"):
        inner = [(one.name, one.field_type) for one in kind.fields]
    elif hasattr(kind, "value_type"):
        inner = [("key", kind.key_type), ("value", kind.value_type)]
    elif hasattr(kind, "element_type"):
        inner = [("element", kind.element_type)]
    elif _OF_NO_ARROW_TYPE.match(str(kind)):
        return f"{name!r} is {kind}, which this sink does not write"
    else:
        return ""
    found = (_unwritable(f"{name}.{part}", of) for part, of in inner)
    return next(filter(None, found), "")


def _demanding(found: pa.Field, made: pa.Field) -> pa.Field:
    """The field that was made, required as the one that was found, and so within."""
    one, kind = found.type, made.type
    if pa.types.is_struct(kind):
        both = zip(one, kind, strict=True)
        kind = pa.struct([_demanding(inner, other) for inner, other in both])
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, _demanding(one.item_field, kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_demanding(one.value_field, kind.value_field))
    return pa.field(made.name, kind, found.nullable)


def _database_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that an SQL catalog raises; none where there is no such catalog."""
    try:
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:
        return ()
    return (SQLAlchemyError,)
