"""The end of a job, at the moments that a search of all interleavings has pointed at."""

from __future__ import annotations

from epochgate.fsm import Outcome
from epochgate.models import Job


def running_job() -> Job:
    job = Job(subtasks=1, coordinators=0)
    job.lifecycle.start()
    job.attempt[0].connect(1)
    job.attempt[0].initialize(1)
    job.attempt[0].run(1)
    return job


def test_a_job_that_was_stopped_before_it_began_does_not_begin() -> None:
    job = Job(subtasks=1, coordinators=1)
    job.lifecycle.stop()
    assert job.lifecycle.start() is Outcome.IGNORED
    assert job.lifecycle.state == "canceled"
    assert job.attempt[0].state == "created"


def test_a_cancelled_job_waits_for_the_store_and_then_ends() -> None:
    job = running_job()
    job.request.submit()
    job.attempt[0].acknowledge(1, 1, False, b"")
    assert job.checkpoint.state == "storing"
    job.attempt[0].lost(1, "killed")
    job.lifecycle.cancel("enough")
    assert job.lifecycle.state == "canceling"
    job.checkpoint.stored(1)
    assert job.lifecycle.state == "canceled"
    assert job.checkpoint.completed == 1


def test_the_end_of_the_last_checkpoint_may_be_the_end_of_the_job() -> None:
    job = running_job()
    job.request.submit()
    job.attempt[0].acknowledge(1, 1, False, b"")
    job.attempt[0].lost(1, "killed")
    job.lifecycle.give_up("enough")
    job.checkpoint.store_failed(1, "disk full")
    assert job.lifecycle.state == "failed"
    assert job.checkpoint.completed == 0
