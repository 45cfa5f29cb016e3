"""What the work after a commit of an ingestion is told: which checkpoint can be seen, and its rows.

Decides how the committables of the built-in sinks read. Runs on the thread of the work after
commits, and in the command that lists commits in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epochgate.runtime import Committables
from epochgate.runtime.api.sinks_of_one_job import label_of
from epochgate.spark.ingest.rejects import REJECTS, ROWS
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.postgres_sink.part import Part


@dataclass(frozen=True)
class IngestCommit:
    """A checkpoint of an ingestion that readers can see.

    target: as it was given, a database without user and password. rows: how many it has added.
    files: the names of its files; none in a database. rows_rejected: added to the table of rejected
    rows.
    """

    checkpoint_id: int
    target: str
    rows: int
    files: tuple[str, ...]
    rows_rejected: int


@dataclass(frozen=True)
class Readable:
    """A committable of a built-in sink: of which sink, how many rows, in which file if any."""

    label: str
    rows: int
    file: str | None
    what: str


def readable(value: Any) -> Readable | None:
    """What a committable says; none for one that no built-in sink has handed over.

    >>> readable({"epochgate.sink": "rejects", "committable": ["part-1", 3, ["x"]]})
    Readable(label='rejects', rows=3, file=None, what='staged rows part-1')
    >>> readable({"of": "another sink"})
    """
    label, own = label_of(value, ROWS)
    try:
        file = Committable.from_list(own)
        return Readable(label, file.rows, file.visible_path, file.path)
    except (TypeError, ValueError):
        pass  # it is none of a file
    try:
        part = Part.from_list(own)
        return Readable(label, part.rows, None, f"staged rows {part.name}")
    except (TypeError, ValueError):
        return None


def telling(after_commit: Callable[[IngestCommit], None], target: str) -> Callable[..., None]:
    """What the job calls: it tells `after_commit` of the commit in its own words."""

    def tell(checkpoint_id: int, committables: Committables) -> None:
        found = [one for values in committables.values() for one in map(readable, values) if one]
        rows = [one for one in found if one.label == ROWS]
        after_commit(
            IngestCommit(
                checkpoint_id,
                target,
                sum(one.rows for one in rows),
                tuple(one.file for one in rows if one.file is not None),
                sum(one.rows for one in found if one.label == REJECTS),
            )
        )

    return tell
