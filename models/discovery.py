"""The looks for new files of a source that has a queue of hints: listings, and looks between them.

Decides when all files are listed, when a queue is asked for hints, when the files that hints name
are looked at, and when the queue is told that they are done with. The listing is the truth: a hint
that is lost, doubled, late or of another source changes nothing but how soon a file is found. So a
hint is done with once its file is known to the enumerator, and not only once a checkpoint holds it:
an enumerator that begins from a checkpoint begins with a listing::

    start | hear | list           hear: a | look: a | done | hear | ... | list
    failover to a checkpoint without a    | start | hear | list: a

One thing is done at a time, since a look needs what the one before has found. A queue that fails is
left alone for longer each time, and files are found by listings meanwhile.

Leaves to the shell what hints are, how long a rest is, and what is a file of the source; to the
enumeration which files count, and which are known. Runs on the thread of the event queue. Source:
none.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
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

NEW, RESTING, LISTING = "new", "resting", "listing"
HEARING, LOOKING, CONFIRMING = "hearing", "looking", "confirming"


class LookPort(Port):
    """The source, the queue of hints, and two timers."""

    def list_all(self) -> None:
        """Look at all files of the source."""

    @fallible("failed", succeeds="heard, silent")
    def hear(self) -> None:
        """Wait some seconds for hints; the first time, open the queue."""

    def look(self) -> None:
        """Look at the files that hints name, and at those that may still be being written."""

    def take_found(self) -> None:
        """Let the enumerator know what the look has found."""

    @fallible("failed", succeeds="confirmed")
    def confirm(self) -> None:
        """Tell the queue that the hints are done with."""

    def wait(self) -> None:
        """Let the time to the next listing begin."""

    def rest(self, failures: int) -> None:
        """Let the time begin in which the queue is left alone; `failures`: of it, in a row."""


class Discovery(Machine):
    """The looks of one enumerator."""

    STATES = (NEW, RESTING, LISTING, HEARING, LOOKING, CONFIRMING)
    INITIAL = NEW

    system: Discoveries
    source: LookPort = output(LookPort)

    is_due: bool = Bool()
    """All files are to be listed as soon as nothing else is under way."""
    is_alone: bool = Bool()
    """The queue is left alone."""
    failures: int = Int("slowest")
    """Of the queue, in a row; from `slowest` on they count no more."""

    start: Trigger
    heard: Trigger
    silent: Trigger
    failed: Trigger
    looked: Trigger
    confirmed: Trigger
    listed: Trigger
    due: Trigger
    rested: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",     NEW,        HEARING,    None,
            "note_due, ask_hear",              "no file comes between the listing and the queue's opening"),

        Row("heard",     HEARING,    LOOKING,    None,
            "note_answer, ask_look",           "a hint says where to look, and not what is there"),

        Row("silent",    HEARING,    LISTING,    "is_listing_due",
            "note_answer, ask_list",           "the time is over"),
        Row("silent",    HEARING,    LOOKING,    "not is_listing_due and has_unsettled",
            "note_answer, ask_look",           "a file whose hint came early may be complete now"),
        Row("silent",    HEARING,    STAY,       "not is_listing_due and not has_unsettled",
            "note_answer, ask_hear",           "nothing was said"),

        Row("looked",    LOOKING,    CONFIRMING, None,
            "take_found, ask_confirm",         "the enumerator has the files before the queue forgets them"),

        Row("confirmed", CONFIRMING, LISTING,    "is_listing_due",
            "ask_list",                        "the time is over"),
        Row("confirmed", CONFIRMING, HEARING,    "not is_listing_due",
            "ask_hear",                        "there may be more hints"),

        Row("failed",    (HEARING, CONFIRMING), LISTING, "is_listing_due",
            "leave_alone, ask_list",           "files are found without the queue"),
        Row("failed",    (HEARING, CONFIRMING), RESTING, "not is_listing_due",
            "leave_alone",                     "the queue may be there again later"),

        Row("listed",    LISTING,    HEARING,    "may_hear",
            "take_found, ask_wait, ask_hear",  "hints are heard until the next listing"),
        Row("listed",    LISTING,    RESTING,    "not may_hear",
            "take_found, ask_wait",            "the queue is left alone"),

        Row("due",       RESTING,    LISTING,    None,
            "ask_list",                        "what no hint has named is found"),
        Row("due",       (HEARING, LOOKING, CONFIRMING), STAY, None,
            "note_due",                        "one thing at a time"),

        Row("rested",    RESTING,    HEARING,    None,
            "end_rest, ask_hear",              "the queue is asked again"),
        Row("rested",    LISTING,    STAY,       None,
            "end_rest",                        "the queue is asked again after the listing"),
    )
    # fmt: on

    def is_listing_due(self) -> bool:
        return self.is_due

    def has_unsettled(self, unsettled: bool) -> bool:
        return unsettled

    def may_hear(self) -> bool:
        return not self.is_alone

    def note_due(self) -> None:
        self.is_due = True

    def note_answer(self) -> None:
        self.failures = 0

    def ask_hear(self) -> None:
        self.source.hear()

    def ask_wait(self) -> None:
        self.source.wait()

    def ask_look(self) -> None:
        self.source.look()

    def ask_list(self) -> None:
        self.is_due = False
        self.source.list_all()

    def ask_confirm(self) -> None:
        self.source.confirm()

    def take_found(self) -> None:
        self.source.take_found()

    def leave_alone(self) -> None:
        self.is_alone = True
        if self.failures < self.system.slowest:
            self.failures += 1
        self.source.rest(self.failures)

    def end_rest(self) -> None:
        self.is_alone = False


class Discoveries(System):
    """The looks of one enumerator; `slowest`: the failures after which rests get no longer."""

    CONSTANTS: ClassVar[dict[str, int]] = {"slowest": 8}

    slowest: int

    discovery: Discovery = machines(Discovery)
