"""The options of the sink: which target they name, and what the user accepts.

Decides how a target is written in `option(...)`, and which combinations are refused. Opens nothing.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from epochgate.errors import instead_of
from epochgate.models.query_batch import EMPTIED, LATE, MOVED
from epochgate.runtime.objects.client import is_remote, is_url
from epochgate.runtime.sizes import InvalidSize, parse_size_bytes
from epochgate.spark.streaming.batch_commit import COMMIT_TIMEOUT_S
from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.streaming.identity import location_of

if TYPE_CHECKING:
    from epochgate.spark.streaming.notes import Notes
    from epochgate.spark.streaming.targets.target import BatchTarget

PARQUET, DELTA, ICEBERG, POSTGRES = "parquet", "delta", "iceberg", "postgres"
OPTIONS: Final[Mapping[str, str]] = {
    "sink": "parquet, delta, iceberg or postgres",
    "path": "a directory, or of Parquet files a URL in an object store; also start(PATH)",
    "table": "of iceberg CATALOG.NAMESPACE.TABLE, of postgres SCHEMA.TABLE",
    "dsn": "of postgres, as libpq takes it",
    "partitionBy": "of parquet and a new delta table: columns, with commas between them",
    "fileBytes": "at this size a file ends: bytes, or a number and a unit, such as 256MB",
    "movedFrom": "the checkpoint location of before, if it was moved",
    "replaces": "the id of the query that had this location, if its rows shall come again",
    "lateStart": "true or false: earlier batches of the query were written elsewhere",
    "giveUp": "FIRST-LAST: batches that the target lacks since it was set back, and that are lost",
    "commitTimeout": "seconds that a step of a commit may take; 3600 by default",
}
_OF_SPARK = ("checkpointlocation", "queryname", "checkpoint", "mode")
_NEEDED: Final = {
    PARQUET: ("path",),
    DELTA: ("path",),
    ICEBERG: ("table",),
    POSTGRES: ("dsn", "table"),
}
_CATALOG = "catalog."
"""Options that begin with it are properties of an Iceberg catalog."""


@dataclass(frozen=True)
class Accepted:
    """Changes that the user says are meant."""

    moved_from: str = ""
    replaces: str = ""
    late_start: bool = False
    given_up: tuple[int, int] | None = None

    def code(self, notes: Notes, query: str, location: str, batch: int) -> tuple[int, int]:
        """MOVED or EMPTIED if what was noted is what the user names, LATE with the number of
        batches that the target has then, or 0.

        Batches are given up for the one that follows them, so that later losses are refused.
        """
        before = notes.elsewhere(query, location)
        if before and self.moved_from and location_of(self.moved_from) == before:
            return MOVED, 0
        replaced = notes.before(query, location)
        if replaced and self.replaces == replaced:
            return EMPTIED, 0
        if self.given_up is not None and self.given_up[1] + 1 == batch:
            return LATE, self.given_up[0]
        return (LATE if self.late_start else 0), 0


def batches(option: str, text: str) -> tuple[int, int] | None:
    """First and last batch of a range, none of no text. `option`: for messages. Raises
    OptionsWrong.

    >>> batches("giveUp", "3-5")
    (3, 5)
    """
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,18})-(\d{1,18})", text.strip())
    if found is None or int(found[1]) > int(found[2]):
        raise OptionsWrong(
            f"the option {option!r} is {text!r}; give the numbers of the first and the last batch "
            "that the refusal names, as in '3-5'"
        )
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class SinkOptions:
    """The options as they are understood."""

    target: BatchTarget
    location: str
    accepted: Accepted
    commit_timeout_s: float = COMMIT_TIMEOUT_S


def parse(given: Mapping[str, str]) -> SinkOptions:
    """Understand the options. Raises OptionsWrong, and ExtraMissing where a library is missing.

    >>> parse({"sink": "delta", "path": "/data/events"}).target.shown
    '/data/events'
    """
    options = {key.lower(): value for key, value in given.items()}
    known = {name.lower() for name in OPTIONS} | {*_OF_SPARK}
    unknown = sorted(
        key for key in options if key not in known and not key.startswith((_CATALOG, "spark."))
    )
    if unknown:
        raise OptionsWrong(
            f"there is no option {unknown[0]!r}; {instead_of(unknown[0], OPTIONS)}; "
            f"docs/streaming.md says what each means"
        )
    kind = options.get("sink", "")
    if kind not in _NEEDED:
        found = f"{kind!r} is no sink" if kind else "the option `sink` is missing"
        raise OptionsWrong(
            f'{found}: give .option("sink", ...) with one of {", ".join(map(repr, _NEEDED))}'
        )
    missing = [name for name in _NEEDED[kind] if not options.get(name)]
    if missing:
        raise OptionsWrong(
            f"the sink {kind!r} needs the option {missing[0]!r}: {OPTIONS[missing[0]]}"
        )
    if options.get("partitionby") and kind not in (PARQUET, DELTA):
        raise OptionsWrong(
            f"the option 'partitionBy' is for Parquet files and Delta, and the sink is {kind!r}"
        )
    checkpoint = options.get("checkpointlocation", "")
    return SinkOptions(
        _target(kind, options),
        location_of(checkpoint) if checkpoint else "",
        Accepted(
            options.get("movedfrom", ""),
            options.get("replaces", ""),
            _is_true("lateStart", options.get("latestart", "false")),
            batches("giveUp", options.get("giveup", "")),
        ),
        _seconds("commitTimeout", options.get("committimeout", str(COMMIT_TIMEOUT_S))),
    )


def _seconds(option: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise OptionsWrong(f"the option {option!r} is {text!r}; give a number of seconds above 0")
    return seconds


def _is_true(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionsWrong(f"the option {option!r} is {text!r}; give 'true' or 'false'")
    return text.lower() == "true"


def _bytes(option: str, text: str) -> int:
    """A number without a unit is one of bytes, as in the options of Spark."""
    try:
        size = int(text) if text.strip().isdecimal() else parse_size_bytes(text)
    except InvalidSize as error:
        raise OptionsWrong(f"the option {option!r}: {error}") from error
    if size < 1:
        raise OptionsWrong(f"the option {option!r} is {text!r}; a file has 1 byte at least")
    return size


def _insist_on_place(kind: str, path: str) -> None:
    if is_remote(path) and not is_url(path):
        raise OptionsWrong(
            f"the option 'path' is {path!r}, and the sink {kind!r} does not write there: give a "
            "directory that is mounted wherever tasks run, or a URL of s3://, gs:// or abfss://"
        )
    if os.path.isfile(path):
        raise OptionsWrong(f"the option 'path' is {path!r}, which is a file; give a directory")


def _target(kind: str, options: Mapping[str, str]) -> BatchTarget:
    file_bytes = _bytes("fileBytes", options.get("filebytes", "256MB"))
    if kind == POSTGRES:
        from epochgate.spark.extras import library

        library("psycopg", what="writing to PostgreSQL", extra=POSTGRES)
        from epochgate.spark.streaming.targets.postgres import PostgresBatches

        return PostgresBatches(options["dsn"], options["table"])
    if kind == ICEBERG:
        from epochgate.spark.extras import library

        library("pyiceberg", what="writing to Iceberg tables", extra=ICEBERG)
        from epochgate.spark.streaming.targets.iceberg import IcebergBatches

        catalog, _, table = options["table"].partition(".")
        properties = {
            key.removeprefix(_CATALOG): value
            for key, value in options.items()
            if key.startswith(_CATALOG)
        }
        return IcebergBatches(catalog, table, properties, file_bytes)
    path = location_of(options["path"])
    _insist_on_place(kind, path)
    columns = tuple(one.strip() for one in options.get("partitionby", "").split(",") if one.strip())
    if kind == DELTA:
        from epochgate.spark.extras import library

        library("deltalake", what="writing to Delta tables", extra=DELTA)
        from epochgate.spark.streaming.targets.delta import DeltaBatches

        return DeltaBatches(path, file_bytes, partition_by=columns)
    from epochgate.spark.streaming.targets.parquet import ObjectBatches, ParquetBatches

    if is_url(path):
        return ObjectBatches(path, file_bytes, columns)
    return ParquetBatches(path, file_bytes, columns)
