"""The world of one run: what a test's body is given.

Each call of the test on its world or job does one thing and lets the job move before it returns: to
rest in the default schedule, for less where the schedule says so, so that the next line of the test
can strike at any moment. Everything runs in the test's own thread, on a clock of its own. Decides
nothing about the schedule: `Choosing` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from epochgate.errors import UsageError
from epochgate.fsm import Row
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import Operator, Program
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.testing.simulation import Preparing
from epochgate.runtime.testing.worlds.claims import Claim, ClaimBroken, Claims, caller
from epochgate.runtime.testing.worlds.faults import FAULTS, doom
from epochgate.runtime.testing.worlds.job import WorldJob
from epochgate.runtime.testing.worlds.line import DRIVER, Mover
from epochgate.runtime.testing.worlds.rig import (
    NotSimulated,
    Parts,
    PlainProgram,
    Prepared,
    Rig,
    Setup,
)
from epochgate.runtime.testing.worlds.schedule import DELAY, GO_ON, HOLD, At, Choosing, Deviation
from epochgate.runtime.testing.worlds.trace import TEST, Happening, handled, states, told

STEPS_MAX: Final = 20_000
MOVES_PER_INSTANT: Final = 400
"""How many moves there may be before time passes although more could move."""
REST_S: Final = 120.0
"""How long a job may take to come to rest, on its own clock."""


class End(Enum):
    """Why a job stopped moving."""

    ENOUGH = "it is at rest, or the time has come"
    GO_ON = "the schedule lets the test go on"
    NEVER = "it does not come to rest"


class WorldMisused(UsageError):
    """A call of a test on its world that cannot be meant."""


class World:
    """One run of a test. `choosing` decides what deviates from the default schedule, `draw` draws a
    value from a strategy of Hypothesis.
    """

    def __init__(
        self,
        choosing: Choosing,
        draw: Callable[[Any], Any],
        *,
        seed: int = 0,
        keeps_states: bool = False,
    ) -> None:
        self._choosing, self._draw = choosing, draw
        self._keeps_states = keeps_states
        self.claims = Claims()
        self.trace: list[Happening] = []
        self.deviations: list[Deviation] = []
        """Those that came to pass."""
        self.drawn: list[tuple[str, Any]] = []
        self.struck: set[tuple[str, str]] = set()
        """Each fault that happened, with what the job was doing: `("die", "snapshot")`."""
        self.tolerated: list[str] = []
        self.at: At = (0, 0)
        self.steps = 0
        self.random = random.Random(seed)
        """Chance that replays; for what the test itself varies."""
        self._job: WorldJob | None = None
        self._is_calm = False
        self._is_judging = False
        self._is_timed = False
        """Whether time is being let pass, so that the test cannot go on before."""

    # what a test says

    def job(
        self,
        *providers: CoordinatorProvider | Callable[[], CoordinatorProvider],
        operators: Any = None,
        program: Callable[[int], Program] | None = None,
        subtasks: int = 1,
        committer: Callable[[], Committer] | None = None,
        checkpoint_every_s: float | None = None,
        **configuration: Any,
    ) -> WorldJob:
        """Start a job on the production runtime, and let it come up.

        `operators` is what makes the operator of the one provider (its class), or a dict from
        operator ids to what makes each; `program` makes what a subtask runs, where operators that
        wait for events are not enough. `committer` makes the committer of each start of the driver.
        `configuration` are further fields of `JobConfiguration`. Raises WorldMisused for a second
        job, NotSimulated for what makes no job.
        """
        makers = [_maker(each) for each in providers]
        made = program or _program(makers, operators)

        def prepare(start: SinkStart) -> Parts:
            settings = {**DEFAULTS, "checkpoint_interval_s": checkpoint_every_s, **configuration}
            given = tuple(make() for make in makers)
            return Parts(
                JobConfiguration(start.job_id, subtasks, given, start.run_id, **settings),
                made,
                None if committer is None else committer(),
            )

        return self._start(Setup(subtasks, prepare, committer is not None))

    def pipeline(
        self,
        pipeline: Preparing,
        *,
        subtasks: int = 1,
        checkpoint_every_s: float | None = None,
        **configuration: Any,
    ) -> WorldJob:
        """Start a `Pipeline`, and let it come up; `configuration` are further fields of
        `JobConfiguration`. Raises WorldMisused for a second job.
        """
        settings = {**DEFAULTS, "checkpoint_interval_s": checkpoint_every_s, **configuration}

        def prepare(start: SinkStart) -> Prepared:
            return pipeline.prepared(start, subtasks, **settings)

        return self._start(Setup(subtasks, prepare, has_committer=True))

    def _start(self, setup: Setup) -> WorldJob:
        if self._job is not None:
            raise WorldMisused("a world has one job; give what is more to world.job as well")
        self._job = WorldJob(self, Rig(setup))
        self.say(f"a job of {setup.subtasks} subtask{'s' * (setup.subtasks > 1)} starts")
        self.move()
        return self._job

    def draw(self, strategy: Any, name: str = "") -> Any:
        """Draw a value from a strategy of Hypothesis; it shrinks with the schedule."""
        value = self._draw(strategy)
        self.drawn.append((name or f"draw {len(self.drawn) + 1}", value))
        return value

    def always(self, text: str, holds: Callable[[], Any]) -> None:
        """Claim that something holds after every step from now on; raises ClaimBroken."""
        claim = Claim(text, holds, caller())
        self.claims.always[text] = claim
        self._judge()

    def eventually(self, text: str, holds: Callable[[], Any], within_s: float = 30.0) -> None:
        """Claim that something comes to hold within `within_s` seconds of the job's own clock after
        the faults have ended, and holds when the job is at rest.
        """
        self.claims.eventually[text] = Claim(text, holds, caller(), within_s)

    def sometimes(self, text: str, holds: Callable[[], Any] | None = None) -> None:
        """Claim that something happens in at least one run, so that the test is about something.

        `holds` is looked at after every step. Without it, reaching this line is what happens.
        """
        self.claims.sometimes[text] = None if holds is None else Claim(text, holds, caller())
        if holds is None:
            self.claims.reached.add(text)

    def tolerate(self, text: str) -> None:
        """Let user code raise errors whose text contains this; others fail the test."""
        self.tolerated.append(text)

    def move(self, seconds: float = 0.0) -> None:
        """Let the job move: for a number of seconds of its own clock, and then to rest; raises
        ClaimBroken, as all does that lets it move.
        """
        job = self.the_job
        end_s = job.now_s + seconds
        while job.now_s < end_s:
            self._run(_never, until_s=end_s)
        self._run(job.is_at_rest)

    def lose(self, message: str) -> None:
        """Lose the next `event`, `confirmation` or `acknowledgement`, as no connection does: what
        is lost with a connection, `job.cut` loses.
        """
        self._doom(message, "lost")

    def delay(self, message: str) -> None:
        """Let the next `confirmation` or `acknowledgement` arrive late."""
        self._doom(message, "late")

    def repeat(self, message: str) -> None:
        """Let the next `confirmation` or `acknowledgement` arrive twice."""
        self._doom(message, "repeated")

    def _doom(self, message: str, fate: Any) -> None:
        doom(self.the_job.rig, message, fate)
        self.say(f"the next {message} will be {fate}")
        self.move()

    def strike(self, fault: str, which: int = 0) -> None:
        """Let a fault happen now, by its name; raises WorldMisused where it has no target, and
        ClaimBroken.
        """
        if not self._strike(Deviation(self.at, fault, which), is_of_test=True):
            raise WorldMisused(
                f"the fault {fault!r} has nothing to strike at this moment: {FAULTS[fault].about}"
            )
        self.move()

    def calm(self) -> None:
        """End all faults and let everything come right; from here on assertions see a job at rest,
        and the schedule is the default one. Raises ClaimBroken.
        """
        if self._job is None or self._is_calm:
            return
        self._is_calm = True
        job = self._job
        self.say("the faults end")
        job.calm()
        for _ in range(STARTS_MAX):
            if self._run(job.is_at_rest) is End.NEVER:
                raise ClaimBroken("rest", job.why_not_at_rest(), job.account())
            if not job.has_failed:
                break
            job.start_again()
        else:
            raise ClaimBroken("end", job.simulated.result.reason or "no reason", job.account())
        for claim in self.claims.eventually.values():
            self._come_true(claim)

    def _come_true(self, claim: Claim) -> None:
        job = self.the_job
        end_s = job.now_s + claim.within_s
        while not self._holds(claim):
            if job.now_s >= end_s:
                detail = f"not within {claim.within_s:g} s after the faults have ended"
                if not job.is_at_rest():
                    detail += f"; {job.account()}"
                raise ClaimBroken("eventually", claim.text, detail, claim.place)
            self._run(lambda: self._holds(claim), until_s=end_s)
        self._run(job.is_at_rest)
        if not self._holds(claim):
            raise ClaimBroken(
                "eventually", claim.text, "it held, and no longer does at rest", claim.place
            )

    def _holds(self, claim: Claim) -> bool:
        self._is_judging = True
        try:
            return bool(claim.holds())
        finally:
            self._is_judging = False

    @property
    def rows_taken(self) -> set[tuple[str, str, Row]]:
        """The rows that the driver's machines have taken."""
        return set() if self._job is None else self._job.rig.taken

    # how a job moves

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
                self.say("the test goes on, although the job is not at rest", deviation)
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
        rows = job.take_rows()
        shown = None if is_of_test else deviation
        self._append(Happening(self.at, job.now_s, lane, text, shown, rows))
        self._judge()
        return True

    def _move(self, mover: Mover) -> bool:
        job = self.the_job
        lane, text = told(job.rig, mover)
        has_moved = job.line.move(mover)
        job.look_around()
        if has_moved or mover == DRIVER:
            self._note_step(lane, handled(job.rig.rows) if mover == DRIVER else text)
        return has_moved

    def _note_step(self, lane: str, text: str) -> None:
        job = self.the_job
        self._note(Happening(self.at, job.now_s, lane, text, None, job.take_rows()))
        self._judge()

    def _note(self, happening: Happening) -> None:
        self._append(happening)
        if happening.deviation is not None:
            self.deviations.append(happening.deviation)

    def _append(self, happening: Happening) -> None:
        if self._keeps_states and self._job is not None:
            happening.after = states(self._job.rig)
        self.trace.append(happening)

    def say(self, text: str, deviation: Deviation | None = None) -> None:
        """Note what the test does."""
        now_s = 0.0 if self._job is None else self._job.now_s
        self._note(Happening(self.at, now_s, TEST, text, deviation))

    def _judge(self) -> None:
        job = self._job
        if job is None:
            return
        for error in job.rig.errors:
            if not any(text in error for text in self.tolerated):
                raise ClaimBroken("error", error.split("\n")[0], error)
        job.rig.errors.clear()
        self._is_judging = True
        try:
            self.claims.check()
        finally:
            self._is_judging = False


def _never() -> bool:
    return False


STARTS_MAX: Final = 3
"""How often a job that has failed is started again once the faults have ended."""


DEFAULTS: Final[dict[str, Any]] = {"checkpoint_timeout_s": 10.0, "coordinator_call_warn_s": None}


def _maker(given: Any) -> Callable[[], CoordinatorProvider]:
    """What makes the provider of each start: a provider serves all of them."""
    return (lambda: given) if isinstance(given, CoordinatorProvider) else given


def _program(
    makers: Sequence[Callable[[], CoordinatorProvider]], operators: Any
) -> Callable[[int], Program]:
    """What makes a program of operators that wait for events."""
    if operators is None:
        raise NotSimulated(
            "a job needs what runs in its tasks: operators=MyOperator, or program=MyProgram, which "
            "is called with the number of the subtask"
        )
    if not isinstance(operators, Mapping):
        if len(makers) != 1:
            raise NotSimulated(
                f"{len(makers)} providers and one operator: say which operator has which id, "
                "operators={'rules': MyOperator, ...}"
            )
        operators = {makers[0]().operator_id: operators}
    made: dict[str, Callable[[], Operator]] = dict(operators)
    return lambda subtask: PlainProgram({name: make() for name, make in made.items()})
