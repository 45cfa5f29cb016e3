"""A closed system around the updates of a control: none is lost, doubled or out of order.

Two processes update one control; each update follows the version that its process has read, and its
creation is conditional. A check refuses the first and the second update together, and may refuse any
other. Requests to write may take effect late, or be answered by silence; a process may die at any
moment, and old versions are removed::

    process 1   newest 4 | write 5 ...suspended............................ | taken | newest 6 | 7
    process 2               newest 4 | write 5 | confirmed | newest 5 | write 6

`ControlUpdate` is the machine that runs in production. The versions of the system `steering` come
from here: there an update is one step.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    leads_to,
    sometimes,
    terminal,
)
from epochgate.models.closed.surroundings.entries import (
    CHOOSE,
    CONFIRM,
    CONNECTION_ROWS,
    FORGET,
    NOTHING,
    READ,
    RESTART,
    WRITE,
    Connection,
)
from epochgate.models.control_update import IDLE, ControlUpdate

PENDING, DONE, FAILED, DOUBTED = range(4)
NEITHER, FIRST, SECOND, BOTH = range(4)
"""Of the first two updates, which the check refuses together."""


class Updater(ControlUpdate):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (*ControlUpdate.ROWS, RESTART)

    def forget_all(self) -> None:
        self.version = 0
        self.tries = 0


class Log(Environment):
    """The versions in the store, and the updates by their order of beginning, from 1."""

    STATES = ("up",)
    INITIAL = "up"

    system: UpdatedControl

    newest: int = Int("updates")
    author: list[int] = Array(Int("updates"), "slots")
    """Version -> the update that it is; 0 where there is none."""
    begun: int = Int("updates")
    holds: list[int] = Array(Int(BOTH, names="NEITHER, FIRST, SECOND, BOTH"), "slots")
    """Version -> which of the first two updates are in what it comes to."""
    counted: list[int] = Array(Int("updates"), "slots")
    """Update -> the version that counts; 0 for none."""
    outcome: list[int] = Array(Int(DOUBTED, names="PENDING, DONE, FAILED, DOUBTED"), "slots")
    """Update -> what its process was told."""
    strays: int = Int(1)
    failures: int = Int("F")

    change: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("change", "up", STAY, None, "note", "a version is created"),
    )
    # fmt: on

    def note(self, version: int, update: int, value: int) -> None:
        if self.author[version] == 0:
            self.author[version] = update
            self.holds[version] = value
            if self.newest < version + self.system.retained:
                assert self.counted[update] == 0, "no update takes two versions"
                assert self.outcome[update] != FAILED, "what was told to have failed has no effect"
                assert version <= self.newest + 1, "no number is left out"
                self.counted[update] = version
            else:
                self.strays = 1
            if self.newest < version:
                self.newest = version

    def remove(self, updater: int, version: int) -> None:
        """Those up to this version that the process has listed."""
        for v in range(self.system.slots):
            if v <= version and self.system.client[updater].has_listed[v]:
                self.author[v] = 0
                self.holds[v] = NEITHER

    def end(self, update: int, outcome: int) -> None:
        self.outcome[update] = outcome


class Client(Connection):
    """A process that updates, and its connection to the store: port `log` of its machine."""

    INDEX = ("updater",)

    system: UpdatedControl
    updater: int
    served: Updater
    entries: Log
    PEERS: ClassVar[dict[str, str]] = {"served": "control_update", "entries": "log"}

    update: int = Int("updates")
    """The one under way; 0 for none."""
    before: int = Int("updates")
    """The newest version when it began."""
    value: int = Int(BOTH, names="NEITHER, FIRST, SECOND, BOTH")
    """What the version is to hold."""
    late_update: int = Int("updates")
    late_value: int = Int(BOTH, names="NEITHER, FIRST, SECOND, BOTH")
    has_listed: list[bool] = Array(Bool(), "slots")
    """The versions that were there when the update was confirmed, and may be removed behind it."""

    begin: Trigger
    object_to: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",     "up", STAY, "may_begin",  "count_update, start", "the user updates the control"),
        *CONNECTION_ROWS,
        Row("object_to", "up", STAY, "may_object", "answer_unfit",        "the user's check raises"),
        Row("die",       "up", STAY, "may_die",    "spend_failure, cut",  "the process is killed"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.update == 0 and self.entries.begun < self.system.updates

    def may_fail(self) -> bool:
        return self.asked != CHOOSE and self.may_die()

    def may_die(self) -> bool:
        return self.asked != NOTHING and self.entries.failures < self.system.F

    def may_object(self) -> bool:
        return self.asked == CHOOSE and self.system.objections > 0

    def count_update(self) -> None:
        self.entries.begun += 1
        self.update = self.entries.begun
        self.before = self.entries.newest

    def start(self) -> None:
        self.served.update()

    def answer_it(self) -> None:
        if self.asked == READ:
            self.merge()
            self.served.newest(self.entries.newest)
        if self.asked == CHOOSE and self.value == BOTH:
            self.served.unfit()
        if self.asked == CHOOSE and self.value != BOTH:
            self.served.fit()
        if self.asked == WRITE:
            self.tell_written()
        if self.asked == CONFIRM:
            for v in range(self.system.slots):
                self.has_listed[v] = self.entries.author[v] > 0
            self.served.confirmed(self.behind())
        if self.asked == FORGET:
            self.entries.remove(self.updater, self.version)
            self.served.forgotten()
        self.end()

    def merge(self) -> None:
        """Put the update on top of what is newest."""
        self.value = self.entries.holds[self.entries.newest]
        if self.update == 1:
            self.value = FIRST if self.value == NEITHER or self.value == FIRST else BOTH
        if self.update == 2:
            self.value = SECOND if self.value == NEITHER or self.value == SECOND else BOTH

    def answer_unfit(self) -> None:
        self.served.unfit()
        self.end()

    def tell_written(self) -> None:
        author = self.entries.author[self.version]
        self.entries.change(self.version, self.update, self.value)
        if author == 0:
            self.served.written()
        elif author == self.update:
            self.served.taken(self.behind(), True)
        else:
            self.served.taken(self.behind(), False)

    def behind(self) -> int:
        if self.entries.newest > self.version:
            return self.entries.newest - self.version
        return 0

    def write_late(self) -> None:
        self.entries.change(self.late, self.late_update, self.late_value)
        self.late = 0
        self.late_update = 0
        self.late_value = NEITHER

    def send_late(self) -> None:
        self.late = self.version
        self.late_update = self.update
        self.late_value = self.value

    def cut(self) -> None:
        self.send_if_writing()
        self.entries.end(self.update, DOUBTED)
        self.rest()
        self.served.restart()

    def end(self) -> None:
        self.asked = NOTHING
        self.version = 0

    def rest(self) -> None:
        self.end()
        self.value = NEITHER
        self.update = 0
        self.before = 0
        for v in range(self.system.slots):
            self.has_listed[v] = False

    # port `log` of the machine

    def ask(self, what: int, version: int) -> None:
        self.asked = what
        self.version = version

    def read(self) -> None:
        self.asked = READ

    def check(self, version: int) -> None:
        assert version == self.entries.newest + 1, "an update follows the newest version"
        self.ask(CHOOSE, version)

    def write(self, version: int) -> None:
        self.ask(WRITE, version)

    def confirm(self, version: int) -> None:
        assert self.entries.author[version] == self.update, "what is confirmed is the update's"
        self.ask(CONFIRM, version)

    def forget(self, version: int) -> None:
        assert version < self.entries.newest, "the newest version is never removed"
        assert version == self.forgotten(), "versions are forgotten by their number"
        self.ask(FORGET, version)

    def forgotten(self) -> int:
        """The newest version that is to go; 0 for none."""
        newest = self.entries.newest
        return newest - self.system.retained if newest > self.system.retained else 0

    def done(self, version: int) -> None:
        assert self.update > 0, "an update ends once"
        assert self.entries.counted[self.update] == version, "what was done has its version"
        assert version > self.before, "an update comes behind what was there before it"
        self.entries.end(self.update, DONE)
        self.rest()

    def in_doubt(self, version: int) -> None:
        assert self.update > 0, "an update ends once"
        assert (
            self.served.tries > 0
            or self.entries.counted[self.update] == version
            or self.entries.strays > 0
        ), "an update whose every answer was heard is in doubt only if it is written"
        assert (
            self.entries.counted[self.update] == 0 or self.entries.counted[self.update] == version
        ), "an update that is in doubt has the version that was told, or none"
        assert (
            self.late_update != self.update
            or self.late == version
            or self.late <= self.entries.newest
        ), "an update that is in doubt may yet have the version that was told, and no other"
        self.entries.end(self.update, DOUBTED)
        self.rest()

    def refuse(self) -> None:
        self.fail()

    def fail(self) -> None:
        assert self.update > 0, "an update ends once"
        assert self.entries.counted[self.update] == 0, "what was told to have failed has no effect"
        self.entries.end(self.update, FAILED)
        self.rest()


class UpdatedControl(ClosedSystem):
    """Two processes that update one control: each update that is done counts once."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"updater": "updaters"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "updaters": 2,
        "updates": 4,
        "retained": 2,
        "update_retries": 1,
        "objections": 1,
        "F": 2,
    }
    DERIVED: ClassVar[dict[str, str]] = {"slots": "updates + 1", "versions": "updates + 0"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("client", "begin", is_fair=False),
        Step("client", "answer"),
        Step("client", "object_to", is_fair=False),
        Step("client", "arrive"),
        Step("client", "lose", is_fair=False),
        Step("client", "deny", is_fair=False),
        Step("client", "die", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"control_update.log": "client"}

    updaters: int
    updates: int
    slots: int
    retained: int
    update_retries: int
    objections: int
    """0: a check raises for the first and the second update together, and for no other."""
    F: int

    control_update: list[Updater] = machines(Updater)
    log: Log = machines(Log)
    client: list[Client] = machines(Client)

    @always("an update that is done has a version of its own")
    def keeps_what_is_done(self) -> bool:
        return all(
            self.log.outcome[u] != DONE
            or (
                self.log.counted[u] > 0
                and all(
                    w == u or self.log.counted[w] != self.log.counted[u] for w in range(self.slots)
                )
            )
            for u in range(self.slots)
        )

    @always("a process without an update may begin one")
    def may_begin(self) -> bool:
        return all(
            self.client[u].update > 0 or self.control_update[u].state == IDLE
            for u in range(self.updaters)
        )

    @always("what is in force has passed the check")
    def passes_the_check(self) -> bool:
        return self.log.holds[self.log.newest] != BOTH

    @sometimes("an update follows another that was faster")
    def follows(self) -> bool:
        return any(
            self.client[u].asked == WRITE and self.client[u].version > self.client[u].before + 1
            for u in range(self.updaters)
        )

    @sometimes("a version is removed")
    def removes(self) -> bool:
        return any(
            v + self.retained <= self.log.newest and self.log.author[v] == 0
            for v in range(1, self.slots)
        )

    @sometimes("an update that was suspended is written under a number that is forgotten")
    def writes_late(self) -> bool:
        return self.log.strays > 0

    @sometimes("an update whose answer was lost is done all the same")
    def is_done_unheard(self) -> bool:
        return any(
            self.control_update[u].tries > 0
            and self.client[u].asked == CONFIRM
            and self.log.author[self.client[u].version] == self.client[u].update
            for u in range(self.updaters)
        )

    @leads_to("an update that was begun ends", then="rests")
    def has_begun(self) -> bool:
        return not self.rests()

    def rests(self) -> bool:
        return all(self.client[u].update == 0 for u in range(self.updaters))

    @terminal("no update is under way")
    def is_at_rest(self) -> bool:
        return self.rests()
