"""The steps of a fuzzed job, and the schedules of them that Hypothesis draws.

Every choice is a drawn index into the things that are possible at that moment, so that a schedule
is drawn before it is run, and a failing one shrinks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from hypothesis import strategies as st

from epochgate.models.job import Job
from epochgate.runtime.testing.faulty_transport import FATES
from tests.stateful.coverage import Coverage
from tests.stateful.fuzzed import FuzzedJob, Shape

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., None])

DISTURBANCES = (
    ("blocking",),
    ("process",),
    ("answers", "now"),
    ("answers", "later"),
    ("answers", "raise"),
    *((("doom", tag, fate)) for tag, fates in FATES.items() for fate in fates),
    *((("poison", where)) for where in ("handle", "snapshot", "open", "work")),
    ("store", "not kept"),
    ("store", "but kept"),
    ("store", "in doubt"),
    ("commit", "retry"),
    ("commit", "retry_after"),
    ("commit", "refuse"),
    ("fail the job",),
    ("crash",),
    ("end", "stop"),
    ("end", "cancel"),
)
"""What goes wrong less often than messages and processes do."""

AT_ONCE = st.sampled_from((True, True, True, False))
"""Whether the job master processes what a step has posted before the next step."""
HELD = st.sampled_from(((), ("hear",), ("tell",), ("blocking",), ("lose",), ("connect", "late")))
ANSWERS = st.sampled_from(("succeed", "fail", "cancel"))
AROUND = st.sampled_from(((0, 0), (1, 1), (0, 1), (1, 0)))
"""How many events a coordinator sends right before its snapshot, and right after it."""
HARM = st.sampled_from(("kill", "kill", "cut", "intrude", "overtake"))
INDEX = st.integers(0, 63)
GOALS = (
    ("checkpoint", "pending"),
    ("checkpoint", "pending"),
    ("checkpoint", "pending"),
    ("snapshot", "confirming"),
    ("snapshot", "asked"),
    ("snapshot", "confirming"),
    ("first part", "there: True"),
    ("checkpoint", "storing"),
    ("checkpoint", "completed"),
    ("attempt", "running"),
    ("attempt", "initializing"),
    ("attempt", "deploying"),
    ("attempt", "scheduled"),
    ("attempt", "failed"),
    ("lifecycle", "restarting"),
    ("lifecycle", "finishing"),
    ("lifecycle", "canceling"),
    ("committer", "committing"),
)
"""Where to go from which the other steps find something new."""


STARTS = st.fixed_dictionaries(
    {
        "coordinators": st.integers(1, 2),
        "subtasks": st.integers(1, 3),
        "tolerable_failures": st.integers(0, 2),
        "restarts_max": st.sampled_from((1000, 2)),
        "is_periodic": st.booleans(),
        "is_up": st.booleans(),
        "crashes_at_end": st.booleans(),
    }
)
STEPS: dict[str, st.SearchStrategy[dict[str, Any]]] = {}
"""Each kind of step, and what is drawn for it."""
STOPS_AT = 0
"""The simplest of `GOES_ON`, so that shrinking finds the end of a schedule."""
GOES_ON = st.integers(STOPS_AT, 2**16 - 1)
PERCENT = st.integers(0, 99)

Schedule = tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]


def step(**drawn: st.SearchStrategy[Any]) -> Callable[[F], F]:
    """Make a method a kind of step. One that happens to a job that is over starts it again before:
    a schedule knows nothing of the job that it is for.
    """

    def as_step(happens: F) -> F:
        STEPS[happens.__name__] = st.fixed_dictionaries(drawn)

        @wraps(happens)
        def happens_to_a_job_that_runs(fuzzing: JobUnderFuzzing, **drawn: Any) -> None:
            if not fuzzing.is_running():
                fuzzing.start_again()
            happens(fuzzing, **drawn)

        return cast(F, happens_to_a_job_that_runs)

    return as_step


@st.composite
def schedules(draw: st.DrawFn, steps: int) -> Schedule:
    """Draw a start and at most this number of steps, of some kinds alone: a schedule without
    processes that die, say, comes further elsewhere (swarm testing).
    """
    start, left_out = draw(STARTS), draw(PERCENT)
    kinds = [name for name in STEPS if draw(PERCENT) >= left_out] or [*STEPS]
    chosen: list[tuple[str, dict[str, Any]]] = []
    while len(chosen) < steps and draw(GOES_ON) != STOPS_AT:
        name = draw(st.sampled_from(kinds))
        chosen.append((name, draw(STEPS[name])))
    return start, chosen


class JobUnderFuzzing:
    """Subclass it with another `job` to fuzz other machines."""

    job: ClassVar[Callable[..., Job]] = Job
    coverage: ClassVar[Coverage | None] = None

    def __init__(self) -> None:
        self.fuzzed: FuzzedJob | None = None
        self._finale_is_due = True
        self._crashes_at_end = False

    def is_running(self) -> bool:
        """Return whether there is a job, and it is not over."""
        return self.fuzzed is not None and not self.fuzzed.is_over

    @property
    def under(self) -> FuzzedJob:
        assert self.fuzzed is not None
        return self.fuzzed

    def _pick(self, index: int, options: list[T]) -> T | None:
        return options[index % len(options)] if options else None

    def start_again(self) -> None:
        """Start another driver, after the job's end or in the middle of it."""
        self._try(self.under.crash_driver)

    def _did(self, at_once: bool) -> None:
        if at_once:
            self._try(self.under.drain)

    def _try(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            call(*arguments)
        except BaseException:
            self._finale_is_due = False
            raise

    def start(self, is_up: bool, crashes_at_end: bool = False, **constants: Any) -> None:
        """Start a job, and perhaps let everything come up."""
        self._crashes_at_end = crashes_at_end
        observe = None if self.coverage is None else self.coverage.observe
        self.fuzzed = FuzzedJob(Shape(**constants), type(self).job, observe)
        if is_up:
            self._try(self.under.flow, (), None)

    @step(held=HELD, only=st.sampled_from((None, None, 0, 1)))
    def flow(self, held: tuple[str, ...], only: int | None) -> None:
        self._try(self.under.flow, held, only)

    @step(
        goal=st.sampled_from(GOALS), subtask=st.integers(0, 2), repeats=st.sampled_from((0, 0, 1))
    )
    def walk(self, goal: tuple[str, str], subtask: int, repeats: int) -> None:
        self._try(self.under.walk, goal[0], subtask, goal[1])
        if repeats and self.is_running():
            self._repeat("acknowledge", subtask)

    @step(index=INDEX, at_once=AT_ONCE)
    def move(self, index: int, at_once: bool) -> None:
        if (step := self._pick(index, self.under.moves())) is not None:
            self._try(self.under.move, step)
            self._did(at_once)

    @step(index=INDEX, count=st.integers(1, 3), at_once=AT_ONCE)
    def send(self, index: int, count: int, at_once: bool) -> None:
        if (target := self._pick(index, self.under.targets())) is not None:
            self._try(self.under.send, *target, count)
            self._did(at_once)

    @step(index=INDEX, at_once=AT_ONCE)
    def send_to_the_past(self, index: int, at_once: bool) -> None:
        pasts = [
            (coordinator.number, position)
            for coordinator in self.under.coordinators
            for position in range(len(coordinator.old_gateways))
        ]
        if (past := self._pick(index, pasts)) is not None:
            self._try(self.under.send_to_the_past, *past)
            self._did(at_once)

    @step(index=INDEX, how=ANSWERS, around=AROUND, at_once=AT_ONCE)
    def answer(self, index: int, how: str, around: tuple[int, int], at_once: bool) -> None:
        if (pending := self._pick(index, self.under.pending())) is not None:
            coordinator = self.under.coordinators[pending[0]]
            subtask = self._pick(index, sorted(coordinator.gateways))
            if subtask is not None and around[0]:
                self._try(self.under.send, pending[0], subtask, around[0])
            self._try(self.under.answer, *pending, how)
            if subtask is not None and around[1]:
                self._try(self.under.send, pending[0], subtask, around[1])
            self._did(at_once)

    @step(at_once=AT_ONCE)
    def request(self, at_once: bool) -> None:
        self._try(self.under.request)
        self._did(at_once)

    @step(is_long=st.sampled_from((False, False, True)), at_once=AT_ONCE)
    def wait(self, is_long: bool, at_once: bool) -> None:
        self._try(self.under.expire if is_long else self.under.advance)
        self._did(at_once)

    @step(index=INDEX, how=HARM, at_once=AT_ONCE)
    def disturb_process(self, index: int, how: str, at_once: bool) -> None:
        some_subtask = index % self.under.shape.subtasks
        if how == "intrude":
            self.under.intrude(some_subtask)
        elif how == "overtake":
            self._try(self.under.overtake, some_subtask)
        elif (
            who := self._pick(index, self.under.simulated.transport.living(how == "cut"))
        ) is not None:
            self._try(self.under.kill if how == "kill" else self.under.cut, who)
        self._did(at_once)

    @step(tag=st.sampled_from(("acknowledge", "acknowledge", "confirm")), index=st.integers(0, 5))
    def repeat(self, tag: str, index: int) -> None:
        self._repeat(tag, index)

    def _repeat(self, tag: str, index: int) -> None:
        heard = enumerate(self.under.simulated.faults.heard)
        newest_first = [position for position, (_, _, m) in heard if m[0] == tag][::-1]
        if (position := self._pick(index, newest_first)) is not None:
            self._try(self.under.repeat, position)
            self._did(True)

    @step(disturbance=st.sampled_from(DISTURBANCES), index=INDEX, at_once=AT_ONCE)
    def disturb(self, disturbance: tuple[Any, ...], index: int, at_once: bool) -> None:
        what, *how = disturbance
        under = self.under
        some_coordinator = index % under.shape.coordinators
        some_subtask = index % under.shape.subtasks
        actions: dict[str, Callable[[], None]] = {
            "answers": lambda: under.order_answer(some_coordinator, *how),
            "poison": lambda: under.poison(some_subtask, *how),
            "doom": lambda: under.doom(*how),
            "fail the job": lambda: under.fail_job(some_coordinator),
            "store": lambda: under.fail_store(*how),
            "commit": lambda: under.fail_commit(*how),
            "blocking": lambda: self._run_blocking(index),
            "process": lambda: under.process(1),
            "crash": under.crash_driver,
            "end": lambda: under.end(*how),
        }
        self._try(actions[what])
        if what != "process":
            self._did(at_once)

    def _run_blocking(self, index: int) -> None:
        if (lane := self._pick(index, self.under.simulated.blocking.lanes())) is not None:
            self.under.run_blocking(lane)

    @step(hang=st.sampled_from((True, True, False)))
    def commits(self, hang: bool) -> None:
        self._try(self.under.fall_behind if hang else self.under.catch_up)

    def holds(self) -> None:
        if self.fuzzed is not None:
            self._try(self.fuzzed.check)

    def teardown(self) -> None:
        """End the faults, unless something was found already."""
        if self.fuzzed is None:
            return
        try:
            if self._finale_is_due:
                self.fuzzed.finale(self._crashes_at_end)
        finally:
            if self.coverage is not None:
                self.coverage.end_example(self.fuzzed)

    def follow(self, schedule: Schedule) -> None:
        """Run a schedule; raises InvariantViolated."""
        start, steps = schedule
        try:
            self.start(**start)
            self.holds()
            for name, drawn in steps:
                getattr(self, name)(**drawn)
                self.holds()
        finally:
            self.teardown()
