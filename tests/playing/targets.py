"""The target of a streaming query with the notes beside it, and its checkpoint locations."""

from __future__ import annotations

from collections.abc import Mapping

from epochgate.runtime import RetryLater
from epochgate.spark.streaming.notes import Note, Notes


class Location:
    """A checkpoint location, with Spark's two logs."""

    def __init__(self) -> None:
        self.query = self.committed = self.history = 0
        self.offsets: list[int] = []
        self.is_given_up = False


class Table:
    """The target, and the notes beside it: what `NoteStore` says. That the target is dropped
    changes the notes, also where there were none, as in the closed system.
    """

    shown = "the table"

    def __init__(self, batches: int) -> None:
        self.numbers: dict[str, int] = {}
        self.notes, self.version = dict[str, Note](), 0
        self.effects = [0] * batches
        self.offsets = [0] * batches
        self.staged: set[int] = set()

    def number(self, query: str) -> int:
        return self.numbers.get(query, 0)

    def sweep(self, query: str, batch: int) -> None:
        self.staged = {one for one in self.staged if one > batch}

    def read(self) -> Notes:
        return Notes(self.version, self.notes)

    def exchange(self, read: Notes, queries: Mapping[str, Note]) -> None:
        if self.version != read.version:
            raise RetryLater("the notes have changed")
        self.notes, self.version = dict(queries), self.version + 1

    def known(self, query: str) -> int:
        """Return how many batches of the query count as committed."""
        note = self.notes.get(query)
        return max(self.number(query), note.number if note is not None else 0)

    def drop(self) -> None:
        self.numbers, self.notes, self.version = {}, {}, self.version + 1
        self.effects = [0] * len(self.effects)
        self.offsets = [0] * len(self.offsets)
        self.staged.clear()
