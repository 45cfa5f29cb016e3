"""The target of a commit: what keeps the number of batches with their effect, and notes beside it.

Puts together what the target and the notes know for the machine to decide on, and says a refusal in
words. Leaves to the target how rows take effect with their number. Runs where a batch is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from epochgate.errors import InvariantBroken
from epochgate.models.query_batch import (
    AHEAD,
    BEHIND,
    EMPTIED,
    KNOWN,
    MOVED,
)
from epochgate.spark.streaming.errors import (
    BatchesAhead,
    BatchesMissing,
    CountedElsewhere,
    LocationEmptied,
    LocationMoved,
    OffsetsChanged,
)
from epochgate.spark.streaming.identity import BatchIdentity
from epochgate.spark.streaming.notes import Note, Notes, NoteStore

if TYPE_CHECKING:
    from epochgate.spark.streaming.targets.target import BatchTarget, Staged


class Numbered(Protocol):
    """A target that keeps the number of batches with their effect."""

    @property
    def shown(self) -> str:
        """The name of the target in messages."""

    def number(self, query: str) -> int:
        """Count the batches of the query that have taken effect, as far as is known: 1 more than
        the newest.
        """

    def sweep(self, query: str, batch: int) -> None:
        """Remove what is staged of this batch of the query and of those before."""


class NotedTarget:
    """The target of one batch of a query: `apply` is called for its effect, with the number that
    the target keeps, and tells whether the effect carries the batch's number.
    """

    def __init__(
        self,
        target: Numbered,
        notes: NoteStore,
        identity: BatchIdentity,
        apply: Callable[[int], bool],
    ) -> None:
        self._target, self._store, self._identity = target, notes, identity
        self._apply = apply
        self._notes = Notes()
        self._own = self._number = 0

    def look(self) -> tuple[int, int, int]:
        """Look at what the notes and the target know."""
        who = self._identity
        self._notes = self._store.read()
        self._own = self._target.number(who.query)
        self._number = self._with_recorded(who.query, self._own)
        note = self._notes.queries.get(who.query)
        others = 1 if note is not None and note.differs(who.batch, who.offsets) else 0
        return self._number, self._origin(), others

    def _with_recorded(self, query: str, own: int) -> int:
        """The number of batches with those that are only in the note, unless the target was set
        back since.
        """
        note = self._notes.queries.get(query)
        return own if note is None or own < note.above else max(own, note.number)

    def _origin(self) -> int:
        who = self._identity
        if self._notes.elsewhere(who.query, who.location):
            return MOVED
        return EMPTIED if self._notes.before(who.query, who.location) else KNOWN

    def note(self) -> None:
        """Write location and offsets down."""
        who = self._identity
        note = self._notes.queries.get(who.query, Note(who.location))
        self._exchange(note.with_batch(who.batch, who.location, who.offsets))

    def apply(self) -> bool:
        """Let the target have it."""
        return self._apply(self._own)

    def record(self) -> None:
        """Write the number down, unless a later one stands there."""
        who = self._identity
        self._notes = self._store.read()
        note = self._notes.queries.get(who.query, Note(who.location))
        if note.number <= who.batch:
            above = self._target.number(who.query)
            self._exchange(replace(note, number=who.batch + 1, above=above))

    def sweep(self) -> None:
        """Let the target sweep."""
        self._target.sweep(self._identity.query, self._identity.batch)

    def refusal(self, reason: int) -> Exception:
        """In words."""
        who, shown, number = self._identity, self._target.shown, self._number
        if reason == MOVED:
            before = self._notes.elsewhere(who.query, who.location)
            return LocationMoved(shown, who.query, before, who.location, who.batch, number)
        if reason == EMPTIED:
            before = self._notes.before(who.query, who.location)
            try:
                there = self._with_recorded(before, self._target.number(before))
            except CountedElsewhere as error:
                there = error.args[2]
            return LocationEmptied(shown, who.query, before, who.location, there)
        if reason == BEHIND:
            return BatchesMissing(shown, who.query, who.batch, number, who.location)
        if reason == AHEAD:
            return BatchesAhead(shown, who.query, who.batch, number)
        return OffsetsChanged(shown, who.query, who.batch, who.location)

    def _exchange(self, note: Note) -> None:
        queries = self._notes.with_note(self._identity.query, note)
        self._store.exchange(self._notes, queries)
        self._notes = Notes(self._notes.version + 1, queries)


class UnnotedTarget:
    """The target of what a DataFrame's write has staged. Spark calls its commit once: nothing has
    to be noted, and a try whose outcome is not known is looked for by its run.
    """

    def __init__(self, target: BatchTarget, staged: Staged, replaces: bool) -> None:
        self._target, self._staged, self._replaces = target, staged, replaces
        self._is_tried = False

    def look(self) -> tuple[int, int, int]:
        """1 if an earlier try took effect."""
        is_there = self._is_tried and self._target.has_written(self._staged)
        return int(is_there), KNOWN, 0

    def note(self) -> None:
        """There is no other try than this one's."""

    def apply(self) -> bool:
        """Let the target have it."""
        self._is_tried = True
        self._target.write(self._staged, replaces=self._replaces)
        return True

    def record(self) -> None:
        """It is there, or it is not."""

    def sweep(self) -> None:
        """Let the target sweep."""
        self._target.sweep(self._staged.query, self._staged.batch)

    def refusal(self, reason: int) -> Exception:
        """There is no history to be at odds with."""
        return InvariantBroken(f"a write that stands alone is refused: {reason}")
