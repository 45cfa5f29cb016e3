"""Transactions that are committed: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    implements,
    sometimes,
)

WORKING, PREPARED, COMMITTED, ABORTED, FAILED = (
    "working",
    "prepared",
    "committed",
    "aborted",
    "failed",
)
INIT, HIDDEN, DECIDING, DECIDED, DONE = "init", "hidden", "deciding", "decided", "done"
MEMBERS: dict[str, str] = {"manager": "managers"}


class Member(Environment):
    """A resource manager that sees what all others are at."""

    INDEX = ("manager",)
    STATES = (WORKING, PREPARED, COMMITTED, ABORTED)
    INITIAL = WORKING
    TERMINAL = (COMMITTED, ABORTED)

    system: Agreement

    prepare: Trigger
    commit: Trigger
    abort: Trigger

    ROWS = (
        Row("prepare", WORKING, PREPARED, None, None, "its work is done"),
        Row("commit", PREPARED, COMMITTED, "may_commit", None, "all are ready"),
        Row("abort", (WORKING, PREPARED), ABORTED, "may_abort", None, "none has committed"),
    )

    def may_commit(self) -> bool:
        return all(
            self.system.member[i].state == PREPARED or self.system.member[i].state == COMMITTED
            for i in range(self.system.managers)
        )

    def may_abort(self) -> bool:
        return all(self.system.member[i].state != COMMITTED for i in range(self.system.managers))


class Agreement(ClosedSystem):
    """TCommit: managers agree, and nothing says how."""

    INDEX_SETS: ClassVar[dict[str, str]] = MEMBERS
    CONSTANTS: ClassVar[dict[str, int]] = {"managers": 3}
    STEPS = (Step("member", "prepare"), Step("member", "commit"), Step("member", "abort"))

    managers: int
    member: list[Member] = machines(Member)

    @always("none commits while another aborts")
    def is_consistent(self) -> bool:
        return all(
            self.member[i].state != ABORTED or self.member[j].state != COMMITTED
            for i in range(self.managers)
            for j in range(self.managers)
        )


class Participant(Environment):
    """A resource manager that is told by messages; `has_sent` is that its message is there."""

    INDEX = ("manager",)
    STATES = (WORKING, PREPARED, COMMITTED, ABORTED)
    INITIAL = WORKING

    system: TwoPhase

    has_sent: bool = Bool()
    is_heard: bool = Bool()

    prepare: Trigger
    choose: Trigger
    be_heard: Trigger
    hear_commit: Trigger
    hear_abort: Trigger

    ROWS = (
        Row("prepare", WORKING, PREPARED, None, "send", "its work is done"),
        Row("choose", WORKING, ABORTED, None, None, "it does not want to"),
        Row("be_heard", ANY, STAY, "may_be_heard", "arrive", "its message arrives, perhaps again"),
        Row("hear_commit", ANY, COMMITTED, "is_committed", None, "it is told to commit"),
        Row("hear_abort", ANY, ABORTED, "is_aborted", None, "it is told to abort"),
    )

    def may_be_heard(self) -> bool:
        return self.has_sent and self.system.decider.state == INIT

    def is_committed(self) -> bool:
        return self.system.decider.state == COMMITTED

    def is_aborted(self) -> bool:
        return self.system.decider.state == ABORTED

    def send(self) -> None:
        self.has_sent = True

    def arrive(self) -> None:
        self.is_heard = True


class Decider(Environment):
    """The transaction manager; what it has decided is the message that all can read."""

    STATES = (INIT, COMMITTED, ABORTED)
    INITIAL = INIT
    TERMINAL = (COMMITTED, ABORTED)

    system: TwoPhase

    commit: Trigger
    abort: Trigger

    ROWS = (
        Row("commit", INIT, COMMITTED, "has_heard_all", None, "all are prepared"),
        Row("abort", INIT, ABORTED, None, None, "it has waited long enough"),
    )

    def has_heard_all(self) -> bool:
        return all(self.system.member[i].is_heard for i in range(self.system.managers))


class TwoPhase(ClosedSystem):
    """TwoPhase: a transaction manager collects who is prepared, and decides."""

    INDEX_SETS: ClassVar[dict[str, str]] = MEMBERS
    CONSTANTS: ClassVar[dict[str, int]] = {"managers": 3}
    STEPS = (
        Step("member", "prepare"),
        Step("member", "choose"),
        Step("member", "be_heard"),
        Step("member", "hear_commit"),
        Step("member", "hear_abort"),
        Step("decider", "commit"),
        Step("decider", "abort"),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        "member.hear_commit from working": "who works has not sent, and all were heard",
        "member.hear_commit from aborted": "who aborts before the decision is not heard",
        "member.hear_abort from committed": "one is decided",
        "member.be_heard from working": "who works has not sent",
        "member.be_heard from committed": "it has been heard, and the decision stands",
        "member.be_heard from aborted": "who aborts by itself has not sent",
    }

    managers: int
    member: list[Participant] = machines(Participant)
    decider: Decider = machines(Decider)

    @always("none commits while another aborts")
    def is_consistent(self) -> bool:
        return all(
            self.member[i].state != ABORTED or self.member[j].state != COMMITTED
            for i in range(self.managers)
            for j in range(self.managers)
        )

    @sometimes("all commit")
    def is_committed(self) -> bool:
        return all(self.member[i].state == COMMITTED for i in range(self.managers))


class RefinedTwoPhase(TwoPhase):
    """TwoPhase, beside what it is for."""

    @implements("they do as where nothing says how they agree", Agreement, managers="managers")
    def as_agreement(self, specification: Agreement) -> None:
        for mine, theirs in zip(self.member, specification.member, strict=True):
            theirs.state = mine.state


class Fallible(Environment):
    """A resource manager, of which one may fail; a loop that it leaves once it is decided."""

    INDEX = ("manager",)
    STATES = (WORKING, PREPARED, COMMITTED, ABORTED, FAILED)
    INITIAL = WORKING
    TERMINAL = (COMMITTED, ABORTED, FAILED)

    system: Backed

    has_left: bool = Bool()

    prepare: Trigger
    commit: Trigger
    refuse: Trigger
    abort: Trigger
    fail: Trigger
    wait: Trigger
    leave: Trigger

    ROWS = (
        Row("prepare", WORKING, PREPARED, None, None, "its work is done"),
        Row("commit", (WORKING, PREPARED), COMMITTED, "is_commit", None, "it is told to"),
        Row("refuse", WORKING, ABORTED, None, None, "it does not want to"),
        Row("abort", (WORKING, PREPARED), ABORTED, "is_abort", None, "it is told to"),
        Row("fail", (WORKING, PREPARED), FAILED, "may_fail", None, "it fails, the first to"),
        Row("wait", (WORKING, PREPARED), STAY, "not may_fail", None, "it might have failed"),
        Row("leave", (COMMITTED, ABORTED, FAILED), STAY, "is_there", "go", "it is over"),
    )

    def is_commit(self) -> bool:
        return self.system.word.state == COMMITTED

    def is_abort(self) -> bool:
        return self.system.word.state == ABORTED

    def may_fail(self) -> bool:
        return all(self.system.member[i].state != FAILED for i in range(self.system.managers))

    def is_there(self) -> bool:
        return not self.has_left

    def go(self) -> None:
        self.has_left = True


class Word(Environment):
    """The words of the transaction manager, said or hidden by failing."""

    STATES = (INIT, COMMITTED, ABORTED, HIDDEN)
    INITIAL = INIT

    say_commit: Trigger
    say_abort: Trigger
    hide: Trigger

    ROWS = (
        Row("say_commit", (INIT, HIDDEN), COMMITTED, None, None, "it is decided"),
        Row("say_abort", (INIT, HIDDEN), ABORTED, None, None, "it is decided"),
        Row("hide", (COMMITTED, ABORTED), HIDDEN, None, None, "who said it has failed"),
    )


class Manager(Environment):
    """The transaction manager: decides, says so, and fails."""

    STATES = (INIT, COMMITTED, ABORTED, DECIDED, DONE)
    INITIAL = INIT
    TERMINAL = (DONE,)

    system: Backed

    commit: Trigger
    abort: Trigger
    say: Trigger
    fail: Trigger

    ROWS = (
        Row("commit", INIT, COMMITTED, "may_commit", None, "all are prepared, or one committed"),
        Row("abort", INIT, ABORTED, "may_abort", None, "one has aborted or failed"),
        Row("say", COMMITTED, DECIDED, None, "tell_commit", "it says what it has decided"),
        Row("say", ABORTED, DECIDED, None, "tell_abort", "it says what it has decided"),
        Row("fail", DECIDED, DONE, None, "hide", "it fails"),
    )

    def may_commit(self) -> bool:
        return all(
            self.system.member[i].state == PREPARED for i in range(self.system.managers)
        ) or any(self.system.member[i].state == COMMITTED for i in range(self.system.managers))

    def may_abort(self) -> bool:
        return any(
            self.system.member[i].state == ABORTED or self.system.member[i].state == FAILED
            for i in range(self.system.managers)
        ) and all(self.system.member[i].state != COMMITTED for i in range(self.system.managers))

    def tell_commit(self) -> None:
        self.system.word.say_commit()

    def tell_abort(self) -> None:
        self.system.word.say_abort()

    def hide(self) -> None:
        self.system.word.hide()


class Backup(Environment):
    """The backup manager: decides once the transaction manager has failed."""

    STATES = (INIT, COMMITTED, ABORTED, DONE)
    INITIAL = INIT
    TERMINAL = (DONE,)

    system: Backed

    commit: Trigger
    abort: Trigger
    say: Trigger

    ROWS = (
        Row("commit", INIT, COMMITTED, "may_commit", None, "all are prepared, or one committed"),
        Row("abort", INIT, ABORTED, "may_abort", None, "one has aborted or failed"),
        Row("say", COMMITTED, DONE, None, "tell_commit", "it says what it has decided"),
        Row("say", ABORTED, DONE, None, "tell_abort", "it says what it has decided"),
    )

    def may_commit(self) -> bool:
        return self.system.word.state == HIDDEN and self.system.manager.may_commit()

    def may_abort(self) -> bool:
        return self.system.word.state == HIDDEN and self.system.manager.may_abort()

    def tell_commit(self) -> None:
        self.system.word.say_commit()

    def tell_abort(self) -> None:
        self.system.word.say_abort()


class Ending(Environment):
    """Goes round where all has ended, as TLC lets a program do."""

    STATES, INITIAL = ("watching",), "watching"

    system: Backed

    stutter: Trigger

    ROWS = (Row("stutter", "watching", STAY, "is_over", None, "all has ended"),)

    def is_over(self) -> bool:
        return (
            all(self.system.member[i].has_left for i in range(self.system.managers))
            and self.system.manager.state == DONE
            and self.system.backup.state == DONE
        )


class Backed(ClosedSystem):
    """2PCwithBTM: a backup takes over from a transaction manager that fails."""

    INDEX_SETS: ClassVar[dict[str, str]] = MEMBERS
    CONSTANTS: ClassVar[dict[str, int]] = {"managers": 3}
    STEPS = (
        Step("member", "prepare"),
        Step("member", "commit"),
        Step("member", "refuse"),
        Step("member", "abort"),
        Step("member", "fail"),
        Step("member", "wait"),
        Step("member", "leave"),
        Step("manager", "commit"),
        Step("manager", "abort"),
        Step("manager", "say"),
        Step("manager", "fail"),
        Step("backup", "commit"),
        Step("backup", "abort"),
        Step("backup", "say"),
        Step("ending", "stutter"),
    )

    managers: int
    member: list[Fallible] = machines(Fallible)
    word: Word = machines(Word)
    manager: Manager = machines(Manager)
    backup: Backup = machines(Backup)
    ending: Ending = machines(Ending)

    @always("none commits while another aborts")
    def is_consistent(self) -> bool:
        return all(
            self.member[i].state != ABORTED or self.member[j].state != COMMITTED
            for i in range(self.managers)
            for j in range(self.managers)
        )
