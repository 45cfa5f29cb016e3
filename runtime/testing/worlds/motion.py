"""The motion of the job of a world: whose turn it is, what deviates, when it is at rest, and the
record of all of it. `World` has what a test says; this decides nothing about the schedule either,
which `Choosing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from epochgate.errors import UsageError
from epochgate.fsm import Row
from epochgate.runtime.testing.worlds.claims import Claim, ClaimBroken, Claims
from epochgate.runtime.testing.worlds.differences import Own, changes
from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.runtime.testing.worlds.job import WorldJob
from epochgate.runtime.testing.worlds.line import DRIVER, Mover
from epochgate.runtime.testing.worlds.rig import Call
from epochgate.runtime.testing.worlds.schedule import DELAY, GO_ON, HOLD, At, Choosing, Deviation
from epochgate.runtime.testing.worlds.trace import (
    TEST,
    Happening,
    Keeps,
    contents,
    handled,
    states,
    told,
)

STEPS_MAX: Final = 20_000
MOVES_PER_INSTANT: Final = 400
"""How many moves there may be before time passes although more could move."""
REST_S: Final = 120.0
"""How long a job may take to come to rest, on its own clock."""


class End(Enum):
    """The reason why a job stopped moving."""

    ENOUGH = "it is at rest, or the time has come"
    GO_ON = "the schedule lets the test go on"
    NEVER = "it does not come to rest"


class WorldMisused(UsageError):
    """A call of a test on its world that cannot be meant."""


class Motion:
    """The job of one run, as it moves; `keeps`: what the trace has behind each step."""

    def __init__(self, choosing: Choosing, keeps: Keeps) -> None:
        self._choosing, self._keeps = choosing, keeps
        self._own: Own = {}
        self.claims = Claims()
        self.trace: list[Happening] = []
        self.deviations: list[Deviation] = []
        """Those that came to pass."""
        self.struck: set[tuple[str, str]] = set()
        """Each fault that happened, with what the job was doing: `("die", "snapshot")`."""
        self.tolerated: list[str] = []
        self.at: At = (0, 0)
        self.steps = 0
        self._job: WorldJob | None = None
        self._is_calm = False
        self._is_judging = False
        self._is_timed = False
        """Whether time is being let pass, so that the test cannot go on before."""

    @property
    def rows_taken(self) -> set[tuple[str, str, Row]]:
        """The rows that the driver's machines have taken."""
        return set() if self._job is None else self._job.rig.taken

    @property
    def the_job(self) -> WorldJob:
        """The job; raises WorldMisused before there is one, and while claims look at it."""
        if self._job is None:
            raise WorldMisused("this world has no job yet; begin with world.job(...)")
        if self._is_judging:
            raise WorldMisused("a claim looks at the job and does nothing to it")
        return self._job

    def options(self, what: str) -> int:
        """To how many a deviation can happen now (`Moment`)."""
        if what in FAULTS:
            return len(FAULTS[what].targets(self.the_job.rig))
        if what == GO_ON:
            return 0 if self._is_timed else 1
        return 1 if len(self.the_job.line.movers()) > 1 else 0

    def doing(self) -> str:
        """Tell what the job does, in a word (`Moment`)."""
        return self.the_job.moment()

    def _run(self, is_enough: Callable[[], bool], until_s: float | None = None) -> End:
        """Move until it is enough and nothing moves, or until a time."""
        job = self.the_job
        latest_s, at_this_instant = job.now_s + REST_S, 0
        self._is_timed = until_s is not None
        self.at = (self.at[0] + 1, 0)
        job.line.ask_again()
        while True:
            if self._deviate():
                return End.GO_ON
            movers = job.line.movers()
            if movers and at_this_instant < MOVES_PER_INSTANT:
                at_this_instant += self._move(movers[0])
                continue
            if until_s is not None and is_enough():
                return End.ENOUGH
            if job.release() and at_this_instant < MOVES_PER_INSTANT:
                continue
            if until_s is None and is_enough():
                return End.ENOUGH
            at_this_instant = 0
            if not job.pass_time(until_s):
                return End.NEVER
            self._note_step("driver", f"time passes: it is {job.now_s:g} s")
            if until_s is not None and job.now_s >= until_s:
                return End.ENOUGH
            if until_s is None and job.now_s > latest_s:
                return End.NEVER

    def _deviate(self) -> bool:
        """Let happen what the schedule has for this step; True when the test is to go on."""
        self.steps += 1
        self.at = (self.at[0], self.at[1] + 1)
        if self.steps > STEPS_MAX:
            raise ClaimBroken("rest", f"{STEPS_MAX} steps were not enough", self.the_job.account())
        if self._is_calm:
            return False
        is_to_go_on = False
        for deviation in self._choosing.at(self):
            if deviation.what in FAULTS:
                self._strike(deviation)
                continue
            movers = self.the_job.line.movers()
            if deviation.what == GO_ON and not self._is_timed:
                is_to_go_on = True
                self.say("the test continues before the job is at rest", deviation)
            elif deviation.what in (DELAY, HOLD) and len(movers) > 1:
                self._defer(movers[0], deviation)
        return is_to_go_on

    def _defer(self, mover: Mover, deviation: Deviation) -> None:
        line = self.the_job.line
        lane, text = told(self.the_job.rig, mover)
        if deviation.what == HOLD:
            line.hold(mover)
            text = f"waits until nothing else moves: {text}"
        elif deviation.what == DELAY:
            line.delay(mover)
            text = f"lets all others go first: {text}"
        self._note(Happening(self.at, self.the_job.now_s, lane, text, deviation))

    def _strike(self, deviation: Deviation, is_of_test: bool = False) -> bool:
        job, fault = self.the_job, FAULTS[deviation.what]
        targets = fault.targets(job.rig)
        if not targets:
            return False
        moment = job.moment()
        self.struck.add((deviation.what, moment))
        if not is_of_test:
            self.deviations.append(deviation)
        lane, text = fault.strike(job.rig, job.line, targets[deviation.which % len(targets)])
        job.look_around()
        if is_of_test:
            lane, text = TEST, f"{text} ({lane})"
        rows, calls = job.take_rows(), job.take_calls()
        shown = None if is_of_test else deviation
        self._append(Happening(self.at, job.now_s, lane, text, shown, rows, calls, is_of_test))
        self._judge()
        return True

    def _move(self, mover: Mover) -> bool:
        job = self.the_job
        lane, text = told(job.rig, mover)
        has_moved = job.line.move(mover)
        job.look_around()
        if has_moved or mover == DRIVER:
            words = handled(job.rig.rows, job.rig.sent) if mover == DRIVER else text
            self._note_step(lane, words)
        return has_moved

    def _note_step(self, lane: str, text: str) -> None:
        job = self.the_job
        rows, calls = job.take_rows(), job.take_calls()
        self._note(Happening(self.at, job.now_s, lane, text, None, rows, calls))
        self._judge()

    def _note(self, happening: Happening) -> None:
        self._append(happening)
        if happening.deviation is not None:
            self.deviations.append(happening.deviation)

    def _append(self, happening: Happening) -> None:
        if self._keeps != "nothing" and self._job is not None:
            before, self._own = self._own, contents(self._job.rig)
            happening.changes = changes(before, self._own)
            if self._keeps == "states":
                happening.after = states(self._job.rig)
        self.trace.append(happening)

    def say(self, text: str, deviation: Deviation | None = None) -> None:
        """Note what the test does."""
        now_s = 0.0 if self._job is None else self._job.now_s
        self._note(Happening(self.at, now_s, TEST, text, deviation))

    def note(self, lane: str, text: str) -> None:
        """Note what user code does within a step, for every report to show."""
        self._append(Happening(self.at, self.the_job.now_s, lane, text, is_telling=True))

    def note_call(self, operator_id: str, text: str) -> None:
        """Note a call of user code on the driver within a step, as those of coordinators."""
        self.the_job.rig.calls.append(Call(operator_id, text))

    def _judge(self) -> None:
        job = self._job
        if job is None:
            return
        for error in job.rig.errors:
            if not any(text in error for text in self.tolerated):
                raise ClaimBroken("error", error.split("\n")[0], error)
        job.rig.errors.clear()
        with self.only_looking():
            self.claims.check()

    def _holds(self, claim: Claim) -> bool:
        with self.only_looking():
            return bool(claim.holds())

    @contextmanager
    def only_looking(self) -> Iterator[None]:
        """Refuse within it what would let the job move."""
        self._is_judging = True
        try:
            yield
        finally:
            self._is_judging = False
