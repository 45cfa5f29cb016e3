"""The sink with a fault at a named point of one batch; the point stands in an option.

What Spark's workers load: `register` it under its own name, and give `fault` a file whose first
line is POINT BATCH. The fault strikes once; the file is removed before.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from epochgate.spark.streaming.sink import Sink, StreamWriter
from epochgate.spark.streaming.tasks import batch_of

KILLS = ("kill", "raise")


class Struck(Exception):
    """The fault that was asked for."""


def strike(file: str, point: str, batch: int) -> None:
    """Die or raise here, if the file says so."""
    path = Path(file)
    if not file or not path.exists():
        return
    how, wanted, number = path.read_text().split()
    if wanted == point and int(number) == batch:
        path.unlink()
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise Struck(f"{point} of batch {batch}")


class FaultyTarget:
    """The target, with faults before and after what it does."""

    def __init__(self, target: Any, file: str) -> None:
        self._target, self._file = target, file
        self._batch = -1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._target, name)

    def number(self, query: str) -> int:
        strike(self._file, "look", self._batch)
        found: int = self._target.number(query)
        return found

    def notes(self) -> Any:
        return FaultyNotes(self._target.notes(), self._file, self)

    def apply(self, staged: Any, own: int) -> bool:
        strike(self._file, "apply", staged.batch)
        carries: bool = self._target.apply(staged, own)
        strike(self._file, "applied", staged.batch)
        return carries

    def sweep(self, query: str, batch: int) -> None:
        strike(self._file, "sweep", batch)
        self._target.sweep(query, batch)

    def at(self, batch: int) -> None:
        self._batch = batch

    @property
    def batch(self) -> int:
        return self._batch


class FaultyNotes:
    """The notes, with a fault before they are written."""

    def __init__(self, notes: Any, file: str, target: FaultyTarget) -> None:
        self._notes, self._file, self._target = notes, file, target

    def read(self) -> Any:
        return self._notes.read()

    def exchange(self, read: Any, queries: Any) -> None:
        strike(self._file, "note", self._target.batch)
        self._notes.exchange(read, queries)


class FaultySink(Sink):
    """`format("faulty")`."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(  # noqa: N802  # Spark's name
        self, schema: Any, overwrite: bool
    ) -> FaultyWriter:
        options = dict(self.options)
        file = options.pop("fault", "")
        self.options = options
        made = super().streamWriter(schema, overwrite)
        self.options = {**options, "fault": file}
        return FaultyWriter(made, file)


class FaultyWriter(StreamWriter):
    """The writer, with faults in tasks and in the commit."""

    def __init__(self, made: StreamWriter, file: str) -> None:
        self.__dict__.update(made.__dict__)
        self._file = file

    def write(self, iterator: Iterator[Any]) -> Any:
        context = TaskContext.get()
        assert context is not None
        batch = batch_of(context)[1]
        strike(self._file, "stage", batch)
        part = super().write(iterator)
        strike(self._file, "staged", batch)
        return part

    def commit(self, messages: Sequence[Any], batch: int) -> None:
        strike(self._file, "commit", batch)
        target = FaultyTarget(self._options.target, self._file)
        target.at(batch)
        self._options = replace(self._options, target=target)  # type: ignore[arg-type]
        super().commit(messages, batch)
        strike(self._file, "committed", batch)
