"""The tasks of a search, in Spark's Python workers: each has its partition's keeper do the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epochgate.spark.checking.keeper import dismiss, exchange

Settings = Mapping[str, Any]
Rows = Iterator[Any]


def _read_to_the_end(rows: Rows) -> None:
    """Spark ends a worker that has left something of its input."""
    for _ in rows:
        pass


def spread_partition(settings: Settings, partition: int, rows: Rows) -> Rows:
    """Give the states for other partitions, and a report for this one."""
    _read_to_the_end(rows)
    yield from exchange(settings, partition, {"do": "spread", "level": settings["level"]}, ())


def settle_partition(settings: Settings, partition: int, rows: Rows) -> Rows:
    """Give what a partition has of the next level, with the report on this one."""
    items = (item for _, item in rows)
    yield from exchange(settings, partition, {"do": "settle", "level": settings["level"]}, items)


def precede_partition(settings: Settings, partition: int, rows: Rows) -> Rows:
    """Give a state of this partition that leads to the wanted one, if there is one."""
    _read_to_the_end(rows)
    request = {"do": "precede", "level": settings["level"], "wanted": settings["wanted"]}
    yield from exchange(settings, partition, request, ())


def forget_partition(settings: Settings, partition: int, rows: Rows) -> Rows:
    """Give the memory of this host back."""
    _read_to_the_end(rows)
    dismiss(settings, partition)
    yield from ()
