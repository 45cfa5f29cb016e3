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

from epochgate.fsm import ANY, STAY, Array, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    leads_to,
    sometimes,
    terminal,
)
from epochgate.models.control_update import IDLE, ControlUpdate

NOTHING, READ, CHECK, WRITE, CONFIRM, FORGET = range(6)
PENDING, DONE, FAILED, DOUBTED = range(4)
NEITHER, FIRST, SECOND, BOTH = range(4)
"""Of the first two updates, which the check refuses together."""


class Updater(ControlUpdate):
    """The machine that runs in production; the next process has another."""

    restart: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *ControlUpdate.ROWS,
        Row("restart", ANY, IDLE, None, "forget_all", "the next process knows nothing of this one"),
    )
    # fmt: on

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
    holds: list[int] = Array(Int(BOTH), "slots")
    """Version -> which of the first two updates are in what it comes to."""
    counted: list[int] = Array(Int("updates"), "slots")
    """Update -> the version that counts; 0 for none."""
    outcome: list[int] = Array(Int(DOUBTED), "slots")
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

    def remove(self, version: int) -> None:
        for v in range(self.system.slots):
            if v <= version:
                self.author[v] = 0
                self.holds[v] = NEITHER

    def end(self, update: int, outcome: int) -> None:
        self.outcome[update] = outcome


