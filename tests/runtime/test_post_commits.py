"""The work after commits: at least once for each, in order, and in the way of nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from epochgate.runtime import Committables, Committer, RetryLater, Work
from epochgate.runtime.store.checkpoint import debts_of
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

ROW = {0: ["row"]}
LANE = "after-commit"
MOMENTS, SETTLED = 90, 120


@dataclass
class Outside:
    """All that outlives the driver: a target that keeps numbers, and what the work has done."""

    visible: dict[int, Committables] = field(default_factory=dict)
    worked: list[tuple[int, Committables]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """What the next work raises."""
    late_errors: list[Exception] = field(default_factory=list)
    """The same, after its effect."""
    has_work: bool = True
    """Whether the next start has work after its commits."""

    def work(self, checkpoint_id: int, committables: Committables) -> None:
        assert self.visible[checkpoint_id] == committables, "it is visible by then"
        if self.errors:
            raise self.errors.pop(0)
        self.worked.append((checkpoint_id, committables))
        if self.late_errors:
            raise self.late_errors.pop(0)

    @property
    def first_worked(self) -> list[int]:
        """The checkpoints in the order in which their work was done first."""
        return list(dict.fromkeys(checkpoint for checkpoint, _ in self.worked))


class Target(Committer):
    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        is_new = checkpoint_id not in self._outside.visible
        self._outside.visible.setdefault(checkpoint_id, committables)
        return is_new


def working(outside: Outside, script: Script | None = None, **settings: Any) -> SimulatedJob:
    return simulated(
        Script() if script is None else script,
        committer=lambda: Target(outside),
        after_commit=lambda: outside.work if outside.has_work else None,
        **{"commit_retries_max": 2, "commit_retry_delay_s": 1.0, **settings},
    )


def checkpointed(job: SimulatedJob, times: int = 1) -> None:
    for _ in range(times):
        job.master.request_checkpoint()
        job.flow()


def debts(job: SimulatedJob, checkpoint: int) -> dict[int, Any]:
    """Return what a stored checkpoint says is owed."""
    return debts_of(job.store.load(checkpoint))


def test_work_follows_each_commit_in_order_with_its_committables() -> None:
    outside = Outside()
    job = working(outside)
    job.flow()
    checkpointed(job, 3)
    assert outside.worked == [(1, ROW), (2, ROW), (3, ROW)]
    assert [debts(job, number) for number in (1, 2, 3)] == [{}, {}, {}]


def test_work_that_hangs_holds_up_neither_checkpoints_nor_commits_and_is_stored_as_owed() -> None:
    outside = Outside()
    job = working(outside)
    job.flow()
    job.blocking.hanging.add(LANE)
    checkpointed(job, 3)
    assert sorted(outside.visible) == [1, 2, 3]
    assert outside.worked == []
    assert debts(job, 3) == {1: [[0, ["row"]]], 2: [[0, ["row"]]]}
    assert job.store.load(3).uncommitted == {}
    job.settle()
    assert outside.worked == [(1, ROW), (2, ROW), (3, ROW)]


def test_the_next_driver_does_what_the_stored_checkpoint_says_is_owed() -> None:
    outside = Outside()
    job = working(outside)
    job.flow()
    job.blocking.hanging.add(LANE)
    checkpointed(job, 3)
    job.crash_driver()
    job.settle()
    assert outside.worked == [(1, ROW), (2, ROW), (3, ROW)]
    checkpointed(job)
    assert outside.first_worked == [1, 2, 3, 4]
    assert debts(job, 4) == {}


def test_work_that_fails_is_tried_again_after_longer_and_longer_pauses_and_ends_no_job() -> None:
    outside = Outside(errors=[ValueError("no mail server"), ValueError("no mail server")])
    job = working(outside)
    job.flow()
    checkpointed(job)
    assert outside.worked == []
    job.settle()
    assert outside.worked == [(1, ROW)]
    assert job.clock.now_s() == 3.0, "1 s, and then twice as long"
    assert not job.is_over
    said = "the work after the commit of checkpoint 1 has failed in try"
    reason = "ValueError: no mail server\n  File "
    first, second = job.master.report.warnings
    assert first.startswith(f"{said} 1: {reason}")
    assert second.startswith(f"{said} 2: {reason}")


def test_work_that_has_failed_in_every_try_waits_for_the_next_commit_and_goes_first_then() -> None:
    outside = Outside(errors=[ValueError("full")] * 3)
    job = working(outside)
    job.flow()
    checkpointed(job)
    job.settle()
    assert outside.worked == []
    assert job.master.report.warnings[-1].startswith(
        "the work after the commit of checkpoint 1 is tried no more, and left to the next commit "
        "or the next start: ValueError: full\n"
    )
    checkpointed(job)
    assert outside.worked == [(1, ROW), (2, ROW)]
    assert debts(job, 2) == {1: [[0, ["row"]]]}


def test_work_that_fails_after_its_limit_is_put_off_once() -> None:
    outside = Outside(errors=[ValueError("late")])
    job = working(outside, commit_retries_max=0, commit_timeout_s=5.0)
    job.flow()
    job.blocking.hanging.add(LANE)
    checkpointed(job)
    while not job.master.report.warnings:
        job.advance()
        job.flow()
    job.settle()
    assert outside.errors == [], "it has failed after all"
    assert sum("is tried no more" in text for text in job.master.report.warnings) == 1


def test_a_job_that_finishes_waits_for_the_work_after_its_last_commit() -> None:
    outside = Outside(errors=[ValueError("busy")])
    job = working(outside, Script(work=Work.ENDED))
    job.blocking.hanging.add(LANE)
    job.flow()
    assert sorted(outside.visible) == [1]
    assert not job.is_over
    job.settle()
    assert job.result.state == "finished"
    assert outside.worked == [(1, ROW)]


def test_a_job_finishes_although_its_last_work_fails_and_the_next_start_does_it() -> None:
    outside = Outside(errors=[ValueError("broken")] * 3)
    job = working(outside, Script(work=Work.ENDED))
    job.settle()
    assert job.result.state == "finished"
    assert outside.worked == []
    job.crash_driver()
    job.settle()
    assert outside.first_worked[0] == 1


def test_a_start_without_work_forgets_what_was_owed() -> None:
    outside = Outside()
    job = working(outside)
    job.flow()
    job.blocking.hanging.add(LANE)
    checkpointed(job, 2)
    assert debts(job, 2) == {1: [[0, ["row"]]]}
    outside.has_work = False
    job.crash_driver()
    job.flow()
    checkpointed(job)
    assert debts(job, 3) == {}
    assert outside.worked == []


def test_an_empty_checkpoint_is_committed_and_followed_by_its_work_also_after_a_crash() -> None:
    class Busy(Target):
        is_busy = True

        def commit(self, checkpoint_id: int, committables: Committables) -> bool:
            if Busy.is_busy:
                raise RetryLater("busy")
            return super().commit(checkpoint_id, committables)

    outside, script = Outside(), Script()
    job = simulated(
        script,
        committer=lambda: Busy(outside),
        after_commit=lambda: outside.work,
        program=lambda script: _nothing_to_commit(script),
        commit_retries_max=9,
        commit_retry_delay_s=60.0,
    )
    job.flow()
    checkpointed(job, 2)
    assert job.store.load(2).uncommitted == {1: []}
    Busy.is_busy = False
    job.crash_driver()
    job.settle()
    assert outside.visible == {1: {}, 2: {}}
    assert outside.worked == [(1, {}), (2, {})]


def _nothing_to_commit(script: Script) -> Any:
    from epochgate.runtime.testing.scripted import ScriptedOperator, ScriptedProgram

    return ScriptedProgram({"op": ScriptedOperator(script)}, script)


def moved(job: SimulatedJob) -> bool:
    """Let one elementary thing happen: an event, a message, a piece of work; False if none can."""
    if job.drain(1):
        return True
    waiting = [step for step in job.steps() if step[0] not in ("work", "late")]
    if any(job.can(step) and job.step(step) for step in waiting):
        return True
    if any(job.run_blocking(lane) for lane in job.blocking.lanes()):
        return True
    return any(job.can(step) and job.step(step) for step in job.steps())


def advance(job: SimulatedJob, steps: int) -> None:
    """Take that number of elementary steps; time passes where there is none."""
    for _ in range(steps):
        if not moved(job):
            job.advance()


def stopped(job: SimulatedJob) -> str:
    job.master.stop()
    job.settle(until=lambda: job.is_over)
    return job.result.state


@pytest.mark.parametrize("is_failing", [False, True], ids=["at once", "after failures"])
def test_whenever_the_driver_dies_each_commit_is_followed_by_its_work_in_order(
    is_failing: bool,
) -> None:
    most = 0
    for moment in range(MOMENTS):
        outside = Outside()
        if is_failing:
            outside.errors = [ValueError("busy")]
            outside.late_errors = [ValueError("no answer")]
        job = working(outside, checkpoint_interval_s=0.5)
        advance(job, moment)
        most = max(most, len(outside.worked))
        job.crash_driver()
        advance(job, SETTLED)
        assert stopped(job) == "finished"
        assert outside.first_worked == sorted(outside.visible), f"after {moment} steps"
    assert most >= 2
