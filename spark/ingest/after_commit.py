"""The message to the work after a commit of an ingestion: which checkpoint can be seen, and its
rows.

Decides how the committables of the built-in sinks read. Runs on the thread of the work after
commits, and in the command that lists commits in doubt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epochgate.runtime import Committables
from epochgate.runtime.api.sinks_of_one_job import label_of
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.spark.ingest.rejects import REJECTS, ROWS
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.gathered import GatheredPart
from epochgate.spark.postgres_sink.part import Moved, Part


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
    """A committable of a built-in sink: of which sink, how many rows, in which files if any."""

    label: str
    rows: int
    files: tuple[str, ...]
    what: str


def readable(value: Any) -> Readable | None:
    """Read a committable; none for one that no built-in sink has handed over.

    >>> readable({"epochgate.sink": "rejects", "committable": ["part-1", 3, ["x"]]})
    Readable(label='rejects', rows=3, files=(), what='staged rows part-1')
    >>> readable({"of": "another sink"})
    """
    label, own = label_of(value, ROWS)
    for read in (_of_file, _of_gathered, _of_rows, _of_moved):
        with contextlib.suppress(TypeError, ValueError, KeyError):
            return Readable(label, *read(own))
    return None


Told = tuple[int, tuple[str, ...], str]


def _of_file(value: Any) -> Told:
    file = Committable.from_list(value)
    return file.rows, (file.visible_path,), file.path


def _of_gathered(value: Any) -> Told:
    part = GatheredPart.from_plain(value)
    names = tuple(file.visible_path for file in part.committables())
    return part.rows, names, f"{part.files} files of run {part.run}, which a task has gathered"


def _of_rows(value: Any) -> Told:
    part = Part.from_list(value)
    return part.rows, (), f"staged rows {part.name}"


def _of_moved(value: Any) -> Told:
    return Moved.from_plain(value).rows, (), "rows that a task has moved"


def work_after_commits(
    told: AfterCommit | None, remove: Callable[[int], None] | None
) -> AfterCommit | None:
    """The work of a job after its commits: tell of each first, then remove files. A removal that
    fails is tried again without telling once more.
    """
    if remove is None:
        return told
    last = -1

    def work(checkpoint_id: int, committables: Committables) -> None:
        nonlocal last
        if told is not None and last != checkpoint_id:
            told(checkpoint_id, committables)
            last = checkpoint_id
        remove(checkpoint_id)

    return work


def telling(after_commit: Callable[[IngestCommit], None], target: str) -> Callable[..., None]:
    """Return the function that the job calls: it tells `after_commit` of the commit in its own
    words.
    """

    def tell(checkpoint_id: int, committables: Committables) -> None:
        found = [one for values in committables.values() for one in map(readable, values) if one]
        rows = [one for one in found if one.label == ROWS]
        after_commit(
            IngestCommit(
                checkpoint_id,
                target,
                sum(one.rows for one in rows),
                tuple(file for one in rows for file in one.files),
                sum(one.rows for one in found if one.label == REJECTS),
            )
        )

    return tell
