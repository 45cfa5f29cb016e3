"""A source of two functions: which splits there are, and how one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from epochgate.runtime.source.enumerator import SplitEnumerator, SplitEnumeratorContext
from epochgate.runtime.source.queue_enumerator import SplitQueueEnumerator
from epochgate.runtime.source.source import Fetched, ReaderContext, Source, SourceReader
from epochgate.runtime.source.split import SourceSplit

Read = Callable[[Any, Any], Iterable[tuple[Sequence[Any], Any] | None]]


class FunctionSource(Source):
    """Reads what `look` finds by `read`.

    `look()` runs on the driver, on a thread of its own, and returns the splits as plain values (a
    range of keys, the name of a page); one that it has returned before is not read again, in later
    starts of the job neither. With `every_s` it is called again and again and the job has no end.

    `read(split, position)` runs in a task and yields pairs: some records, and the position behind
    them, a plain value. `position` is where to go on in the split, none for its beginning. It may
    yield none where there is nothing at the moment.
    """

    def __init__(
        self, look: Callable[[], Iterable[Any]], read: Read, *, every_s: float | None = None
    ) -> None:
        self._look, self._read, self._every_s = look, read, every_s

    def look(self) -> list[SourceSplit]:
        """The splits that are there, each named by its value."""
        return [SourceSplit(repr(value), value) for value in self._look()]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        """Hand out the splits one by one."""
        return SplitQueueEnumerator(context, state, self.look, every_s=self._every_s)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Read by the function."""
        return _FunctionReader(self._read)


class _FunctionReader(SourceReader):
    def __init__(self, read: Read) -> None:
        self._read = read

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        for piece in self._read(split.value, position):
            yield None if piece is None else Fetched(*_pair(piece, self._read))


def _pair(piece: Any, read: Read) -> tuple[Sequence[Any], Any]:
    if not (isinstance(piece, tuple) and len(piece) == 2):
        name = getattr(read, "__qualname__", repr(read))
        raise TypeError(
            f"{name} yielded {piece!r}; it must yield pairs: some records, and the position behind "
            "them, or None where there is nothing at the moment"
        )
    return piece[0], piece[1]
