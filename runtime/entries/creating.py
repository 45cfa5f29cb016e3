"""Entries that are created once, in their store: what the handlers of decisions, plans and updates
share.

Decides nothing: an answer of the store is a trigger of the machine, an error or no answer in time
`broken`, or `unknown` where an entry may have been created. Runs where Spark asks for a batch, runs
one, or a control is updated; requests to the store and calls of the user's code on a thread of
their own.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.fsm import Handle
from epochgate.models.control_update import ControlUpdate
from epochgate.models.created_once import CreatedOnce
from epochgate.runtime.api.raised import in_words, let_pass
from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.entries.numbered import Numbered
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.limited import CallLate, Limit, LimitedCalls

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Creating:
    """The entries of a query, stream or control: what every handler of the machine's port does."""

    FIRST: ClassVar[int]
    """The number of the first batch in the store; the machine counts from 1."""
    FAILURES: ClassVar[tuple[type[Exception], ...]] = (EpochgateError, OSError, ValueError)
    """What a question may raise, and is `broken`."""

    def __init__(
        self,
        machine: Handle[CreatedOnce] | Handle[ControlUpdate],
        settle: Callable[[], None],
        entries: Numbered,
        waits: Waits = USUAL,
    ) -> None:
        self._machine, self._settle = machine, settle
        self._entries, self._waits = entries, waits
        self._calls = LimitedCalls("epochgate-steering")
        self._has_swept = False
        """Whether what crashes have left among the entries was removed."""
        self._listed: list[int] = []
        self._outcome: Any = None
        self._error: BaseException | None = None

    def confirm(self, _: int, batch: int) -> None:
        with self._answered():
            self._machine.confirmed(self._later(batch))

    def forget(self, _: int, batch: int) -> None:
        try:
            self._remove(batch)
        except CallLate as error:
            _log.warning("%s; what is left is removed with a later batch", error)
            self._machine.expire()
        except BaseException as error:  # noqa: BLE001  # the user's code has no root for what it raises
            let_pass(error)
            _log.warning(
                "what batch %d no longer needs was not removed from %s, and is with a later batch: "
                "%s",
                *(batch, self._entries.shown, in_words(error)),
            )
            self._machine.kept()
        else:
            self._machine.forgotten()

    def _remove(self, batch: int) -> None:
        """The entries of this batch and of those before."""
        forgotten = self._listed[: bisect.bisect_right(self._listed, self._number(batch))]
        is_first, self._has_swept = not self._has_swept, True
        if not forgotten and not is_first:
            return

        def remove() -> None:
            for number in forgotten:
                self._entries.delete(number)
            if is_first:
                self._entries.sweep()

        self._asked("removing what is forgotten", remove)

    def _settled(self) -> Any:
        """Return what the machine has told. Raises its error."""
        self._settle()
        told, self._outcome = self._outcome, InvariantBroken("the machine has told nothing")
        if isinstance(told, BaseException):
            raise told from (told.__cause__ if told is self._error else self._error)
        return told

    def _create(self, batch: int, entry: dict[str, Any]) -> bool:
        """Ask the store for the entry; whether it says that it has made it."""
        number = self._number(batch)
        try:
            self._asked("writing an entry", lambda: self._entries.create(number, entry))
        except FileExistsError:
            self._tell_taken(number)
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

    def _tell_taken(self, number: int) -> None:
        self._machine.taken()

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
        self._listed = self._asked("listing the entries", self._entries.numbers)
        return max(0, self._listed[-1] - self._number(batch)) if self._listed else 0

    def _entry(self, number: int) -> dict[str, Any]:
        return self._asked(f"reading entry {number}", lambda: self._entries.get(number))

    def _asked(self, what: str, request: Callable[[], T]) -> T:
        """Ask the store. Raises CallLate, and what the request raises."""
        return self._called(f"{what} in {self._entries.shown}", self._waits.store, request)

    def _called(self, what: str, limit: Limit, call: Callable[[], T]) -> T:
        return self._calls.call(what, limit, call)

    def _number(self, batch: int) -> int:
        return batch - 1 + self.FIRST
