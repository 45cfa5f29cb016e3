"""The surroundings of the looks for new files: the source and its files, the queue of hints, the
looks themselves, and the enumerator with its checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.discovery import NEW, Discovery

if TYPE_CHECKING:
    from epochgate.models.closed.discovering import FoundFiles

NOTHING, HEAR, LOOK, LIST, CONFIRM = range(5)
WORK = "NOTHING, HEAR, LOOK, LIST, CONFIRM"


class RenewedDiscovery(Discovery):
    """The machine of each enumerator, renewed with it."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *Discovery.ROWS,
        Row("replaced", ANY, NEW, None, "forget", "the next enumerator knows nothing of its looks"),
    )
    # fmt: on

    def forget(self) -> None:
        self.is_due = False
        self.is_alone = False
        self.failures = 0


class HintedFile(Environment):
    """A file that comes once, and its hints: with the queue, given out, or done with."""

    INDEX = ("file",)
    STATES = ("up",)
    INITIAL = "up"

    system: FoundFiles
    file: int

    is_there: bool = Bool()
    is_said: bool = Bool()
    """The queue has a hint of the file that it may give out."""
    is_given: bool = Bool()
    """A hint of it was given out, and is not done with."""
    is_told: bool = Bool()
    """The answer that is being dealt with has the hint."""
    is_seen: bool = Bool()
    """The look that is under way sees the file."""
    is_known: bool = Bool()
    """The enumerator knows it."""
    is_stored: bool = Bool()
    """The newest completed checkpoint holds it."""
    taken: int = Int(2)
    """How often its rows were taken, in the history that counts."""

    arrive: Trigger
    arrive_unsaid: Trigger
    repeat: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("arrive",        "up", STAY, "is_missing",
            "come, say",            "a file comes, with a hint"),
        Row("arrive_unsaid", "up", STAY, "is_missing and may_lose",
            "come, lose",           "a file comes, and its hint is lost"),
        Row("repeat",        "up", STAY, "may_repeat",
            "say, double",          "a hint comes once more"),
    )
    # fmt: on

    def is_missing(self) -> bool:
        return not self.is_there

    def may_lose(self) -> bool:
        return self.system.source.losses < self.system.losses

    def may_repeat(self) -> bool:
        return (
            self.is_there and not self.is_said and self.system.source.doubles < self.system.doubles
        )

    def come(self) -> None:
        self.is_there = True

    def say(self) -> None:
        self.is_said = True

    def lose(self) -> None:
        self.system.source.losses += 1

    def double(self) -> None:
        self.system.source.doubles += 1


