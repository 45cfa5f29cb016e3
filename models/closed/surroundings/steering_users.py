"""Those who use a control in the closed system: a user who updates it, and one who asks since when an
update is in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger
from epochgate.fsm.closed import Environment

if TYPE_CHECKING:
    from epochgate.models.closed.steering import SteeredQuery


class User(Environment):
    """Updates the control."""

    STATES = ("up",)
    INITIAL = "up"

    system: SteeredQuery

    version: int = Int("versions")

    update: Trigger
    lose: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("update", "up", STAY, "has_more", "count_version", "the value is changed"),
        Row("lose",   "up", STAY, "may_lose", "drop_version",  "the file of the newest version is lost"),
    )
    # fmt: on

    def has_more(self) -> bool:
        return self.version < self.system.versions

    def count_version(self) -> None:
        self.version += 1

    def may_lose(self) -> bool:
        return self.version > 0 and self.system.query.failures < self.system.F

    def drop_version(self) -> None:
        self.system.query.failures += 1
        self.version -= 1
        self.system.query.lower_dues(self.version)


class Asker(Environment):
    """Asks once from which batch on the newest version is in force, and holds the answer."""

    STATES = ("asking", "told")
    INITIAL = "asking"
    TERMINAL = ("told",)

    system: SteeredQuery

    version: int = Int("versions")
    since: int = Int("batches")

    ask: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ask", "asking", "told", "has_answer", "note_since", "a decision has an update"),
    )
    # fmt: on

    def has_answer(self) -> bool:
        return (
            self.system.query.newest > 0 and self.system.query.decided[self.system.query.newest] > 0
        )

    def note_since(self) -> None:
        newest = self.system.query.newest
        self.version = self.system.query.decided[newest]
        self.since = self.system.query.since[newest]

    def hold_against(self, batch: int, version: int) -> None:
        """Nothing that runs later says otherwise."""
        assert self.since == 0 or (batch >= self.since) == (version >= self.version), (
            "from when on a version is in force stays as it was answered"
        )