class Client(Environment):
    """A process that updates, and its connection to the store: port `log` of its machine."""

    INDEX = ("updater",)
    STATES = ("up",)
    INITIAL = "up"

    system: UpdatedControl
    updater: int

    update: int = Int("updates")
    """The one under way; 0 for none."""
    before: int = Int("updates")
    """The newest version when it began."""
    asked: int = Int(FORGET)
    version: int = Int("updates")
    value: int = Int(BOTH)
    """What the version is to hold."""
    late: int = Int("updates")
    """A version that was sent and not answered may be written yet; 0 for none."""
    late_update: int = Int("updates")
    late_value: int = Int(BOTH)

    begin: Trigger
    answer: Trigger
    object_to: Trigger
    arrive: Trigger
    lose: Trigger
    deny: Trigger
    die: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",  "up", STAY, "may_begin",   "count_update, start",   "the user updates the control"),
        Row("answer", "up", STAY, "is_asked",    "answer_it",             "the store has done it, and says so"),
        Row("object_to", "up", STAY, "may_object",  "answer_unfit",       "the user's check raises"),
        Row("arrive", "up", STAY, "has_late",    "write_late",            "a request without an answer takes effect"),
        Row("lose",   "up", STAY, "may_lose",    "spend_failure, leave_it, answer_unknown",
                                                                          "the answer does not come"),
        Row("deny",   "up", STAY, "may_fail",    "spend_failure, answer_broken",
                                                                          "the store refuses, and does nothing"),
        Row("die",    "up", STAY, "may_fail",    "spend_failure, cut",    "the process is killed"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return self.update == 0 and self.system.log.begun < self.system.updates

    def is_asked(self) -> bool:
        return self.asked != NOTHING

    def has_late(self) -> bool:
        return self.late > 0

    def may_lose(self) -> bool:
        return self.asked == WRITE and self.late == 0 and self.may_fail()

    def may_object(self) -> bool:
        return self.asked == CHECK and self.system.objections > 0

    def may_fail(self) -> bool:
        return (
            self.asked != NOTHING
            and self.asked != CHECK
            and self.system.log.failures < self.system.F
        )

    def count_update(self) -> None:
        self.system.log.begun += 1
        self.update = self.system.log.begun
        self.before = self.system.log.newest

    def start(self) -> None:
        self.system.control_update[self.updater].update()

    def answer_it(self) -> None:
        asked = self.asked
        version = self.version
        self.asked = NOTHING
        self.version = 0
        if asked == READ:
            self.merge()
            self.system.control_update[self.updater].newest(self.system.log.newest)
        if asked == CHECK:
            self.tell_checked()
        if asked == WRITE:
            self.tell_written(version)
        if asked == CONFIRM:
            self.system.control_update[self.updater].confirmed(self.behind(version))
        if asked == FORGET:
            self.system.log.remove(version)
            self.system.control_update[self.updater].forgotten()

    def merge(self) -> None:
        """Put the update on top of what is newest."""
        self.value = self.system.log.holds[self.system.log.newest]
        if self.update == 1:
            self.value = FIRST if self.value == NEITHER or self.value == FIRST else BOTH
        if self.update == 2:
            self.value = SECOND if self.value == NEITHER or self.value == SECOND else BOTH

    def tell_checked(self) -> None:
        if self.value == BOTH:
            self.system.control_update[self.updater].unfit()
        else:
            self.system.control_update[self.updater].fit()

    def answer_unfit(self) -> None:
        self.asked = NOTHING
        self.version = 0
        self.system.control_update[self.updater].unfit()

    def tell_written(self, version: int) -> None:
        author = self.system.log.author[version]
        self.system.log.change(version, self.update, self.value)
        if author == 0:
            self.system.control_update[self.updater].written()
        elif author == self.update:
            self.system.control_update[self.updater].taken(self.behind(version), True)
        else:
            self.system.control_update[self.updater].taken(self.behind(version), False)

    def behind(self, version: int) -> int:
        if self.system.log.newest > version:
            return self.system.log.newest - version
        return 0

    def write_late(self) -> None:
        version = self.late
        update = self.late_update
        value = self.late_value
        self.late = 0
        self.late_update = 0
        self.late_value = NEITHER
        self.system.log.change(version, update, value)

    def leave_it(self) -> None:
        self.send_late()
        self.asked = NOTHING
        self.version = 0

    def send_late(self) -> None:
        """The version is under way, and the client hears no answer."""
        self.late = self.version
        self.late_update = self.update
        self.late_value = self.value

    def answer_unknown(self) -> None:
        self.system.control_update[self.updater].unknown()

    def answer_broken(self) -> None:
        asked = self.asked
        self.asked = NOTHING
        self.version = 0
        if asked == FORGET:
            self.system.control_update[self.updater].kept()
        else:
            self.system.control_update[self.updater].broken()

    def spend_failure(self) -> None:
        self.system.log.failures += 1

    def cut(self) -> None:
        """The process is gone; what it has sent to the store is under way."""
        if self.asked == WRITE and self.late == 0:
            self.send_late()
        self.system.log.end(self.update, DOUBTED)
        self.rest()
        self.system.control_update[self.updater].restart()

    def rest(self) -> None:
        self.asked = NOTHING
        self.version = 0
        self.value = NEITHER
        self.update = 0
        self.before = 0

    # port `log` of the machine

    def read(self) -> None:
        self.asked = READ

    def check(self, version: int) -> None:
        self.asked = CHECK
        self.version = version

    def write(self, version: int) -> None:
        self.asked = WRITE
        self.version = version

    def confirm(self, version: int) -> None:
        self.asked = CONFIRM
        self.version = version

    def forget(self, version: int) -> None:
        assert version < self.system.log.newest, "the newest version is never removed"
        self.asked = FORGET
        self.version = version

    def done(self, version: int) -> None:
        assert self.system.log.counted[self.update] == version, "what was done has its version"
        assert version > self.before, "an update comes behind what was there before it"
        self.system.log.end(self.update, DONE)
        self.rest()

    def in_doubt(self, version: int) -> None:
        self.system.log.end(self.update, DOUBTED)
        self.rest()

    def refuse(self) -> None:
        self.fail()

    def fail(self) -> None:
        assert self.system.log.counted[self.update] == 0, (
            "what was told to have failed has no effect"
        )
        self.system.log.end(self.update, FAILED)
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

    @always("what is in force has passed the check")
    def passes_the_check(self) -> bool:
        return self.log.holds[self.log.newest] != BOTH

    @sometimes("an update follows another that was faster")
    def follows(self) -> bool:
        return any(
            self.client[u].asked == WRITE and self.client[u].version > self.client[u].before + 1
            for u in range(self.updaters)
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
