"""Entries that are created once, in their store: what the handlers of decisions and plans share.

Decides nothing: an answer of the store is a trigger of `created_once`, an error `broken`, or
`unknown` where an entry may have been created. Runs where Spark asks for a batch, or runs one.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.models.created_once import CreatedOnce
from epochgate.runtime.steering.place import NotCreated, Numbered


class Creating:
    """The entries of one query or stream: what every handler of the machine's port does."""

    FIRST: ClassVar[int]
    """The number of the first batch in the store; the machine counts from 1."""
    FAILURES: ClassVar[tuple[type[Exception], ...]] = (EpochgateError, OSError, ValueError)
    """What a question may raise, and is `broken`."""

    def __init__(self, machine: CreatedOnce, entries: Numbered) -> None:
        self._machine, self._entries = machine, entries
        self._listed: list[int] = []
        self._outcome: Any = None
        self._error: BaseException | None = None
        with contextlib.suppress(OSError):  # what is left there harms nothing
            entries.sweep()

    def confirm(self, _: int, batch: int) -> None:
        with self._answered():
            self._machine.confirmed(self._later(batch))

    def forget(self, _: int, batch: int) -> None:
        # What cannot be removed now is removed with a later batch.
        with contextlib.suppress(OSError):
            for number in self._listed[: bisect.bisect_right(self._listed, self._number(batch))]:
                self._entries.delete(number)

    def _settled(self) -> Any:
        """What the machine has told. Raises its error."""
        self._machine.system.settle()
        told, self._outcome = self._outcome, InvariantBroken("the machine has told nothing")
        if isinstance(told, Exception):
            raise told from (told.__cause__ if told is self._error else self._error)
        return told

    def _create(self, batch: int, entry: dict[str, Any]) -> bool:
        """Ask the store for the entry; whether it says that it has made it."""
        try:
            self._entries.create(self._number(batch), entry)
        except FileExistsError:
            self._machine.taken()
        except NotCreated as error:
            self._error = error
            self._machine.broken()
        except OSError as error:
            self._error = error
            self._machine.unknown()
        else:
            self._machine.written()
            return True
        return False

    @contextlib.contextmanager
    def _answered(self, *more: type[BaseException]) -> Iterator[None]:
        """`more`: what may be raised besides, by the user's code `SystemExit` too."""
        try:
            yield
        except (*self.FAILURES, *more) as error:
            self._error = error
            self._machine.broken()

    def _later(self, batch: int) -> int:
        """By how many numbers the newest entry is behind that of the batch."""
        self._listed = self._entries.numbers()
        return max(0, self._listed[-1] - self._number(batch)) if self._listed else 0

    def _number(self, batch: int) -> int:
        return batch - 1 + self.FIRST
