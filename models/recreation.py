"""One coordinator after the other: where calls go while the old one closes and its successor is made.

Decides that a reset replaces the coordinator, that its successor is made only once the old one is
closed or has been given up, that calls of the job wait meanwhile and reach the successor in their
order, that they never reach another one, and none that has raised, until the reset that follows.
Each coordinator has a number, its generation::

    job        reset   a  b                                   c
    old (1)    fenced  [close, elsewhere]
    new (2)            a, b deferred       made, restored  a  b  c

Leaves to the shell what making, restoring and closing mean, and how long a close may take. Source:
Apache Flink's RecreateOnResetOperatorCoordinator.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

FRESH, CAUGHT_UP, DEFERRED, MAKING = "fresh", "caught_up", "deferred", "making"
BROKEN, CLOSED = "broken", "closed"


class InnerPort(Port):
    """The coordinators that are asked; `generation` says of which."""

    def restore(self, generation: int) -> None:
        """Restore the first coordinator, which has handled no call yet."""

    def start(self, generation: int) -> None: ...
    @fallible("close_failed, close_late", succeeds="closed", within="close_timeout_s")
    def replace(self, generation: int) -> None:
        """Fence and close the coordinator."""

    def fail_job(self, generation: int) -> None:
        """Fail the job: the old coordinator may still hold what its successor needs."""

    @fallible("unmade", succeeds="made", in_event=True)
    def make(self, generation: int, is_started: bool) -> None:
        """Create, restore and, if the job has begun, start a coordinator."""

    @fallible("raised", succeeds="passed", in_event=True)
    def pass_on(self, generation: int, call: Opaque) -> None:
        """Make this call; `raised` if the coordinator has failed the job by it."""

    def drop(self, call: Opaque) -> None:
        """No coordinator can take this call: its caller must be told."""

    def close(self, generation: int) -> None:
        """The job is over: fence and close the coordinator."""


class Recreation(Machine):
    """The coordinators of one operator, which follow each other."""

    STATES = (FRESH, CAUGHT_UP, DEFERRED, MAKING, BROKEN, CLOSED)
    INITIAL = FRESH
    TERMINAL = (CLOSED,)

    system: Recreations
    inner: InnerPort = output(InnerPort)

    generation: int = Int("generations")
    """The coordinator that calls are meant for; counted from 0."""
    closing: int = Int("generations")
    """The coordinator whose close is awaited."""
    is_started: bool = Bool()
    deferred: Fifo[Opaque] = Channel("call", "calls")

    start: Trigger
    reset: Trigger
    call: Trigger
    closed: Trigger
    close_failed: Trigger
    close_late: Trigger
    made: Trigger
    unmade: Trigger
    passed: Trigger
    raised: Trigger
    close: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("start",           (FRESH, CAUGHT_UP),                   CAUGHT_UP, None,
            "note_start, start_inner",    "the job begins"),
        Row("start",           (DEFERRED, BROKEN),                   STAY,      None,
            "note_start",                 "the successor starts once it is made"),

        Row("reset",           FRESH,                                CAUGHT_UP, None,
            "restore_first",              "the coordinator is fresh and has nothing to take back"),
        Row("reset",           (CAUGHT_UP, BROKEN),                  DEFERRED,  None,
            "replace_inner",              "the coordinator cannot take back what it did"),
        Row("reset",           DEFERRED,                             STAY,      None,
            "drop_deferred, skip_one",    "the successor is not made yet; another one replaces it"),

        Row("call",            (FRESH, CAUGHT_UP),                   CAUGHT_UP, None,
            "pass_it_on",                 "the coordinator is there"),
        Row("call",            DEFERRED,                             STAY,      None,
            "defer",                      "the call waits for the successor"),
        Row("call",            (BROKEN, CLOSED),                     STAY,      None,
            "drop_it",                    "there is no coordinator to hear it"),

        Row("closed",          DEFERRED,                             MAKING,    "is_awaited",
            "make_next",                  "the old coordinator is closed"),
        Ignore("closed",       DEFERRED,                                        "not is_awaited",
                                          "the close was given up: it took too long"),
        Ignore("closed",       (CAUGHT_UP, MAKING, BROKEN, CLOSED),             None,
                                          "the close was given up: it took too long"),

        Row("close_failed",    DEFERRED,                             MAKING,    "is_awaited",
            "fail_for_it, make_next",     "the failed close fails the job; the successor is made"),
        Ignore("close_failed", DEFERRED,                                        "not is_awaited",
                                          "the close was given up: it took too long"),
        Ignore("close_failed", (CAUGHT_UP, MAKING, BROKEN, CLOSED),             None,
                                          "the close was given up: it took too long"),

        Row("close_late",      DEFERRED,                             MAKING,    "is_awaited",
            "fail_for_it, make_next",     "the close may never end; the successor is made"),
        Ignore("close_late",   DEFERRED,                                        "not is_awaited",
                                          "the close has ended in time"),
        Ignore("close_late",   (CAUGHT_UP, MAKING, BROKEN, CLOSED),             None,
                                          "the close has ended in time"),

        Row("made",            MAKING,                               CAUGHT_UP, "has_deferred",
            "pass_next",                  "the successor is restored and gets the deferred calls"),
        Row("made",            MAKING,                               CAUGHT_UP, "not has_deferred",
            None,                         "the successor is restored"),
        Row("unmade",          MAKING,                               BROKEN,    None,
            "drop_deferred",              "the successor could not be created, restored or started"),

        Row("passed",          CAUGHT_UP,                            STAY,      "has_deferred",
            "pass_next",                  "the next deferred call is due"),
        Ignore("passed",       CAUGHT_UP,                                       "not has_deferred",
                                          "no call waits"),
        Row("raised",          CAUGHT_UP,                            BROKEN,    None,
            "drop_deferred",              "it has failed the job, and is replaced at the reset"),

        Row("close",           (FRESH, CAUGHT_UP, DEFERRED, BROKEN), CLOSED,    None,
            "drop_deferred, close_inner", "the job is over"),
    )
    # fmt: on

    def is_awaited(self, generation: int) -> bool:
        return generation == self.closing

    def has_deferred(self) -> bool:
        return not self.deferred.empty()

    def note_start(self) -> None:
        self.is_started = True

    def start_inner(self) -> None:
        self.inner.start(self.generation)

    def restore_first(self) -> None:
        self.inner.restore(self.generation)

    def replace_inner(self) -> None:
        self.closing = self.generation
        self.generation += 1
        self.inner.replace(self.closing)

    def skip_one(self) -> None:
        self.generation += 1

    def drop_deferred(self) -> None:
        for call in self.deferred.take_all():
            self.inner.drop(call)

    def pass_it_on(self, call: Opaque) -> None:
        self.inner.pass_on(self.generation, call)

    def defer(self, call: Opaque) -> None:
        self.deferred.push(call)

    def drop_it(self, call: Opaque) -> None:
        self.inner.drop(call)

    def fail_for_it(self, generation: int) -> None:
        self.inner.fail_job(generation)

    def make_next(self) -> None:
        self.inner.make(self.generation, self.is_started)

    def pass_next(self) -> None:
        self.inner.pass_on(self.generation, self.deferred.pop())

    def close_inner(self) -> None:
        self.inner.close(self.generation)


class Recreations(System):
    """The coordinators of one operator."""

    recreation: Recreation = machines(Recreation)
