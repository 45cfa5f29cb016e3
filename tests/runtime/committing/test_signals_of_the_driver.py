"""What a committer on the driver may say of a checkpoint besides that it is committed."""

from __future__ import annotations

from epochgate.runtime import CommitFailed, FailedForKnownReason, RetryLater, UpdateAndRetryLater
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated


def with_commits(script: Script, checkpoints: int) -> SimulatedJob:
    job = simulated(script, commit_retries_max=3, commit_retry_delay_s=60.0)
    job.flow()
    for _ in range(checkpoints):
        job.master.request_checkpoint()
        job.flow()
    return job


def test_a_checkpoint_that_fails_for_a_known_reason_is_left_out_and_the_job_goes_on() -> None:
    known = FailedForKnownReason("the partition is locked")
    job = with_commits(script := Script(errors={"committer.commit": [known]}), 2)
    assert [checkpoint for checkpoint, _ in script.commits] == [2]
    warnings = job.master.report.warnings
    assert warnings == [
        "commit of checkpoint 1 is left out, and its rows are lost: the partition is locked"
    ]
    assert job.store.load(2).uncommitted == {}
    assert not job.is_over


def test_behind_a_checkpoint_that_is_left_out_the_rest_of_the_commit_goes_on() -> None:
    errors: list[BaseException] = [RetryLater("busy"), FailedForKnownReason("locked")]
    job = with_commits(script := Script(errors={"committer.commit": errors}), 3)
    assert script.commits == []
    job.wait(60.0)
    job.settle()
    assert [checkpoint for checkpoint, _ in script.commits][:2] == [2, 3]


def test_a_rest_is_tried_again_and_stored_in_the_place_of_the_whole() -> None:
    rest = UpdateAndRetryLater({0: ["the rest"]})
    job = with_commits(script := Script(errors={"committer.commit": [rest]}), 2)
    assert job.store.load(2).uncommitted == {1: [[0, ["the rest"]]]}
    job.crash_driver()
    job.settle()
    assert script.commits[0] == (1, {0: ["the rest"]})


def test_a_rest_that_is_no_dict_of_committables_fails_the_job_with_its_value() -> None:
    rest = UpdateAndRetryLater(["the rest"])  # type: ignore[arg-type]
    job = with_commits(Script(errors={"committer.commit": [rest]}), 1)
    job.settle(until=lambda: job.is_over)
    assert "the rest of checkpoint 1 in UpdateAndRetryLater is ['the rest']" in str(
        job.result.reason
    )


def test_the_count_of_tries_survives_the_driver() -> None:
    errors: list[BaseException] = [RetryLater("busy") for _ in range(4)]
    job = simulated(
        Script(errors={"committer.commit": errors}), commit_retries_max=3, commit_retry_delay_s=60.0
    )
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    job.wait(60.0)
    job.flow()
    job.master.request_checkpoint()
    job.flow()
    job.crash_driver()
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert len(errors) == 0


def test_an_event_tells_what_is_left_out() -> None:
    event = CommitFailed(0.0, (4,), 0.5, 0, False, "locked", is_left_out=True)
    assert str(event) == "the commit of checkpoint 4 is left out after try 1: locked"
