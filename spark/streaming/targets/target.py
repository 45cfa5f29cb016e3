"""The target of batches: it stages in tasks, commits a batch with its number, and sweeps.

Leaves to each kind of table how. Tasks use `sink` and what `prepare` has returned; everything else
runs beside the driver, in a process of its own for each batch.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.runtime import AheadOfCheckpoint, Committables, RetryLater, Sink
from epochgate.spark.parquet_sink.errors import (
    DiskFull,
    OutputSchemaChanged,
    TargetLocked,
    TargetOfAnotherJob,
    TargetTakenOver,
    TargetUnreachable,
)
from epochgate.spark.streaming.errors import ColumnsDiffer, TargetOfAnotherQuery
from epochgate.spark.streaming.notes import NoteStore
from epochgate.spark.tables.errors import TableTakenOver

_OTHERS_CAME = (
    AheadOfCheckpoint,
    TableTakenOver,
    TargetLocked,
    TargetTakenOver,
)
_NOT_NOW = (DiskFull, TargetUnreachable)


DATAFRAMES = "dataframe"
"""The job of all writes of DataFrames to a target that has a job or counts for one."""


@dataclass(frozen=True)
class Agreed:
    """The values that all tasks of a batch have in common: the schema, serialized by Arrow, if the
    target has one, and where the table lies, if tasks cannot know.
    """

    schema: bytes | None = None
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Staged:
    """The files or rows that the tasks of a batch have staged: under which run, and the
    committables of each.
    """

    query: str
    batch: int
    run: str
    committables: Committables

    @property
    def checkpoint(self) -> int:
        """The number of the batch in the target: checkpoints are counted from 1."""
        return self.batch + 1


class BatchTarget(ABC):
    """One table, database or directory; it travels to the tasks."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The name of the target in messages, without a password."""

    @property
    @abstractmethod
    def sink(self) -> Sink:
        """The sink, whose writers stage."""

    def prepare(self) -> Agreed:
        """Before the tasks of a batch: what has to be there for them, and what they agree on."""
        return Agreed()

    @abstractmethod
    def notes(self) -> NoteStore:
        """Return the place of the notes of its queries."""

    @abstractmethod
    def number(self, query: str) -> int:
        """Count the batches that it has of the query: 1 more than the newest, 0 for none."""

    def apply(self, staged: Staged, own: int) -> bool:
        """Show the batch, all at once with its number, if the target has `own` batches as it had
        when it was looked at; whether it carries the number. Raises RetryLater if others came
        first, or the outcome is not known.
        """
        with unsure(), told_of(self.shown):
            return self.commit(staged, own)

    @abstractmethod
    def commit(self, staged: Staged, own: int) -> bool:
        """The same, as the target of the sink has it."""

    def write(self, staged: Staged, *, replaces: bool) -> None:
        """Show what a DataFrame's write has staged, all at once, whatever its number; with
        `replaces`, in the place of what is there. Raises RetryLater as `apply`.
        """
        with unsure(), told_of(self.shown):
            self.commit_write(staged, replaces=replaces)

    @abstractmethod
    def commit_write(self, staged: Staged, *, replaces: bool) -> None:
        """The same, as the target of the sink has it."""

    @abstractmethod
    def has_written(self, staged: Staged) -> bool:
        """Return whether a write whose outcome was not known has taken effect."""

    @abstractmethod
    def sweep(self, query: str, batch: int) -> None:
        """Remove what is staged of this batch of the query and of those before."""


@contextlib.contextmanager
def unsure() -> Iterator[None]:
    """Raise RetryLater where another process has come before, or the outcome is not known."""
    try:
        yield
    except _OTHERS_CAME + _NOT_NOW as error:
        raise RetryLater(str(error)) from error


@contextlib.contextmanager
def told_of(target: str) -> Iterator[None]:
    """Tell in the terms of queries what the sinks of jobs tell in those of jobs. Raises
    ColumnsDiffer, TargetOfAnotherQuery.
    """
    try:
        yield
    except OutputSchemaChanged as error:
        raise ColumnsDiffer(target, *error.args[:2]) from None
    except TargetOfAnotherJob as error:
        raise TargetOfAnotherQuery(target, *map(_whose, error.args[1:])) from None


def _whose(job: str) -> str:
    return "a DataFrame" if job == DATAFRAMES else f"query {job}"


def packed(schema: pa.Schema | None) -> bytes | None:
    """A schema as bytes."""
    return None if schema is None else schema.serialize().to_pybytes()


def plain(committables: Committables) -> list[Any]:
    """The committables of all tasks."""
    return [one for _, items in sorted(committables.items()) for one in items]
