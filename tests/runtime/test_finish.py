"""Simulated jobs that have settled or finished, and those that have failed."""

from __future__ import annotations

import pytest

from epochgate.runtime.testing.simulation import JobHasFailed, SimulatedJob
from tests.runtime.pipeline.test_setting import running
from tests.runtime.scripted import Script, simulated


def failing() -> SimulatedJob:
    """A job whose coordinator never starts."""
    script = Script()
    for _ in range(20):
        script.raise_at("op.start", KeyError("by order of the test"))
    return simulated(script)


def test_a_job_that_finishes_is_finished() -> None:
    job = running()
    job.finish()
    assert job.result.state == "finished"


def test_a_job_that_fails_has_neither_finished_nor_settled_and_says_why() -> None:
    with pytest.raises(JobHasFailed, match=r"the job is failed: .*by order of the test"):
        failing().finish()
    with pytest.raises(JobHasFailed, match=r"by order of the test.*write rest\(\) in the place"):
        failing().settle()


def test_a_job_that_failed_is_at_rest_and_meets_what_a_test_waits_for() -> None:
    job = failing()
    job.rest()
    assert job.result.state == "failed"
    other = failing()
    other.settle(until=lambda: other.is_over)
    assert other.result.state == "failed"


def test_a_job_that_is_canceled_has_settled_and_not_finished() -> None:
    job = running()
    job.master.cancel()
    job.settle()
    with pytest.raises(JobHasFailed, match="the job is canceled"):
        job.finish()
