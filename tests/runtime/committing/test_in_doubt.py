"""Commits in doubt of a job that commits in several steps: made by its start, or given up."""

from __future__ import annotations

import pytest

from epochgate.runtime.in_doubt import CommitsInSteps, commit_in_doubt, give_up
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import Target
from tests.runtime.committing.steady import SteadySink, steady, take


def interrupted(target: Target) -> SimulatedJob:
    """Of checkpoint 1 subtask 0 has committed nothing when the driver dies behind checkpoint 2."""
    target.signals["1-0"] = [["retry_later"]]
    job = steady(SteadySink(target))
    take(job, 2)
    assert target.globally == {}
    job.shelf.end_driver()
    return job


def store_of(job: SimulatedJob) -> InMemoryCheckpointStore:
    return InMemoryCheckpointStore(job.shelf, job_id="job")


def test_steps_of_a_job_are_not_passed_over_by_a_command() -> None:
    sink = SteadySink(target := Target())
    job = interrupted(target)
    with pytest.raises(CommitsInSteps, match="commits in its tasks, or through operators"):
        commit_in_doubt(store_of(job), sink.create_committer, lambda: 0.0)
    assert target.globally == {}


def test_what_is_given_up_in_the_tasks_is_committed_by_no_later_start() -> None:
    job = interrupted(target := Target())
    with store_of(job) as store:
        assert sorted(give_up(store, [1], 0.0)) == [1]
    job.crash_driver()
    job.settle()
    take(job)
    assert 1 not in target.globally
    assert "1-0" not in target.in_tasks
    assert set(target.globally) >= {2}
