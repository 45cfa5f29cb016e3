"""The traces of earlier checkpoints in a stored one, and what a start makes of them."""

from __future__ import annotations

from typing import Any

from epochgate.runtime import (
    CommitImpossible,
    Committables,
    Committed,
    Committer,
    JobConfiguration,
    JobEvent,
    JobListener,
    RetryLater,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

ROW = {0: ["row"]}


def carried(job: SimulatedJob, checkpoint: int) -> dict[int, Any]:
    """Return what a stored checkpoint says of earlier ones."""
    return job.store.load(checkpoint).uncommitted


def with_two_checkpoints(script: Script) -> SimulatedJob:
    """A job that has stored a second checkpoint while the commit of the first was tried again."""
    job = simulated(script, commit_retries_max=3, commit_retry_delay_s=60.0)
    job.flow()
    for _ in range(2):
        job.master.request_checkpoint()
        job.flow()
    assert script.commits == []
    return job


def test_what_is_not_known_to_be_committed_travels_with_the_next_checkpoint() -> None:
    job = with_two_checkpoints(Script(errors={"committer.commit": [RetryLater("busy")]}))
    assert carried(job, 1) == {}
    assert carried(job, 2) == {1: [[0, ["row"]]]}


def test_a_checkpoint_carries_nothing_that_is_known_to_be_committed() -> None:
    script = Script(errors={"committer.commit": [RetryLater("busy")]})
    job = with_two_checkpoints(script)
    job.wait(60.0)
    job.flow()
    assert script.commits == [(1, ROW), (2, ROW)]
    assert job.master.report.committed_upto == 2
    job.master.request_checkpoint()
    job.flow()
    assert carried(job, 3) == {}


def test_a_start_commits_what_the_restored_checkpoint_carries_before_its_own() -> None:
    script = Script(errors={"committer.commit": [RetryLater("busy")]})
    job = with_two_checkpoints(script)
    job.crash_driver()
    job.settle()
    assert script.commits == [(1, ROW), (2, ROW)]
    assert job.master.report.committed_upto == 2


def test_a_start_that_dies_before_it_has_committed_hands_the_ledger_on() -> None:
    script = Script(errors={"committer.commit": [RetryLater("busy"), RetryLater("busy")]})
    job = with_two_checkpoints(script)
    job.crash_driver()
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    assert carried(job, 3) == {1: [[0, ["row"]]], 2: [[0, ["row"]]]}
    assert script.commits == []
    job.crash_driver()
    job.settle()
    assert [checkpoint for checkpoint, _ in script.commits] == [1, 2, 3]


def test_a_commit_that_hangs_holds_up_no_checkpoint() -> None:
    script = Script()
    job = simulated(script)
    job.flow()
    job.blocking.hanging.add("commit")
    for _ in range(2):
        job.master.request_checkpoint()
        job.flow()
    assert carried(job, 2) == {1: [[0, ["row"]]]}
    assert script.commits == []
    assert not job.run_blocking()
    assert job.run_blocking("commit")
    assert script.commits == [(1, ROW)]
    job.settle()
    assert script.commits == [(1, ROW), (2, ROW)]


def test_warnings_and_causes_name_what_a_commit_covers() -> None:
    script = Script(errors={"committer.commit": [RetryLater("busy"), OSError("no table")]})
    job = with_two_checkpoints(script)
    job.settle(until=lambda: job.is_over)
    assert job.master.report.warnings[-1] == "commit of checkpoints [1] will be tried again: busy"
    reason = str(job.result.reason)
    assert reason.splitlines()[0] == "commit of checkpoints [1] failed: OSError: no table"


def test_the_pause_before_a_commit_grows_up_to_a_bound_and_is_never_less_than_asked_for() -> None:
    job = JobConfiguration("job", 1, commit_retry_delay_s=1.0, commit_retry_delay_max_s=5.0)
    assert [job.commit_pause_s(tries) for tries in range(1, 5)] == [1.0, 2.0, 4.0, 5.0]
    job = JobConfiguration("job", 1, commit_retry_delay_s=60.0)
    assert [job.commit_pause_s(tries) for tries in (1, 2)] == [60.0, 60.0]


def test_a_commit_that_is_impossible_is_not_tried_again_and_stays_in_doubt() -> None:
    script = Script(errors={"committer.commit": [CommitImpossible("part 3 is gone")]})
    job = simulated(script, commit_retries_max=3)
    job.flow()
    job.master.request_checkpoint()
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    reason = str(job.result.reason)
    assert reason.startswith("commit of checkpoints [1] is impossible: part 3 is gone. ")
    assert "`epochgate commits give-up DIR 1`" in reason, "the way on is named"
    assert script.commits == []
    stored = job.store.load(1)
    assert (stored.committables, stored.uncommitted) == (ROW, {})
    job.crash_driver()
    job.settle()
    assert script.commits == [(1, ROW)], "the next start asks again: the target may take it by now"


def test_of_commits_that_cover_several_checkpoints_the_impossible_one_is_named() -> None:
    class SecondImpossible(Script):
        def at(self, place: str, *arguments: Any) -> None:
            super().at(place, *arguments)
            if place == "committer.commit" and arguments[0] == 2:
                raise CommitImpossible("part 3 is gone.")

    script = SecondImpossible(errors={"committer.commit": [RetryLater("busy")]})
    job = with_two_checkpoints(script)
    job.crash_driver()
    job.settle(until=lambda: job.is_over)
    reason = str(job.result.reason)
    assert reason.startswith("commit of checkpoints [1, 2] is impossible: part 3 is gone. ")
    assert "`epochgate commits give-up DIR 2`" in reason


class Told(JobListener):
    """Keeps what it hears of commits."""

    def __init__(self) -> None:
        self.commits: list[Committed] = []

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, Committed):
            self.commits.append(event)


class Numbered(Committer):
    """A target that keeps the number of its last checkpoint, and loses some answers."""

    def __init__(self, lost: int) -> None:
        self.last, self.lost = 0, lost

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        is_new = checkpoint_id > self.last
        self.last = max(self.last, checkpoint_id)
        if self.lost:
            self.lost -= 1
            raise RetryLater("no answer")
        return is_new


def test_a_commit_whose_answer_was_lost_is_told_as_one_that_took_effect_before() -> None:
    told, target = Told(), Numbered(lost=1)
    job = simulated(Script(), committer=lambda: target, listeners=[told])
    job.flow()
    for _ in range(2):
        job.master.request_checkpoint()
        job.flow()
    job.settle()
    told_of = [(one.checkpoint_ids, one.committed_before) for one in told.commits]
    assert told_of == [((1,), (1,)), ((2,), ())]
    assert job.master.report.committed_upto == 2
