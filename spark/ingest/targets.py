"""The targets of an ingestion: which sink a TARGET names, and where it is.

Decides how TARGET is written, SCHEME:PLACE or the path of a directory of Parquet files, and which
sink each scheme stands for. The sinks are imported when they are asked for, with their libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.extras import library

if TYPE_CHECKING:
    from epochgate.runtime.objects.client import ObjectStore
    from epochgate.spark.ingest.options import IngestOptions

PARQUET = "parquet"
DELTA, ICEBERG, POSTGRES = "delta", "iceberg", "postgres"
_FORMS = {
    DELTA: "delta:PATH",
    ICEBERG: "iceberg:CATALOG.NAMESPACE.TABLE",
    POSTGRES: "postgres:DSN#TABLE",
}
_URL = re.compile(r"postgres(ql)?://")
_WRITTEN = re.compile(r"([a-z]{2,}):(?!//)(.*)", re.DOTALL)


class TargetUnreadable(UsageError):
    """TARGET is not one that an ingestion can have."""


@dataclass(frozen=True)
class Target:
    """The meaning of TARGET: the sink's scheme, and the place as the scheme writes it."""

    scheme: str
    place: str

    @property
    def is_directory(self) -> bool:
        """True if it is a directory, so that something can lie beside it."""
        return self.scheme not in (ICEBERG, POSTGRES)

    @property
    def is_table(self) -> bool:
        """True if it is a table, which several jobs may write to."""
        return self.scheme != PARQUET

    @property
    def database(self) -> str:
        """The name of a database or catalog and its table, without user and password.

        Raises ExtraMissing or DsnUnreadable.
        """
        if self.scheme == ICEBERG:
            return f"{ICEBERG}:{self.place}"
        library("psycopg", what="writing to PostgreSQL", extra=POSTGRES)
        from epochgate.spark.postgres_sink.database import conninfo

        dsn, _, table = self.place.rpartition("#")
        values = conninfo(dsn)
        host = ":".join(str(values[key]) for key in ("host", "port") if key in values)
        return f"{POSTGRES}:{host}/{values.get('dbname', '')}#{table}"


def parse_target(text: str) -> Target:
    """Read TARGET. Raises TargetUnreadable.

    >>> parse_target("delta:/data/events")
    Target(scheme='delta', place='/data/events')
    >>> parse_target("postgresql://db/sales#public.events")
    Target(scheme='postgres', place='postgresql://db/sales#public.events')
    >>> parse_target("/data/out").scheme
    'parquet'
    """
    written = _WRITTEN.fullmatch(f"{POSTGRES}:{text}" if _URL.match(text) else text)
    if written is None:
        return Target(PARQUET, text)
    scheme, place = written.groups()
    if scheme not in _FORMS:
        # A connection string may hold a password.
        shown = f"{scheme}:..." if re.search("[=@]", place) else text
        raise TargetUnreadable(
            f"target {shown!r}: there is no sink {scheme!r}; known are "
            f"{', '.join(_FORMS.values())}. A directory of that name is written as './{shown}'"
        )
    parts = {POSTGRES: place.rpartition("#")[::2], ICEBERG: place.split(".", 2)}.get(
        scheme, [place]
    )
    if not all(parts) or (scheme == ICEBERG and len(parts) < 3):
        raise TargetUnreadable(f"target {scheme}:... names no place; give {_FORMS[scheme]}")
    return Target(scheme, place)


def sink_of(
    options: IngestOptions, files: FileSystem | None, open_objects: Callable[[str], ObjectStore]
) -> CountingSink:
    """The sink of an ingestion; `files` and `open_objects`: with what it writes, for tests."""
    target = options.parsed_target
    if options.partition_by and target.scheme == POSTGRES:
        raise UsageError(
            "partition_by is for Parquet files, Delta and Iceberg; partition the table of "
            "PostgreSQL by its own means, and leave --partition-by (partition_by in Python) out"
        )
    if target.scheme == ICEBERG:
        from epochgate.spark.iceberg_sink import IcebergSink

        catalog, _, table = target.place.partition(".")
        return IcebergSink(
            catalog,
            table,
            file_bytes=options.file_bytes,
            evolution=options.schema_evolution,
            files=files,
            open_objects=open_objects,
            partition_by=options.partition_by,
            merge=options.merge,
        )
    if target.scheme == DELTA:
        from epochgate.spark.delta_sink import DeltaSink

        return DeltaSink(
            options.target_path,
            options.file_bytes,
            files=files,
            commit_in=options.commit_in,
            open_objects=open_objects,
            partition_by=options.partition_by,
            evolution=options.schema_evolution,
            merge=options.merge,
        )
    if target.scheme == POSTGRES:
        from epochgate.spark.postgres_sink import PostgresSink

        dsn, _, table = target.place.rpartition("#")
        return PostgresSink(
            dsn,
            table,
            commit_in=options.commit_in,
            evolution=options.schema_evolution,
            merge=options.merge,
        )
    from epochgate.spark.parquet_sink import ParquetSink

    return ParquetSink(
        options.target_path,
        options.file_bytes,
        files,
        open_objects,
        options.schema_evolution,
        partition_by=options.partition_by,
        commit_in=options.commit_in,
    )
