"""The value that the tasks pass on to the global committer, where they commit: one for all files
that a subtask has handed over for a checkpoint, so that the driver looks at few values and at no
file.

Decides the plain form of that value. It holds the files' committables as the text of a manifest,
which the driver puts together without reading it. Used in tasks and on the driver.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from epochgate.runtime import CommittableBatch, CommittableOperator, Committables
from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.counting_sink import read_committables
from epochgate.spark.files.checkpoint_directory import earlier_checkpoint_name
from epochgate.spark.parquet_sink.committable import (
    VISIBLE_SUFFIX,
    Committable,
    gathered_directory,
    run_of,
    written_schema,
)

CommitIn = Literal["driver", "tasks"]
"""Where the files of a checkpoint are looked at and moved before one step shows them."""
_KEY: Final = "epochgate.gathered"
_PATH, _ROWS, _SIZE, _SCHEMA, _DIRECTORY = 3, 4, 5, 7, 8
"""Places in the plain form of a committable, which ends without a directory where there is none."""
Entry = list[Any]
"""The plain form of a committable."""


@dataclass(frozen=True)
class GatheredPart:
    """Files of one subtask and run that its task has committed.

    directories: how many files lie in each directory of a partition, "" without partitions.
    samples: one committable of each schema. text: all committables, as in a manifest.
    """

    subtask: int
    run: str
    files: int
    rows: int
    size_bytes: int
    directories: dict[str, int]
    samples: tuple[Committable, ...]
    text: str

    @classmethod
    def of(cls, subtask: int, run: str, entries: Sequence[Entry]) -> GatheredPart:
        """Make the value that is passed on for these committables in plain form, of which there are
        some.
        """
        of_each_schema = {entry[_SCHEMA]: entry for entry in reversed(entries)}
        return cls(
            subtask,
            run,
            len(entries),
            sum(entry[_ROWS] for entry in entries),
            sum(entry[_SIZE] for entry in entries),
            dict(Counter("".join(entry[_DIRECTORY:]) for entry in entries)),
            tuple(map(Committable.from_list, of_each_schema.values())),
            json.dumps(entries)[1:-1],
        )

    def to_plain(self) -> dict[str, Any]:
        """A plain value, for msgpack."""
        samples = [one.to_list() for one in self.samples]
        figures = [self.files, self.rows, self.size_bytes]
        return {_KEY: [self.subtask, self.run, *figures, self.directories, samples, self.text]}

    @classmethod
    def from_plain(cls, value: Any) -> GatheredPart:
        """Inverse of `to_plain`; KeyError, TypeError or ValueError for anything else."""
        subtask, run, files, rows, size_bytes, directories, samples, text = value[_KEY]
        of_each_schema = tuple(map(Committable.from_list, samples))
        return cls(subtask, run, files, rows, size_bytes, directories, of_each_schema, text)

    def committables(self) -> list[Committable]:
        """All of them."""
        return [Committable.from_list(values) for values in json.loads(f"[{self.text}]")]


def as_text(files: Iterable[Committable]) -> str:
    """The committables as in a manifest, without the brackets around all of them."""
    return json.dumps([file.to_list() for file in files])[1:-1]


def sorted_entries(parts: Iterable[GatheredPart]) -> list[Entry]:
    """The plain forms of all parts' committables, in the order of the committables."""
    return sorted(json.loads(f"[{', '.join(part.text for part in parts)}]"))


def files_of(parts: Iterable[GatheredPart]) -> list[Committable]:
    """The committables of all parts, in their order."""
    return sorted(file for part in parts for file in part.committables())


def all_files(committables: Committables) -> list[Committable]:
    """The committables of all subtasks, as writers have handed them over or tasks passed them on.

    Raises CommittableUnreadable.
    """
    return [file for files in read_committables(committables, _files) for file in files]


def _files(value: Any) -> list[Committable]:
    if isinstance(value, dict):
        return GatheredPart.from_plain(value).committables()
    return [Committable.from_list(value)]


def gathered_in(committables: Committables) -> list[GatheredPart]:
    """Return what tasks have passed on, in the order of the files; nothing if there is anything
    else, or files of several runs, which are committed one by one. Raises CommittableUnreadable.
    """
    values = [value for held in committables.values() for value in held]
    if not all(isinstance(value, dict) for value in values):
        return []
    parts = read_committables(committables, GatheredPart.from_plain)
    return [] if len({part.run for part in parts}) > 1 else sorted(parts, key=_by_subtask)


def _by_subtask(part: GatheredPart) -> int:
    return part.subtask


class Gathering(CommittableOperator):
    """Behind the committer of a task: puts one value in the place of a subtask's committables."""

    def open(self, state: bytes | None) -> None:
        """There is no state."""

    def process(self, batch: CommittableBatch) -> Committables:
        """One value for each run, which is one."""
        return {subtask: _parts(subtask, values) for subtask, values in batch.committables.items()}


def _parts(subtask: int, entries: list[Entry]) -> list[Any]:
    """The committer of the task has read them before."""
    by_run: dict[str, list[Entry]] = {}
    for entry in sorted(entries):
        by_run.setdefault(run_of(entry[_PATH]), []).append(entry)
    return [GatheredPart.of(subtask, *of_run).to_plain() for of_run in sorted(by_run.items())]


def gathered_whole(
    files: FileSystem, working_directory: str, checkpoint: int, parts: Sequence[GatheredPart]
) -> str | None:
    """The directory in which tasks have gathered all files of a checkpoint; none where one is
    elsewhere, or was shown before, and where there are no files. Raises OSError.
    """
    if not parts:
        return None
    whole = gathered_directory(working_directory, checkpoint, parts[0].run)
    wanted: Counter[str] = Counter()
    for part in parts:
        wanted.update(part.directories)
    for below, count in wanted.items():
        directory = os.path.join(whole, below)
        names = files.list_directory(directory) if files.exists(directory) else []
        if sum(name.endswith(VISIBLE_SUFFIX) for name in names) != count:
            return None
    return whole


def gathered_by_tasks(
    files: FileSystem, working_directory: str, checkpoint: int, wanted: Iterable[Committable]
) -> list[str]:
    """The directories in which tasks have gathered files of the runs of these. Raises OSError."""
    runs = sorted({one.run for one in wanted})
    directories = [gathered_directory(working_directory, checkpoint, run) for run in runs]
    return [directory for directory in directories if files.exists(directory)]


def schema_of_staged(
    files: FileSystem, working_directory: str, committable: Committable, checkpoint: int | None
) -> pa.Schema | None:
    """The schema of a file that is staged, or was gathered; none if it cannot be read, which is an
    error of its own later.
    """
    places = [os.path.join(working_directory, committable.path)]
    if checkpoint is not None:
        by_driver = os.path.join(working_directory, "prepared", earlier_checkpoint_name(checkpoint))
        by_tasks = gathered_by_tasks(files, working_directory, checkpoint, [committable])
        places += [os.path.join(one, committable.visible_path) for one in (*by_tasks, by_driver)]
    with contextlib.suppress(OSError, pa.ArrowException, KeyError):
        return written_schema(next(filter(files.exists, places), places[0]))
    return None
