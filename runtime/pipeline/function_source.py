"""A source made of two functions: one lists the splits, the other reads a split.

For a reading function without a position, the checkpoint holds the number of records taken. After a
failure the function is called again from the beginning, and that number of records is skipped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from epochgate.errors import UsageError
from epochgate.runtime.api.operator import FatalTaskError
from epochgate.runtime.source.enumerator import SplitEnumerator, SplitEnumeratorContext
from epochgate.runtime.source.queue_enumerator import SplitQueueEnumerator
from epochgate.runtime.source.source import Fetched, ReaderContext, Source, SourceReader
from epochgate.runtime.source.split import SourceSplit

BATCH_RECORDS: Final = 100

Read = Callable[[Any], Iterable[Any]]
ReadFrom = Callable[[Any, Any], Iterable[tuple[Sequence[Any], Any] | None]]


class FunctionSourceUnusable(UsageError):
    """An argument of a FunctionSource is not valid, such as a function with other parameters."""


class FunctionSource(Source):
    """Reads the splits of `look` with the function `read`.

    look: the splits, plain values (a key range, the name of a page), or a function that returns
    them. The function runs on the driver, on a thread of its own. A split that was found before is
    not read again, also not by later starts of the job. With `every_s` the function is called again
    every `every_s` seconds, and the job does not end.

    read: either `read(split)`, which runs in a task and returns all records of the split. It must
    return the same records in the same order at each call: after a failure it is called again, and
    the records that were already taken are skipped. Batches have `batch_records` records.

    Or `read(split, position)`, a generator of pairs: records, and the position behind them, a plain
    value. It starts at `position`; None is the beginning of the split. It may yield None when it
    has nothing at the moment.

    Raises FunctionSourceUnusable.
    """

    def __init__(
        self,
        look: Iterable[Any] | Callable[[], Iterable[Any]],
        read: Read | ReadFrom,
        *,
        batch_records: int = BATCH_RECORDS,
        every_s: float | None = None,
    ) -> None:
        if batch_records < 1:
            raise FunctionSourceUnusable(f"batch_records={batch_records}; it must be 1 or more")
        if every_s is not None and not callable(look):
            raise FunctionSourceUnusable(
                f"every_s={every_s:g} needs a function that returns the splits, and look is "
                f"{look!r}"
            )
        self._look = look if callable(look) else tuple(look)
        self._read, self._every_s, self._batch_records = read, every_s, batch_records
        self._has_position = _takes(read, 2)
        if not self._has_position and not _takes(read, 1):
            raise FunctionSourceUnusable(
                f"{_name(read)}{inspect.signature(read)} must take (split) or (split, position)"
            )

    def look(self) -> list[SourceSplit]:
        """Return the splits, each named by its value."""
        found = self._look() if callable(self._look) else self._look
        return [SourceSplit(repr(value), value) for value in found]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        """Create the enumerator, which assigns one split at a time."""
        return SplitQueueEnumerator(context, state, self.look, every_s=self._every_s)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader that calls the function."""
        if self._has_position:
            return _FunctionReader(self._read)
        return _CountingReader(self._read, self._batch_records)


class _CountingReader(SourceReader):
    """Its position is how many records were taken."""

    def __init__(self, read: Callable[..., Any], batch_records: int) -> None:
        self._read, self._batch_records = read, batch_records

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        found, taken = self._read(split.value), position or 0
        records = _iterator(found, self._read, split, "return the records, [] if there are none")
        there = sum(1 for _ in islice(records, taken))
        if there < taken:
            raise FatalTaskError(
                f"{_name(self._read)}({split.value!r}) returned {there} records, and {taken} "
                "were taken before a failure; it must return the same records at each call. If it "
                "cannot, write it as read(split, position)"
            )
        while batch := list(islice(records, self._batch_records)):
            taken += len(batch)
            yield Fetched(batch, taken)


class _FunctionReader(SourceReader):
    def __init__(self, read: Callable[..., Any]) -> None:
        self._read = read

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        found = self._read(split.value, position)
        for piece in _iterator(found, self._read, split, "yield pairs of records and a position"):
            yield None if piece is None else Fetched(*_pair(piece, self._read))


def _iterator(
    found: Any, read: Callable[..., Any], split: SourceSplit, expected: str
) -> Iterator[Any]:
    try:
        return iter(found)
    except TypeError:
        raise FatalTaskError(
            f"{_name(read)} returned {found!r} for the split {split.value!r}; {expected}"
        ) from None


def _pair(piece: Any, read: Callable[..., Any]) -> tuple[Sequence[Any], Any]:
    if not (isinstance(piece, tuple) and len(piece) == 2):
        raise TypeError(
            f"{_name(read)} yielded {piece!r}; it must yield pairs: some records, and the position "
            "behind them, or None where there is nothing at the moment"
        )
    return piece[0], piece[1]


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    """Return whether it can be called with that many; what tells no signature, as `range`, with
    one.
    """
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:
        return arguments == 1
    return True


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
