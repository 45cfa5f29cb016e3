"""The versions of a control, and the update that takes the next one.

A version holds the update and what all updates up to it come to, so that the newest is read alone.
Decides nothing: an answer of the store is a trigger of the machine, an error or no answer in time
`broken`, or `unknown` where a version may have been created. Any process; `Updating` waits on the
thread that updates, and asks on one of its own.
"""

from __future__ import annotations

import bisect
import logging
import time
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Final

from epochgate.fsm import Handle, Handles
from epochgate.models.control_update import ControlUpdate, ControlUpdates
from epochgate.runtime.entries.creating import Creating
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.entries.waits import USUAL, Waits
from epochgate.runtime.limited import CallLate
from epochgate.runtime.steering.errors import UpdateFailed, UpdateInDoubt
from epochgate.runtime.steering.layout import newest_decisions, versions_of
from epochgate.runtime.steering.values import Value

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
        self._newest: tuple[int, Value] = 0, {}

    def newest(self) -> tuple[int, Value]:
        """The newest number, 0 for none, and what it and those before come to.

        Raises OSError, or ValueError for one that is damaged.
        """
        for look in range(_LOOKS):
            listed = self.entries.numbers()
            number = listed[-1] if listed else 0
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


class Updating(Creating):
    """Updates of one control by this process: the handler of the machine's port.

    `accept`: is called with the values of the newest version and with the changes, before they are
    in force together, and raises for what is not valid.
    """

    FIRST: ClassVar[int] = 1
    FAILURES: ClassVar[tuple[type[Exception], ...]] = (OSError, ValueError)
    _machine: Handle[ControlUpdate]

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
        self._store, self._control, self._by, self._now = store, control, by, now
        self.accept = accept
        self._stored, self._versions = entries, Versions(entries, control)
        system = Handles(ControlUpdates)
        system.bind("control_update", "log", self)
        machine = system.control_update[0]
        super().__init__(machine, system.settle, self._versions.entries, waits)
        self._decisions: dict[str, dict[str, Any]] = {}
        """The newest one for each query that was read."""
        self._changes: Value = {}
        self._newest: Value = {}
        """What the version before comes to."""
        self._token = ""
        """By which a version is known to be the update that is under way."""
        self._refusal: BaseException | None = None

    def update(self, changes: Value) -> int:
        """Let the next version have these values; its number.

        Raises what `accept` raises, UpdateFailed, UpdateInDoubt.
        """
        self._changes, self._token, self._error = changes, uuid.uuid4().hex, None
        self._machine.update()
        version: int = self._settled()
        return version

    # port `log`

    def read(self, _: int) -> None:
        with self._answered():
            newest, self._newest = self._asked("reading the versions and decisions", self._found)
            self._machine.newest(newest)

    def _found(self) -> tuple[int, Value]:
        """The newest version that there is or was, and what the newest that there is comes to."""
        number, value = self._versions.newest()
        # A number with which a batch has run is not given out again, if its file was lost.
        decided = newest_decisions(self._stored, self._control, self._decisions)
        return max([number, *(one["version"] for one in decided)]), value

    def check(self, _: int, version: int) -> None:
        newest, changes, limit = self._newest, self._changes, self._waits.maker
        what = f"the check of control {self._control!r}"
        try:
            self._called(what, limit, lambda: self.accept(newest, changes))
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
        self._create(version, entry)

    def _tell_taken(self, version: int) -> None:
        try:
            is_own = self._entry(version)["token"] == self._token
            later = self._later(version)
        except (OSError, ValueError, KeyError) as error:
            self._error = error
            self._machine.unknown()
        else:
            self._machine.taken(later, is_own)

    def forget(self, _: int, version: int) -> None:
        forgotten = self._listed[: bisect.bisect_right(self._listed, version)]

        def remove() -> None:
            for number in forgotten:
                self._entries.delete(number)

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
