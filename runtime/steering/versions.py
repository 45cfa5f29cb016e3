"""The versions of a control, and the update that takes the next one.

A version holds the update and what all updates up to it come to, so that the newest is read alone.
Decides nothing: an answer of the store is a trigger of the machine, an error or no answer in time
`broken`, or `unknown` where a version may have been created. Any process; `Updating` waits on the
thread that updates, and asks on one of its own.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from epochgate.errors import InvariantBroken
from epochgate.fsm import Handle, Handles
from epochgate.models.control_update import ControlUpdate, ControlUpdates
from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.limited import CallLate, LimitedCalls
from epochgate.runtime.steering.errors import UpdateFailed, UpdateInDoubt
from epochgate.runtime.steering.layout import newest_decisions, versions_of
from epochgate.runtime.steering.values import Value

T = TypeVar("T")
_log = logging.getLogger(__name__)
_LOOKS: Final = 5
"""How often the newest version is looked for while others remove it in a burst of updates."""


Accept = Callable[[Value, Value], Any]
"""What is called with the newest values and with the changes, and raises for what is not valid."""


def accept_all(newest: Value, changes: Value) -> None:
    """Accept whatever is plain."""


class Versions:
    """The versions of one control, as a reader sees them; what was read is kept."""

    def __init__(self, entries: Entries, control: str) -> None:
        self.entries = versions_of(entries, control)
        self.listed: list[int] = []
        self._newest: tuple[int, Value] = 0, {}

    def newest(self) -> tuple[int, Value]:
        """The newest number, 0 for none, and what it and those before come to.

        Raises OSError, or ValueError for one that is damaged.
        """
        for look in range(_LOOKS):
            self.listed = self.entries.numbers()
            number = self.listed[-1] if self.listed else 0
            if number == 0:
                self._newest = 0, {}
            if number == self._newest[0]:
                return self._newest
            try:
                entry = self.entries.get(number)
            except FileNotFoundError:
                if look == _LOOKS - 1:
                    raise
                continue
            self._newest = number, entry["value"]
        return self._newest


class Updating:
    """Updates of one control by this process: the handler of the machine's port.

    `accept`: is called with the values of the newest version and with the changes, before they are
    in force together, and raises for what is not valid.
    """

    def __init__(
        self,
        entries: Entries,
        store: str,
        control: str,
        by: str,
        now: Callable[[], float] = time.time,
        accept: Accept = accept_all,
        waits: Waits = USUAL,
    ) -> None:
        self._waits, self._calls = waits, LimitedCalls("epochgate-update")
        self._store, self._control, self._by, self._now = store, control, by, now
        self.accept = accept
        self._entries, self._versions = entries, Versions(entries, control)
        self._numbered = self._versions.entries
        self._system = Handles(ControlUpdates)
        self._system.bind("control_update", "log", self)
        self._decisions: dict[str, dict[str, Any]] = {}
        """The newest one for each query that was read."""
        self._changes: Value = {}
        self._newest: Value = {}
        """What the version before comes to."""
        self._token = ""
        """By which a version is known to be the update that is under way."""
        self._outcome: int | BaseException
        self._error: BaseException | None = None
        self._refusal: BaseException | None = None

    def update(self, changes: Value) -> int:
        """Let the next version have these values; its number.

        Raises what `accept` raises, UpdateFailed, UpdateInDoubt.
        """
        self._changes, self._token, self._error = changes, uuid.uuid4().hex, None
        self._outcome = InvariantBroken("the update has no end")
        self._machine.update()
        self._system.settle()
        return self._ended()

    def _ended(self) -> int:
        if isinstance(self._outcome, BaseException):
            raise self._outcome from self._error
        return self._outcome

    @property
    def _machine(self) -> Handle[ControlUpdate]:
        return self._system.control_update[0]

    # port `log`

    def read(self, _: int) -> None:
        with self._answered() as machine:
            newest, self._newest = self._asked("reading the versions and decisions", self._found)
            machine.newest(newest)

    def _found(self) -> tuple[int, Value]:
        """The newest version that there is or was, and what the newest that there is comes to."""
        number, value = self._versions.newest()
        # A number with which a batch has run is not given out again, if its file was lost.
        decided = newest_decisions(self._entries, self._control, self._decisions)
        return max([number, *(one["version"] for one in decided)]), value

    def check(self, _: int, version: int) -> None:
        newest, changes, limit = self._newest, self._changes, self._waits.maker
        what = f"the check of control {self._control!r}"
        try:
            self._calls.call(what, limit, lambda: self.accept(newest, changes))
        except CallLate as error:
            self._error = None
            self._refusal = UpdateFailed(self._control, self._store, str(error))
            self._machine.unfit()
        except BaseException as error:  # noqa: BLE001  # the user's code has no root for what it raises
            self._error, self._refusal = error.__cause__, error
            self._machine.unfit()
        else:
            self._machine.fit()

    def write(self, _: int, version: int) -> None:
        entry = {
            "version": version,
            "value": {**self._newest, **self._changes},
            "changes": self._changes,
            "token": self._token,
            "at": self._now(),
            "by": self._by,
        }
        try:
            self._asked("writing a version", lambda: self._numbered.create(version, entry))
        except FileExistsError:
            self._tell_taken(version)
        except NotCreated as error:
            self._error = error
            self._machine.broken()
        except OSError as error:
            self._error = error
            self._machine.unknown()
        else:
            self._machine.written()

    def _tell_taken(self, version: int) -> None:
        try:
            there = self._asked("reading a version", lambda: self._numbered.get(version))
            is_own = there["token"] == self._token
            later = self._later(version)
        except (OSError, ValueError, KeyError) as error:
            self._error = error
            self._machine.unknown()
        else:
            self._machine.taken(later, is_own)

    def confirm(self, _: int, version: int) -> None:
        with self._answered() as machine:
            machine.confirmed(self._later(version))

    def forget(self, _: int, version: int) -> None:
        listed = self._versions.listed
        forgotten = listed[: bisect.bisect_right(listed, version)]

        def remove() -> None:
            for number in forgotten:
                self._numbered.delete(number)

        try:
            if forgotten:
                self._asked("removing what is forgotten", remove)
        except OSError as error:
            _log.warning("what is left is removed with a later update: %s", error)
            self._machine.kept()
        else:
            self._machine.forgotten()

    def done(self, _: int, version: int) -> None:
        self._outcome = version

    def in_doubt(self, _: int, version: int) -> None:
        reason = str(self._error or f"others have made many updates since version {version}")
        self._outcome = UpdateInDoubt(self._control, self._store, reason)

    def refuse(self, _: int) -> None:
        assert self._refusal is not None, "`accept` has raised"
        self._outcome = self._refusal

    def fail(self, _: int) -> None:
        self._outcome = UpdateFailed(self._control, self._store, str(self._error))

    @contextlib.contextmanager
    def _answered(self) -> Iterator[Handle[ControlUpdate]]:
        try:
            yield self._machine
        except (OSError, ValueError) as error:
            self._error = error
            self._machine.broken()

    def _asked(self, what: str, request: Callable[[], T]) -> T:
        """What the store answers. Raises CallLate, and what the request raises."""
        return self._calls.call(f"{what} in {self._numbered.shown}", self._waits.store, request)

    def _later(self, version: int) -> int:
        self._versions.listed = self._asked("listing the versions", self._numbered.numbers)
        return max(0, max(self._versions.listed, default=0) - version)
