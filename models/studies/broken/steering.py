"""The steering of a streaming query without one of its rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row, machines
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.surroundings.steering import Decider, Driver, Query
from epochgate.models.closed.updating import Log, UpdatedControl, Updater
from epochgate.models.control_update import CHECKING, READING, WRITING
from epochgate.models.created_once import CONFIRMING, FORGETTING, IDLE

SMALL = {**SteeredQuery.CONSTANTS, "batches": 2}


class HastyDecider(Decider):
    """Runs the batch once it knows what is newest, before that is durable."""

    def ask_write(self) -> None:
        self.store.run(self.batch, self.version)


class NothingDurable(SteeredQuery):
    """A batch that is run again sees an update that came after its first run."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    batch_decision: list[Decider] = machines(HastyDecider)


class PollingDriver(Driver):
    """Gives its tasks a name to look up: each sees what is newest when it runs."""

    def told(self) -> int:
        return self.system.user.version


class LookedUpByTasks(SteeredQuery):
    """Two tasks of one batch see two values."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SMALL, "tasks": 2, "drivers": 1}

    driver: list[Driver] = machines(PollingDriver)


class OverwrittenQuery(Query):
    """The store replaces what is there."""

    def create(self, batch: int, version: int, since: int) -> bool:
        self.is_there[batch] = True
        self.decided[batch] = version
        self.since[batch] = since
        if self.newest < batch:
            self.newest = batch
        return True


class ZombieOverwrites(SteeredQuery):
    """A driver that was taken for dead replaces the decision of its successor."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SMALL, "F": 0}

    query: Query = machines(OverwrittenQuery)


class TrustingDecider(Decider):
    """Takes a decision that it has made for the only one."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Decider.ROWS if row.trigger != "confirmed"),
        Row("confirmed", CONFIRMING, FORGETTING, "is_there", "ask_forget", "the decision is durable"),
    )
    # fmt: on

    def is_there(self, later: int) -> bool:
        return True


class ForgottenBatchDecided(SteeredQuery):
    """A batch that was run and forgotten is decided once more."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SMALL, "F": 0}

    batch_decision: list[Decider] = machines(TrustingDecider)


class UnsuspectingDecider(Decider):
    """Takes the newest version for the newest that there ever was."""

    def is_set_back(self, version: int, earlier: int, since: int) -> bool:
        return False


class LossUnnoticed(SteeredQuery):
    """A batch sees values again that an update had replaced for the batch before it."""

    batch_decision: list[Decider] = machines(UnsuspectingDecider)


class ImpatientUpdater(Updater):
    """Takes an update whose answer is lost to the next number."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Updater.ROWS if row.trigger != "unknown"),
        Row("unknown", WRITING, READING, "may_retry",     "count_try, ask_newest", "it is tried again"),
        Row("unknown", WRITING, IDLE,    "not may_retry", "report_doubt",          "it was tried"),
    )
    # fmt: on


class SecondNumber(UpdatedControl):
    """An update takes effect twice, with another between."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **UpdatedControl.CONSTANTS,
        "updaters": 1,
        "updates": 3,
        "objections": 0,
        "F": 1,
    }

    control_update: list[Updater] = machines(ImpatientUpdater)


class TrustingUpdater(Updater):
    """Takes a number that it finds taken for another's, whatever it has tried before."""

    def is_certain(self, later: int) -> bool:
        return True


class RemovedNumber(UpdatedControl):
    """An update whose first try has counted, and was removed, is made again."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        **UpdatedControl.CONSTANTS,
        "retained": 1,
        "updates": 3,
        "objections": 0,
    }

    control_update: list[Updater] = machines(TrustingUpdater)


class OnceChecked(Updater):
    """Checks what it has read first, and nothing that was faster than it."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Updater.ROWS if row.trigger != "newest"),
        Row("newest", READING, CHECKING, "not has_lost", "note_next, ask_check", "it is to be checked"),
        Row("newest", READING, WRITING,  "has_lost",     "note_next, ask_write", "it was checked before"),
    )
    # fmt: on

    def has_lost(self) -> bool:
        return self.version > 0


class CheckedTooEarly(UpdatedControl):
    """Two updates are in force together which the check refuses together."""

    CONSTANTS: ClassVar[dict[str, int]] = {**UpdatedControl.CONSTANTS, "updates": 2, "F": 0}

    control_update: list[Updater] = machines(OnceChecked)


class OverwrittenLog(Log):
    """The store replaces what is there."""

    def note(self, version: int, update: int, value: int) -> None:
        self.author[version] = update
        self.holds[version] = value
        self.counted[update] = version
        if self.newest < version:
            self.newest = version


class LastWriterWins(UpdatedControl):
    """Of two updates that follow the same version one is lost."""

    CONSTANTS: ClassVar[dict[str, int]] = {**UpdatedControl.CONSTANTS, "objections": 0, "F": 0}

    log: Log = machines(OverwrittenLog)
