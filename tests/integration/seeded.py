"""A scheduler that lets a simulated job do one thing at a time, chosen by chance from a seed.

Everything that could happen next is equally likely: the job master processes a few of its events, a
message moves, a store answers, a coordinator's mailbox makes a call. How fast time passes beside
that, and how much tasks work, is drawn once for each seed, so that seeds differ in what is slow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from epochgate.runtime.testing.in_process import Step
from epochgate.runtime.testing.simulation import SimulatedJob, Stuck
from tests.integration.mailbox import Mailbox

STEPS_MAX = 200_000
LEAP_S_MAX = 100.0
"""Time leaps no further while something else can happen: what starts is given time."""
EVENTS_AT_ONCE_MAX = 4
WORK_SHARES = (0.02, 0.1, 0.4)
TIME_SHARES = (0.01, 0.05, 0.2)


class SeededScheduler:
    """Drives one job; `may` says of a step whether it can happen now."""

    def __init__(
        self,
        job: SimulatedJob,
        seed: int,
        *,
        mailboxes: Callable[[], Sequence[Mailbox]] = tuple,
        may: Callable[[Step], bool] = lambda step: True,
    ) -> None:
        self._job, self._mailboxes, self._may = job, mailboxes, may
        self._chance = random.Random(seed)
        self._work_share = self._chance.choice(WORK_SHARES)
        self._time_share = self._chance.choice(TIME_SHARES)

    def run(self, until: Callable[[], bool], steps_max: int = STEPS_MAX) -> None:
        """Let things happen until `until` holds. Raises Stuck when nothing can happen any more, or
        after `steps_max` things.
        """
        for _ in range(steps_max):
            if until():
                return
            if not self._one_thing():
                break
        raise Stuck(self._job.account())

    def _one_thing(self) -> bool:
        job, chance = self._job, self._chance
        steps = [step for step in job.steps() if self._may(step)]
        works = [step for step in steps if step[0] == "work"]
        possible = self._possible([step for step in steps if step[0] != "work"])
        share = chance.random()
        is_soon = (job.master.queue.next_due_s() or 0.0) - job.clock.now_s() <= LEAP_S_MAX
        if possible and share < self._time_share and is_soon and self._let_time_pass():
            return True
        if works and (not possible or share < self._time_share + self._work_share):
            has_worked = job.step(chance.choice(works))
            return has_worked or bool(possible) or self._others_work(works) or self._let_time_pass()
        if possible:
            chance.choice(possible)()
            return True
        return self._let_time_pass()

    def _others_work(self, works: list[Step]) -> bool:
        return any(self._job.step(step) for step in works if step in self._job.steps())

    def _let_time_pass(self) -> bool:
        return self._job.advance() is not None

    def _possible(self, steps: list[Step]) -> list[Callable[[], object]]:
        job = self._job
        possible: list[Callable[[], object]] = [partial(job.step, step) for step in steps]
        possible += [mailbox.run_next for mailbox in self._mailboxes() if mailbox.is_ready()]
        possible += [partial(job.run_blocking, lane) for lane in job.blocking.lanes()]
        if not job.master.queue.is_empty:
            possible.append(lambda: job.drain(self._chance.randint(1, EVENTS_AT_ONCE_MAX)))
        return possible
