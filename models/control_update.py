"""One update of a control: it takes the next version, once, whatever others update meanwhile.

Decides that an update follows the version that its writer has read, that of two which would take
one number the first is it and the other goes on behind it, and that an update whose answer is lost
is tried under the same number until that number is taken, so that it never takes two. Decides too
that what would be in force is checked before it is written, after each reading of the newest
version: so an update that lands in between is checked together with this one. A version is an
object of its own, made by a conditional creation, and holds what all versions up to it come to.

Versions that are `retained` numbers behind the newest one, and more, are forgotten by their number; an
update that finds itself among them cannot know whether it counts, and says so. Leaves to the shell
what an update changes. Runs in any process, on the thread that updates.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Int,
    Machine,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

IDLE, READING, CHECKING = "idle", "reading", "checking"
WRITING, CONFIRMING, FORGETTING = "writing", "confirming", "forgetting"


class VersionPort(Port):
    """The store of versions. `later`: by how many numbers the newest version is behind this one."""

    @fallible("broken", succeeds="newest", within="store_timeout_s")
    def read(self) -> None:
        """Ask for the newest version, of those that are there and of those with which batches have
        run.
        """

    @fallible("unfit", succeeds="fit", within="coordinator_call_timeout_s")
    def check(self, version: int) -> None:
        """Check what would be in force with this version."""

    @fallible("broken, unknown", succeeds="written, taken", within="store_timeout_s")
    def write(self, version: int) -> None:
        """Create this version; `taken` if there is one. `unknown`: it may have been created."""

    @fallible("broken", succeeds="confirmed", within="store_timeout_s")
    def confirm(self, version: int) -> None:
        """Look for later versions."""

    @fallible("kept", succeeds="forgotten", within="store_timeout_s")
    def forget(self, version: int) -> None:
        """Remove this version and those before, 0 for none. `kept`: something is left."""

    def done(self, version: int) -> None:
        """The update has this version."""

    def in_doubt(self, version: int) -> None:
        """The update has this version or none: whether it counts is unknown."""

    def refuse(self) -> None:
        """The update does not count: it did not pass the check."""

    def fail(self) -> None:
        """The update does not count."""


class ControlUpdate(Machine):
    """One update after the other, of one process."""

    INDEX = ("updater",)
    STATES = (IDLE, READING, CHECKING, WRITING, CONFIRMING, FORGETTING)
    INITIAL = IDLE

    system: ControlUpdates
    log: VersionPort = output(VersionPort)

    version: int = Int("versions")
    """The number that the update is to have."""
    tries: int = Int("update_retries")

    update: Trigger
    newest: Trigger
    fit: Trigger
    unfit: Trigger
    written: Trigger
    taken: Trigger
    unknown: Trigger
    confirmed: Trigger
    forgotten: Trigger
    kept: Trigger
    broken: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("update",    IDLE,       READING,    None,
            "begin, ask_newest",      "the user changes the value"),

        Row("newest",    READING,    CHECKING,   None,
            "note_next, ask_check",   "the update follows what is there"),

        Row("fit",       CHECKING,   WRITING,    None,
            "ask_write",              "what was checked is what is written"),
        Row("unfit",     CHECKING,   IDLE,       None,
            "report_refusal",         "nothing of it was written"),

        Row("written",   WRITING,    CONFIRMING, None,
            "ask_confirm",            "it is durable"),
        Row("taken",     WRITING,    CONFIRMING, "is_mine",
            "ask_confirm",            "it was written before, and the answer was lost"),
        Row("taken",     WRITING,    READING,    "not is_mine and is_certain",
            "ask_newest",             "another update was faster, and this one follows it"),
        Row("taken",     WRITING,    IDLE,       "not is_mine and not is_certain",
            "report_doubt",           "an earlier try may have had the number, and was removed"),
        Row("unknown",   WRITING,    STAY,       "may_retry",
            "count_try, ask_write",   "it may come yet, and takes no second number"),
        Row("unknown",   WRITING,    IDLE,       "not may_retry",
            "report_doubt",           "the store did not answer in any allowed try"),

        Row("confirmed", CONFIRMING, FORGETTING, "not is_forgotten",
            "ask_forget",             "no version of this number was removed before"),
        Row("confirmed", CONFIRMING, IDLE,       "is_forgotten",
            "report_doubt",           "the number may have been another update's, and removed"),

        Row("forgotten", FORGETTING, IDLE,       None,
            "report_done",            "nothing is kept for ever"),
        Row("kept",      FORGETTING, IDLE,       None,
            "report_done",            "a later update removes what is left"),

        Row("broken",    READING,    IDLE,       None,
            "report_failure",         "nothing of it was written"),
        Row("broken",    WRITING,    IDLE,       "not has_tried",
            "report_failure",         "the store has refused it"),
        Row("broken",    WRITING,    IDLE,       "has_tried",
            "report_doubt",           "an earlier try may come yet"),
        Row("broken",    CONFIRMING, IDLE,       None,
            "report_doubt",           "it is written, and was not confirmed"),
    )
    # fmt: on

    def is_mine(self, later: int, is_own: bool) -> bool:
        return is_own

    def is_certain(self, later: int) -> bool:
        return self.tries == 0 or later < self.system.retained

    def may_retry(self) -> bool:
        return self.tries < self.system.update_retries

    def has_tried(self) -> bool:
        return self.tries > 0

    def is_forgotten(self, later: int) -> bool:
        return later >= self.system.retained

    def begin(self) -> None:
        self.version = 0
        self.tries = 0

    def ask_newest(self) -> None:
        self.log.read()

    def note_next(self, version: int) -> None:
        self.version = version + 1
        self.tries = 0

    def ask_check(self) -> None:
        self.log.check(self.version)

    def ask_write(self) -> None:
        self.log.write(self.version)

    def ask_confirm(self) -> None:
        self.log.confirm(self.version)

    def count_try(self) -> None:
        self.tries += 1

    def ask_forget(self, later: int) -> None:
        # Behind the newest one, which this is not if others followed it meanwhile.
        if self.version + later > self.system.retained:
            self.log.forget(self.version + later - self.system.retained)
        else:
            self.log.forget(0)

    def report_done(self) -> None:
        self.log.done(self.version)

    def report_doubt(self) -> None:
        self.log.in_doubt(self.version)

    def report_refusal(self) -> None:
        self.log.refuse()

    def report_failure(self) -> None:
        self.log.fail()


class ControlUpdates(System):
    """One process that updates one control."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"updater": "updaters"}
    CONSTANTS: ClassVar[dict[str, int]] = {"updaters": 1, "retained": 100, "update_retries": 3}

    updaters: int
    retained: int
    update_retries: int

    control_update: list[ControlUpdate] = machines(ControlUpdate)
