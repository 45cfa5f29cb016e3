"""The Hypothesis machine: draws what happens next to a fuzzed job, from what can happen.

Every choice is a drawn index into the things that are possible at that moment, so a failing
schedule shrinks. It imports Hypothesis, which is an extra: nothing else imports this module but the
command and the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from epochgate.models.job import Job
from epochgate.runtime.testing.faulty_transport import FATES
from epochgate.runtime.testing.fuzzing.coverage import Coverage
from epochgate.runtime.testing.fuzzing.job import FuzzedJob, Shape

T = TypeVar("T")

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

while_running = precondition(lambda fuzzed: fuzzed.is_running())


class JobUnderFuzzing(RuleBasedStateMachine):
    """Subclass it with another `job` to fuzz other machines."""

    job: ClassVar[Callable[..., Job]] = Job
    coverage: ClassVar[Coverage | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.fuzzed: FuzzedJob | None = None
        self._has_failed = False
        self._finale_is_due = True

    def is_running(self) -> bool:
        """Whether there is a job, and it is not over."""
        return self.fuzzed is not None and not self.fuzzed.is_over

    @property
    def under(self) -> FuzzedJob:
        assert self.fuzzed is not None
        return self.fuzzed

    def _pick(self, index: int, options: list[T]) -> T | None:
        return options[index % len(options)] if options else None

    def _did(self, at_once: bool) -> None:
        if at_once:
            self._try(self.under.drain)

    def _try(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            call(*arguments)
        except BaseException:
            self._finale_is_due = False
            raise

    @initialize(
        coordinators=st.integers(1, 2),
        subtasks=st.integers(1, 3),
        tolerable_failures=st.integers(0, 2),
        restarts_max=st.sampled_from((1000, 2)),
        is_periodic=st.booleans(),
        is_up=st.booleans(),
    )
    def start(self, is_up: bool, **constants: Any) -> None:
        """Start a job, and perhaps let everything come up."""
        observe = None if self.coverage is None else self.coverage.observe
        self.fuzzed = FuzzedJob(Shape(**constants), type(self).job, observe)
        if is_up:
            self._try(self.under.flow, (), None)

    @while_running
    @rule(held=HELD, only=st.sampled_from((None, None, 0, 1)))
    def flow(self, held: tuple[str, ...], only: int | None) -> None:
        self._try(self.under.flow, held, only)

    @while_running
    @rule(
        goal=st.sampled_from(GOALS), subtask=st.integers(0, 2), repeats=st.sampled_from((0, 0, 1))
    )
    def walk(self, goal: tuple[str, str], subtask: int, repeats: int) -> None:
        self._try(self.under.walk, goal[0], subtask, goal[1])
        if repeats and self.is_running():
            self._repeat("acknowledge", subtask)

    @while_running
    @rule(index=INDEX, at_once=AT_ONCE)
    def move(self, index: int, at_once: bool) -> None:
        if (step := self._pick(index, self.under.moves())) is not None:
            self._try(self.under.move, step)
            self._did(at_once)

    @while_running
    @rule(index=INDEX, count=st.integers(1, 3), at_once=AT_ONCE)
    def send(self, index: int, count: int, at_once: bool) -> None:
        if (target := self._pick(index, self.under.targets())) is not None:
            self._try(self.under.send, *target, count)
            self._did(at_once)

    @while_running
    @rule(index=INDEX, at_once=AT_ONCE)
    def send_to_the_past(self, index: int, at_once: bool) -> None:
        pasts = [
            (coordinator.number, position)
            for coordinator in self.under.coordinators
            for position in range(len(coordinator.old_gateways))
        ]
        if (past := self._pick(index, pasts)) is not None:
            self._try(self.under.send_to_the_past, *past)
            self._did(at_once)

    @while_running
    @rule(index=INDEX, how=ANSWERS, around=AROUND, at_once=AT_ONCE)
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

    @while_running
    @rule(at_once=AT_ONCE)
    def request(self, at_once: bool) -> None:
        self._try(self.under.request)
        self._did(at_once)

    @while_running
    @rule(is_long=st.sampled_from((False, False, True)), at_once=AT_ONCE)
    def wait(self, is_long: bool, at_once: bool) -> None:
        self._try(self.under.expire if is_long else self.under.advance)
        self._did(at_once)

    @while_running
    @rule(index=INDEX, how=st.sampled_from(("kill", "kill", "cut", "intrude")), at_once=AT_ONCE)
    def disturb_process(self, index: int, how: str, at_once: bool) -> None:
        if how == "intrude":
            self.under.intrude(index % self.under.shape.subtasks)
        elif (who := self._pick(index, self.under.living(how == "cut"))) is not None:
            self._try(self.under.kill if how == "kill" else self.under.cut, who)
        self._did(at_once)

    @while_running
    @rule(tag=st.sampled_from(("acknowledge", "acknowledge", "confirm")), index=st.integers(0, 5))
    def repeat(self, tag: str, index: int) -> None:
        self._repeat(tag, index)

    def _repeat(self, tag: str, index: int) -> None:
        heard = enumerate(self.under.simulated.faults.heard)
        newest_first = [position for position, (_, _, m) in heard if m[0] == tag][::-1]
        if (position := self._pick(index, newest_first)) is not None:
            self._try(self.under.repeat, position)
            self._did(True)

    @while_running
    @rule(disturbance=st.sampled_from(DISTURBANCES), index=INDEX, at_once=AT_ONCE)
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
            "blocking": under.run_blocking,
            "process": lambda: under.process(1),
            "crash": under.crash_driver,
            "end": lambda: under.end(*how),
        }
        self._try(actions[what])
        if what != "process":
            self._did(at_once)

    @precondition(lambda machine: machine.fuzzed is not None and machine.fuzzed.is_over)
    @rule()
    def start_again(self) -> None:
        self._try(self.under.crash_driver)

    @invariant()
    def holds(self) -> None:
        if self.fuzzed is not None:
            self._try(self.fuzzed.check)

    def teardown(self) -> None:
        """End the faults, unless something was found already."""
        if self.fuzzed is None:
            return
        try:
            if self._finale_is_due:
                self.fuzzed.finale()
        finally:
            if self.coverage is not None:
                self.coverage.end_example(self.fuzzed)
