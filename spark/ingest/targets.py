"""The targets of an ingestion: which sink a TARGET names, and where it is.

Decides how TARGET is written, SCHEME:PLACE or the path of a directory of Parquet files, and which
sink each scheme stands for. The sinks are imported when they are asked for, with their libraries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import CountingSink
from epochgate.spark.extras import library

PARQUET = "parquet"
POSTGRES = "postgres"
_FORMS = {"delta": "delta:PATH", POSTGRES: "postgres:DSN#TABLE"}
_URL = re.compile(r"postgres(ql)?://")
_WRITTEN = re.compile(r"([a-z]{2,}):(?!//)(.*)", re.DOTALL)


class TargetUnreadable(UsageError):
    """TARGET is not one that an ingestion can have."""


@dataclass(frozen=True)
class Target:
    """What TARGET means: the sink's scheme, and the place as the scheme writes it."""

    scheme: str
    place: str

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, so that something can lie beside it."""
        return self.scheme != POSTGRES

    @property
    def path(self) -> str:
        """An absolute path, or the name of what is no directory.

        A URL is refused later, and should then be shown as it was given. Raises ExtraMissing.
        """
        if not self.is_directory:
            return self.name
        return self.place if "://" in self.place else os.path.abspath(self.place)

    @property
    def name(self) -> str:
        """What tells it from every other target; a Parquet directory's is its path, and a database
        is named without user and password. Raises ExtraMissing.
        """
        if self.scheme == POSTGRES:
            return f"{POSTGRES}:{_database(self.place)}"
        return self.path if self.scheme == PARQUET else f"{self.scheme}:{self.path}"


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
        raise TargetUnreadable(
            f"target {text!r}: there is no sink {scheme!r}; known are "
            f"{' and '.join(_FORMS.values())}. A directory of that name is written as './{text}'"
        )
    if not all(place.rpartition("#")[::2] if scheme == POSTGRES else [place]):
        raise TargetUnreadable(f"target {scheme}:... names no place; give {_FORMS[scheme]}")
    return Target(scheme, place)


def sink_of(target: Target, files: FileSystem | None) -> CountingSink:
    """The sink of a target; `files`: with what the driver writes, for tests."""
    return _MAKERS[target.scheme](target, files)


def _parquet(target: Target, files: FileSystem | None) -> CountingSink:
    from epochgate.spark.parquet_sink import ParquetSink

    return ParquetSink(target.path, files)


def _delta(target: Target, files: FileSystem | None) -> CountingSink:
    from epochgate.spark.delta_sink import DeltaSink

    return DeltaSink(target.path, files=files)


def _postgres(target: Target, files: FileSystem | None) -> CountingSink:
    from epochgate.spark.postgres_sink import PostgresSink

    dsn, _, table = target.place.rpartition("#")
    return PostgresSink(dsn, table)


def _database(place: str) -> str:
    conninfo = library("psycopg.conninfo", what="writing to PostgreSQL", extra=POSTGRES)
    dsn, _, table = place.rpartition("#")
    values = conninfo.conninfo_to_dict(dsn)
    host = ":".join(str(values[key]) for key in ("host", "port") if key in values)
    return f"{host}/{values.get('dbname', '')}#{table}"


_MAKERS: dict[str, Callable[[Target, FileSystem | None], CountingSink]] = {
    PARQUET: _parquet,
    "delta": _delta,
    POSTGRES: _postgres,
}
