"""As much of a Spark session as a search uses, in one process: its tasks are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from epochgate.spark.checking import checking, search, tasks
from epochgate.spark.checking.code import Code
from epochgate.spark.checking.folder import Folder
from epochgate.spark.checking.partition import Partition

Task = Callable[[int, Iterator[Any]], Iterable[Any]]


class Rows:
    """The rows of each partition."""

    def __init__(self, parts: list[list[Any]]) -> None:
        self.parts = parts

    def mapPartitionsWithIndex(self, task: Task) -> Rows:  # noqa: N802  Spark's name
        return Rows([[*task(number, iter(part))] for number, part in enumerate(self.parts)])

    def partitionBy(self, parts: int) -> Rows:  # noqa: N802  Spark's name
        rows = [row for part in self.parts for row in part]
        return Rows([[row for row in rows if row[0] == number] for number in range(parts)])

    def union(self, other: Rows) -> Rows:
        return Rows([[*one, *two] for one, two in zip(self.parts, other.parts, strict=True)])

    def persist(self) -> Rows:
        return self

    def collect(self) -> list[Any]:
        return [row for part in self.parts for row in part]


class Context:
    """A Spark context of some cores."""

    master = "local"

    def __init__(self, cores: int) -> None:
        self.defaultParallelism = cores

    def parallelize(self, rows: Iterable[Any], parts: int) -> Rows:
        return Rows([[*rows], *([] for _ in range(parts - 1))])

    def broadcast(self, value: Any) -> Any:
        return SimpleNamespace(value=value)

    def setJobGroup(self, group: str, description: str) -> None:  # noqa: N802  Spark's name
        pass

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802  Spark's name
        pass


class Killed(Exception):
    """The keeper of a partition is gone."""


class Keepers:
    """Keeps the partitions in this process."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], Partition] = {}

    def exchange(self, settings: Any, number: int, request: Any, rows: Any) -> Iterator[Any]:
        token = settings["token"]
        if (token, number) not in self.kept:
            code = Code(**settings["code"].value)
            self.kept[token, number] = Partition(settings, number, code, Folder(token))
        answer: list[Any] = []
        try:
            self.kept[token, number].answer(request, iter(rows), answer.append)
        except Killed:
            del self.kept[token, number]
            raise
        yield from answer

    def dismiss(self, settings: Any, number: int) -> None:
        folder = Folder(settings["token"])
        folder.remove()
        folder.close()
        self.kept.pop((settings["token"], number), None)


def session(monkeypatch: pytest.MonkeyPatch, cores: int) -> Any:
    """A session whose tasks need no package sent to them."""
    monkeypatch.setattr(search, "ship", lambda _context: "")
    monkeypatch.setattr(search, "with_package", _called)
    monkeypatch.setattr(checking, "validate_session", lambda _spark: [])
    keepers = Keepers()
    monkeypatch.setattr(tasks, "exchange", keepers.exchange)
    monkeypatch.setattr(tasks, "dismiss", keepers.dismiss)
    return SimpleNamespace(sparkContext=Context(cores))


def _called(settings: Any, entry: str) -> Task:
    task = getattr(tasks, entry.partition(":")[2])
    return lambda partition, rows: task(settings, partition, rows)