class HintedSource(Environment):
    """The queue of hints, and behind the port `source` of the machine what looks at files; who is
    told that a hint is done with has to know its file.
    """

    STATES = ("up",)
    INITIAL = "up"

    system: FoundFiles

    asked: int = Int(CONFIRM, names=WORK)
    """What the machine has asked for, and waits for."""
    is_waiting: bool = Bool()
    """The time to the next listing runs."""
    is_resting: bool = Bool()
    """The time runs in which the queue is left alone."""
    is_unsettled: bool = Bool()
    """A file was still being written when it was looked at."""
    has_hinted: bool = Bool()
    """A file was found by its hint."""
    has_heard: bool = Bool()
    """There was an answer with hints, which are to be looked at."""
    in_a_row: int = Int("slowest")
    """The failures of the queue since it has answered last."""
    losses: int = Int("losses")
    doubles: int = Int("doubles")
    failures: int = Int("F")

    begin: Trigger
    give_out: Trigger
    name_others: Trigger
    be_silent: Trigger
    unsettle: Trigger
    refuse: Trigger
    lose_answer: Trigger
    return_hints: Trigger
    end_look: Trigger
    end_listing: Trigger
    forget_hints: Trigger
    end_wait: Trigger
    end_rest: Trigger
    store: Trigger
    go_back: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",         "up", STAY, "is_new",
            "start_looks",                    "an enumerator starts"),
        Row("give_out",      "up", STAY, "is_asked and has_said",
            "give_hints, tell_heard",         "there are hints"),
        Row("name_others",   "up", STAY, "is_asked and may_double",
            "count_double, tell_heard",       "a hint names no file of the source"),
        Row("be_silent",     "up", STAY, "is_asked",
            "tell_silent",                    "no hint has come yet"),
        Row("unsettle",      "up", STAY, "is_asked and may_double and not is_written",
            "count_double, note_unsettled",   "the file of a hint was still being written"),
        Row("refuse",        "up", STAY, "may_refuse",
            "tell_failed",                    "the queue fails, hangs, or is not to be asked"),
        Row("lose_answer",   "up", STAY, "is_asked and has_said",
            "give_hints, tell_failed",        "the queue has given hints out, and its answer is lost"),
        Row("return_hints",  "up", STAY, "may_return",
            "take_hints_back",                "hints that were not done with are given out again"),
        Row("end_look",      "up", STAY, "is_looking",
            "see_given, tell_looked",         "the named files were looked at"),
        Row("end_listing",   "up", STAY, "is_listing",
            "tell_listed",                    "all files were looked at"),
        Row("forget_hints",  "up", STAY, "is_confirming",
            "drop_given, tell_confirmed",     "the queue gives these hints out no more"),
        Row("end_wait",      "up", STAY, "has_wait",
            "stop_wait, tell_due",            "the time is over"),
        Row("end_rest",      "up", STAY, "has_rest",
            "stop_rest, tell_rested",         "the time is over"),
        Row("store",         "up", STAY, None,
            "keep_known",                     "a checkpoint is completed"),
        Row("go_back",       "up", STAY, "may_fail",
            "count_failure, restore",         "another enumerator begins from the newest checkpoint"),
    )
    # fmt: on

    def is_new(self) -> bool:
        return self.system.discovery.state == NEW

    def may_double(self) -> bool:
        return self.doubles < self.system.doubles

    def is_asked(self) -> bool:
        return self.asked == HEAR

    def has_said(self) -> bool:
        return any(self.system.file[f].is_said for f in range(self.system.files))

    def is_written(self) -> bool:
        return self.is_unsettled

    def may_refuse(self) -> bool:
        return self.asked == HEAR or self.asked == CONFIRM

    def may_return(self) -> bool:
        return any(
            self.system.file[f].is_given and not self.system.file[f].is_told
            for f in range(self.system.files)
        )

    def is_looking(self) -> bool:
        return self.asked == LOOK

    def is_listing(self) -> bool:
        return self.asked == LIST

    def is_confirming(self) -> bool:
        return self.asked == CONFIRM

    def has_wait(self) -> bool:
        return self.is_waiting

    def has_rest(self) -> bool:
        return self.is_resting

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def start_looks(self) -> None:
        self.system.discovery.start()

    def count_double(self) -> None:
        self.doubles += 1

    def count_failure(self) -> None:
        self.failures += 1

    def give_hints(self) -> None:
        for f in range(self.system.files):
            if self.system.file[f].is_said:
                self.system.file[f].is_said = False
                self.system.file[f].is_given = True
                self.system.file[f].is_told = True

    def take_hints_back(self) -> None:
        for f in range(self.system.files):
            if self.system.file[f].is_given and not self.system.file[f].is_told:
                self.system.file[f].is_given = False
                self.system.file[f].is_said = True

    def tell_heard(self) -> None:
        self.asked = NOTHING
        self.in_a_row = 0
        self.has_heard = True
        self.system.discovery.heard()

    def tell_silent(self) -> None:
        self.asked = NOTHING
        self.in_a_row = 0
        self.system.discovery.silent(self.is_unsettled)

    def note_unsettled(self) -> None:
        self.is_unsettled = True

    def tell_failed(self) -> None:
        self.asked = NOTHING
        if self.in_a_row < self.system.slowest:
            self.in_a_row += 1
        self.forget_answer()
        self.system.discovery.failed()

    def see_given(self) -> None:
        self.is_unsettled = False
        self.has_heard = False
        for f in range(self.system.files):
            self.system.file[f].is_seen = self.system.file[f].is_told
            if self.system.file[f].is_seen and not self.system.file[f].is_known:
                self.has_hinted = True

    def tell_looked(self) -> None:
        self.asked = NOTHING
        self.system.discovery.looked()

    def tell_listed(self) -> None:
        self.asked = NOTHING
        self.system.discovery.listed()

    def drop_given(self) -> None:
        for f in range(self.system.files):
            if self.system.file[f].is_told:
                self.system.file[f].is_given = False
        self.forget_answer()

    def forget_answer(self) -> None:
        for f in range(self.system.files):
            self.system.file[f].is_told = False

    def tell_confirmed(self) -> None:
        self.asked = NOTHING
        self.system.discovery.confirmed()

    def stop_wait(self) -> None:
        self.is_waiting = False

    def tell_due(self) -> None:
        self.system.discovery.due()

    def stop_rest(self) -> None:
        self.is_resting = False

    def tell_rested(self) -> None:
        self.system.discovery.rested()

    def keep_known(self) -> None:
        for f in range(self.system.files):
            self.system.file[f].is_stored = self.system.file[f].is_known

    def restore(self) -> None:
        self.system.discovery.replaced()
        self.asked = NOTHING
        self.is_waiting = False
        self.is_resting = False
        self.in_a_row = 0
        self.has_heard = False
        self.is_unsettled = False
        self.forget_answer()
        for f in range(self.system.files):
            self.system.file[f].is_seen = False
            self.system.file[f].is_known = self.system.file[f].is_stored
            if not self.system.file[f].is_stored:
                self.system.file[f].taken = 0

    def ask(self, work: int) -> None:
        assert self.asked == NOTHING, "T2: one thing is done at a time"
        self.asked = work

    # The port of the machine.

    def list_all(self) -> None:
        self.ask(LIST)
        self.is_unsettled = False
        for f in range(self.system.files):
            self.system.file[f].is_seen = self.system.file[f].is_there

    def hear(self) -> None:
        self.ask(HEAR)

    def look(self) -> None:
        self.ask(LOOK)
        assert self.has_heard or self.is_unsettled, "there is something to look at"

    def take_found(self) -> None:
        for f in range(self.system.files):
            if self.system.file[f].is_seen and not self.system.file[f].is_known:
                self.take(f)
            self.system.file[f].is_seen = False

    def take(self, file: int) -> None:
        self.system.file[file].is_known = True
        self.system.file[file].taken += 1

    def confirm(self) -> None:
        self.ask(CONFIRM)
        for f in range(self.system.files):
            assert not self.system.file[f].is_told or self.system.file[f].is_known, (
                "T4: a hint is done with once its file is known"
            )

    def wait(self) -> None:
        assert not self.is_waiting, "the time to the next listing runs once"
        for f in range(self.system.files):
            assert not self.system.file[f].is_seen, "what a listing has found is taken before"
        self.is_waiting = True

    def rest(self, failures: int) -> None:
        assert failures == self.in_a_row, "the longer a queue fails, the longer it is left alone"
        assert not self.is_resting, "it is left alone once at a time"
        assert self.asked == NOTHING, "it is left alone before anything else begins"
        self.is_resting = True
