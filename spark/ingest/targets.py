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

PARQUET = "parquet"
_SCHEMES = ("delta",)
_WRITTEN = re.compile(r"([a-z]{2,}):(?!//)(.*)", re.DOTALL)


class TargetUnreadable(UsageError):
    """TARGET is not one that an ingestion can have."""


@dataclass(frozen=True)
class Target:
    """What TARGET means: the sink's scheme, and the place as the scheme writes it."""

    scheme: str
    place: str

    @property
    def path(self) -> str:
        """An absolute path; a URL is refused later, and should then be shown as it was given."""
        return self.place if "://" in self.place else os.path.abspath(self.place)

    @property
    def name(self) -> str:
        """What tells it from every other target; a Parquet directory's is its path."""
        return self.path if self.scheme == PARQUET else f"{self.scheme}:{self.path}"


def parse_target(text: str) -> Target:
    """Read TARGET. Raises TargetUnreadable.

    >>> parse_target("delta:/data/events")
    Target(scheme='delta', place='/data/events')
    >>> parse_target("/data/out").scheme
    'parquet'
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return Target(PARQUET, text)
    scheme, place = written.groups()
    if scheme not in _SCHEMES:
        raise TargetUnreadable(
            f"target {text!r}: there is no sink {scheme!r}; known are "
            f"{', '.join(f'{one}:...' for one in _SCHEMES)}. A directory of that name is written "
            f"as './{text}'"
        )
    if not place:
        raise TargetUnreadable(f"target {text!r} names no place; give {scheme}:PATH")
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


_MAKERS: dict[str, Callable[[Target, FileSystem | None], CountingSink]] = {
    PARQUET: _parquet,
    "delta": _delta,
}
