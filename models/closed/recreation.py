"""A closed job around coordinators that follow each other: each hears its own generation's calls.

The job resets its coordinator, and the job and its clients call it, at every moment; closes end in
time, fail, or come too late; a successor may fail to be made, and a call may raise. The claims are
that a call reaches the coordinator of the generation that it was meant for, all of them in their
order, that a successor is made only when no close of an earlier one is awaited, and that after the
last reset there is a coordinator.
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
from epochgate.models.recreation import (
    BROKEN,
    CAUGHT_UP,
    CLOSED,
    DEFERRED,
    FRESH,
    MAKING,
    Recreation,
)


class Inners(Environment):
    """The coordinators, their closes, and the job that calls them: port `inner`."""

    STATES = ("up",)
    INITIAL = "up"

    system: RecreatedJob

    resets: int = Int("R")
    calls: int = Int("E")
    """Calls made; each is known by its number."""
    heard: int = Int("E")
    """The last call that a coordinator has heard."""
    meant_for: list[int] = Array(Int("R"), "E")
    """For each call, which generation was current when it was made."""
    is_closing: list[bool] = Array(Bool(), "R")
    has_timer: list[bool] = Array(Bool(), "R")
    """The timeout of a close is not over; the timer of a close that has ended is not stopped."""
    is_awaited: bool = Bool()
    """The job waits for the close of the newest one that was replaced."""
    failures: int = Int("F")
    is_to_fail: bool = Bool()
    """The next one cannot be made."""
    is_to_stumble: bool = Bool()
    """The next one is made, and cannot be restored or started."""
    is_made: bool = Bool(start=True)
    """There is a present coordinator, if only to be closed."""
    is_to_raise: bool = Bool()
    """The next call that a coordinator hears raises."""
    has_begun: bool = Bool()
    """The job has begun."""
    is_started: bool = Bool()
    """The present coordinator was told to start."""
    is_broken: bool = Bool()
    """There is no present coordinator: it could not be made, or has failed the job."""
    raised: int = Int("made")
    """The last coordinator of which a call has raised, counted from 1."""
    is_over: bool = Bool()
    """It was told that the job is over."""
    is_open: list[bool] = Array(Bool(), "E")
    """Calls that were neither heard nor dropped."""
    is_asked: list[bool] = Array(Bool(), "E")
    """Of these, the calls of clients: a client alone is told of an error."""
    is_restore_due: bool = Bool()
    """The first coordinator is to be restored in this step; never so between two steps."""
    is_failure_due: bool = Bool()
    """The job is to fail for a close in this step; never so between two steps."""

    begin: Trigger
    reset: Trigger
    call: Trigger
    ask: Trigger
    end_close: Trigger
    end_newest: Trigger
    break_close: Trigger
    lose_patience: Trigger
    doom: Trigger
    cripple: Trigger
    spoil: Trigger
    finish: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("begin",         "up", STAY, "may_begin",
            "begin_job",    "the job starts"),
        Row("reset",         "up", STAY, "may_reset",
            "count_reset",  "everything goes back"),
        Row("call",          "up", STAY, "may_call",
            "count_call",   "the job has something to say"),
        Row("ask",           "up", STAY, "may_call",
            "mark_asked, count_call", "a client asks for something"),
        Row("end_close",     "up", STAY, "has_closing",
            "end_oldest",   "the close of one that was replaced ends"),
        Row("end_newest",    "up", STAY, "has_closing",
            "end_last",     "it ends before another, which hangs"),
        Row("break_close",   "up", STAY, "has_closing",
            "break_oldest", "it raises"),
        Row("lose_patience", "up", STAY, "has_timers",
            "ring_oldest",  "it takes too long"),
        Row("doom",          "up", STAY, "may_doom",
            "count_doom",   "the next one cannot be made"),
        Row("cripple",       "up", STAY, "may_cripple",
            "count_crippled", "the next one will not come up"),
        Row("spoil",         "up", STAY, "may_spoil",
            "count_spoilt", "the next call will raise"),
        Row("finish",        "up", STAY, "may_finish",
            "finish_job",   "the job is over"),
    )
    # fmt: on

    def may_begin(self) -> bool:
        return not self.system.recreation.is_started and self.system.recreation.state != CLOSED

    def may_reset(self) -> bool:
        return self.resets < self.system.R and self.system.recreation.state != CLOSED

    def may_call(self) -> bool:
        return self.calls < self.system.E

    def has_closing(self) -> bool:
        return any(self.is_closing[g] for g in range(self.system.R))

    def has_timers(self) -> bool:
        return any(self.has_timer[g] for g in range(self.system.R))

    def may_doom(self) -> bool:
        return self.failures < self.system.F and not self.is_to_fail

    def may_cripple(self) -> bool:
        return self.failures < self.system.F and not self.is_to_stumble

    def may_spoil(self) -> bool:
        return self.failures < self.system.F and not self.is_to_raise

    def may_finish(self) -> bool:
        return self.system.recreation.state != CLOSED

    def begin_job(self) -> None:
        self.has_begun = True
        self.system.recreation.start()

    def count_reset(self) -> None:
        self.resets += 1
        self.is_restore_due = self.system.recreation.state == FRESH
        self.system.recreation.reset()

    def mark_asked(self) -> None:
        self.is_asked[self.calls] = True

    def count_call(self) -> None:
        self.meant_for[self.calls] = self.system.recreation.generation
        self.is_open[self.calls] = True
        self.calls += 1
        self.system.recreation.call(self.calls)

    def end_oldest(self) -> None:
        done = False
        for g in range(self.system.R):
            if self.is_closing[g] and not done:
                done = True
                self.is_closing[g] = False
                self.system.recreation.closed(g)

    def break_oldest(self) -> None:
        done = False
        for g in range(self.system.R):
            if self.is_closing[g] and not done:
                done = True
                self.is_closing[g] = False
                self.expect_failure(g)
                self.system.recreation.close_failed(g)

    def end_last(self) -> None:
        newest = 0
        for g in range(self.system.R):
            if self.is_closing[g]:
                newest = g
        self.is_closing[newest] = False
        self.system.recreation.closed(newest)

    def ring_oldest(self) -> None:
        done = False
        for g in range(self.system.R):
            if self.has_timer[g] and not done:
                done = True
                self.has_timer[g] = False
                self.expect_failure(g)
                self.system.recreation.close_late(g)

    def expect_failure(self, generation: int) -> None:
        self.is_failure_due = (
            self.system.recreation.state == DEFERRED
            and self.system.recreation.closing == generation
        )

    def count_doom(self) -> None:
        self.failures += 1
        self.is_to_fail = True

    def count_crippled(self) -> None:
        self.failures += 1
        self.is_to_stumble = True

    def count_spoilt(self) -> None:
        self.failures += 1
        self.is_to_raise = True

    def finish_job(self) -> None:
        self.system.recreation.close()

    def restore(self, generation: int) -> None:
        assert generation == 0, "only the first is restored in place"
        assert self.is_restore_due, "the first is restored once"
        self.is_restore_due = False

    def start(self, generation: int) -> None:
        assert generation == self.system.recreation.generation, "the present one is started"
        assert not self.is_started, "each is started once"
        assert not self.is_awaited, "one that is not made yet is not started"
        assert not self.is_broken, "one that is broken is not started"
        self.is_started = True

    def replace(self, generation: int) -> None:
        self.is_started = False
        self.is_broken = False
        self.is_awaited = True
        if self.is_made:
            self.is_made = False
            self.is_closing[generation] = True
            self.has_timer[generation] = True
        else:
            self.system.recreation.closed(generation)

    def fail_job(self, generation: int) -> None:
        assert self.is_failure_due, "a close that is awaited fails the job, and once"
        assert generation == self.system.recreation.closing, "the job fails for the close it awaits"
        self.is_failure_due = False

    def make(self, generation: int, is_started: bool) -> None:
        assert self.is_awaited, "one is made once for each that was replaced"
        assert generation == self.system.recreation.generation, "the newest one is made"
        before = self.system.recreation.closing
        assert not self.is_closing[before] or not self.has_timer[before], (
            "one is made when the one before is closed, or was given up"
        )
        self.is_awaited = False
        if self.is_to_fail:
            self.is_to_fail = False
            self.is_broken = True
            self.system.recreation.unmade()
        elif self.is_to_stumble:
            self.is_to_stumble = False
            self.is_made = True
            self.is_broken = True
            self.system.recreation.unmade()
        else:
            self.is_made = True
            self.is_started = is_started
            self.system.recreation.made()

    def pass_on(self, generation: int, call: int) -> None:
        found = False
        for c in range(self.system.E):
            if not found and self.heard <= c and self.meant_for[c] == generation:
                found = c < self.calls
                self.heard = c + 1
        assert found, "a call is heard once, in its order, by the coordinator that it was meant for"
        assert self.raised < generation + 1, "one that has raised hears no other call"
        assert call == self.heard, "the call that is heard is the one that was made"
        fails_job = self.is_to_raise and not self.is_asked[call - 1]
        self.is_to_raise = False
        self.settle(call)
        if fails_job:
            self.is_started = False
            self.is_broken = True
            self.raised = generation + 1
            self.system.recreation.raised()
        else:
            self.system.recreation.passed()

    def drop(self, call: int) -> None:
        self.settle(call)

    def settle(self, call: int) -> None:
        assert call > 0, "what is heard or dropped is a call"
        assert self.is_open[call - 1], "a call is heard or dropped once"
        self.is_open[call - 1] = False
        self.is_asked[call - 1] = False

    def open_calls(self) -> int:
        count = 0
        for c in range(self.system.E):
            if self.is_open[c]:
                count += 1
        return count

    def close(self, generation: int) -> None:
        assert generation == self.system.recreation.generation, "the present one is closed"
        assert not self.is_over, "the last is closed once"
        assert self.open_calls() == 0, "callers are told before a close, which may hang"
        self.is_started = False
        self.is_broken = False
        self.is_over = True


class RecreatedJob(ClosedSystem):
    """`RecreateOnReset`: each call reaches the coordinator that it was meant for."""

    CONSTANTS: ClassVar[dict[str, int]] = {"R": 3, "E": 3, "F": 1}
    DERIVED: ClassVar[dict[str, str]] = {
        "generations": "R + 0",
        "made": "R + 1",
        "calls": "E + 0",
        "call": "E + 0",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("inners", "begin"),
        Step("inners", "reset", is_fair=False),
        Step("inners", "call", is_fair=False),
        Step("inners", "ask", is_fair=False),
        Step("inners", "end_close", is_fair=False),
        Step("inners", "end_newest", is_fair=False),
        Step("inners", "break_close", is_fair=False),
        Step("inners", "lose_patience"),
        Step("inners", "doom", is_fair=False),
        Step("inners", "cripple", is_fair=False),
        Step("inners", "spoil", is_fair=False),
        Step("inners", "finish", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"recreation.inner": "inners"}

    R: int
    E: int
    F: int

    recreation: Recreation = machines(Recreation)
    inners: Inners = machines(Inners)

    @sometimes("the close of one that was given up ends while the next close is awaited")
    def is_overtaken(self) -> bool:
        return (
            self.recreation.state == DEFERRED and self.inners.is_closing[self.recreation.closing]
        ) and any(self.inners.is_closing[g] and g != self.recreation.closing for g in range(self.R))

    @sometimes("a call that was deferred is heard")
    def has_caught_up(self) -> bool:
        return self.recreation.state == CAUGHT_UP and self.inners.heard > 1

    @always("each call is heard or dropped, unless it waits for a successor")
    def settles_calls(self) -> bool:
        return self.inners.open_calls() == self.recreation.deferred.size()

    @always("a coordinator that is there is started once the job has begun, and none after its end")
    def starts_coordinators(self) -> bool:
        is_there = self.recreation.state == FRESH or self.recreation.state == CAUGHT_UP
        return (
            self.recreation.is_started == self.inners.has_begun
            and self.inners.is_started == (is_there and self.inners.has_begun)
            and self.inners.is_over == (self.recreation.state == CLOSED)
        )

    @always(
        "the first coordinator is restored in place, and a close that does not end fails the job"
    )
    def obeys_at_once(self) -> bool:
        return not self.inners.is_restore_due and not self.inners.is_failure_due

    @sometimes("a call that was deferred raises")
    def has_broken(self) -> bool:
        return self.recreation.state == BROKEN and self.inners.raised > 1

    @always("between two steps no successor waits to be made, and calls wait for one alone")
    def is_made_at_once(self) -> bool:
        return self.recreation.state != MAKING and (
            self.recreation.state == DEFERRED or self.recreation.deferred.empty()
        )

    @always("what is deferred waits for a close", when="is_deferred")
    def is_closing(self) -> bool:
        return self.inners.is_awaited and self.inners.is_closing[self.recreation.closing]

    @leads_to("after a reset there is a coordinator, or the job fails", then="is_decided")
    def is_deferred(self) -> bool:
        return self.recreation.state == DEFERRED

    def is_decided(self) -> bool:
        return (
            self.recreation.state == CAUGHT_UP
            or self.recreation.state == BROKEN
            or self.recreation.state == CLOSED
        )

    @terminal("the job is over, and every close has ended")
    def is_at_rest(self) -> bool:
        return (
            self.recreation.state == CLOSED
            and not self.inners.has_closing()
            and not self.inners.has_timers()
        )
