"""What a stored checkpoint carries of earlier ones, and what a start makes of it."""

from __future__ import annotations

from typing import Any

from epochgate.runtime import RetryLater
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

ROW = {0: ["row"]}


def carried(job: SimulatedJob, checkpoint: int) -> dict[int, Any]:
    """What a stored checkpoint says of earlier ones."""
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
    assert str(job.result.reason) == "commit of checkpoints [1] failed: no table"
