"""A single message that never comes, and what that costs a job.

No connection loses one message alone: a connection that breaks fails its attempt, and nothing of
this happens. It is what remains if a program, ours or another, drops one.

Events of a coordinator are numbered, so a lost one is missed as soon as the next arrives: the
attempt fails, and its subtask restarts. The last one is missed only by the checkpoint, which
waits for its confirmation; and while it waits, the events behind it are held back. So it takes the
checkpoint's whole timeout until the next event arrives, or, when there is none, until more
checkpoints than are tolerated have failed and everything restarts. Where no checkpoints are taken,
the next event alone misses it.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.testing.faulty_transport import Fault
from epochgate.runtime.testing.scripted import ScriptedProvider
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, echo_program, simulated

TIMEOUT_S = 10.0
INTERVAL_S = 1.0


def running(**settings: Any) -> tuple[Script, SimulatedJob]:
    """One subtask, which runs; checkpoints every second, unless the settings say otherwise."""
    script = Script()
    changes = {"checkpoint_interval_s": INTERVAL_S, "checkpoint_timeout_s": TIMEOUT_S, **settings}
    job = simulated(script, **changes)
    job.flow()
    assert job.machines.attempt[0].is_running()
    return script, job


def after(job: SimulatedJob, seconds: float, held: tuple[str, ...] = ()) -> None:
    """Let time pass, one timer after the other, and everything happen that can, but for `held`."""
    end_s = job.clock.now_s() + seconds
    while (due_s := job.master.queue.next_due_s()) is not None and due_s <= end_s:
        job.advance()
        job.flow(held)
    job.wait(end_s - job.clock.now_s())


def send(script: Script, job: SimulatedJob, event: str) -> Any:
    future = script.coordinator.send(0, event)
    job.flow()
    return future


def lose(job: SimulatedJob, tag: str) -> None:
    """Lose the next message of this kind."""
    job.faults.doom(tag, "lost")


def reasons(job: SimulatedJob) -> list[str]:
    """Return why checkpoints were aborted."""
    return [c.reason for c in job.master.report.checkpoints if not c.is_completed]


def test_an_event_behind_a_lost_one_fails_the_attempt_at_once() -> None:
    script, job = running()
    lose(job, "event")
    lost, next_one = send(script, job, "a"), send(script, job, "b")
    assert [type(future.exception()).__name__ for future in (lost, next_one)] == ["EventLost"] * 2
    assert "one before it did not" in job.master.report.failures[0].reason
    job.settle()
    report = job.master.report
    assert (report.regional_restarts, report.global_restarts, reasons(job)) == (1, 0, [])


def test_a_lost_last_event_costs_every_tolerated_checkpoint_its_timeout_and_then_a_restart() -> (
    None
):
    script, job = running(tolerable_checkpoint_failures=2)
    lose(job, "event")
    lost = send(script, job, "a")
    after(job, INTERVAL_S + 2 * TIMEOUT_S)
    assert (lost.done(), job.master.report.global_restarts) == (False, 0)
    after(job, TIMEOUT_S)
    assert not script.told("op.reset_to_checkpoint")
    after(job, INTERVAL_S)
    assert type(lost.exception()).__name__ == "EventLost"
    assert len(script.told("op.reset_to_checkpoint")) == 1
    report = job.master.report
    assert (report.regional_restarts, report.global_restarts) == (0, 1)
    assert len(reasons(job)) == 3
    assert all("these coordinators have not completed it: op" in why for why in reasons(job))
    send(script, job, "a again")
    after(job, 2 * INTERVAL_S)
    assert report.checkpoints[-1].is_completed


def test_an_event_behind_a_lost_one_is_held_back_until_the_checkpoint_gives_up() -> None:
    script, job = running(tolerable_checkpoint_failures=2)
    lose(job, "event")
    lost = send(script, job, "a")
    after(job, INTERVAL_S)
    held = send(script, job, "b")
    after(job, TIMEOUT_S - 0.1)
    assert (lost.done(), held.done()) == (False, False)
    after(job, 0.1)
    assert type(lost.exception()).__name__ == "EventLost"
    assert type(held.exception()).__name__ == "EventLost"
    report = job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)
    # The second had just begun when the attempt failed, and does not count as a failure.
    assert ["longer" in why for why in reasons(job)] == [True, False]
    assert job.machines.checkpoint.failures == 1


def test_a_lost_confirmation_is_made_up_for_by_the_next() -> None:
    script, job = running()
    lose(job, "confirm")
    handled = send(script, job, "a")
    assert not handled.done()
    send(script, job, "b")
    assert (handled.done(), handled.exception()) == (True, None)
    after(job, 3 * INTERVAL_S)
    assert job.master.report.failures == []
    assert reasons(job) == []


def test_the_confirmation_behind_a_lost_one_waits_until_the_checkpoint_gives_up() -> None:
    script, job = running()
    lose(job, "confirm")
    handled = send(script, job, "a")
    after(job, INTERVAL_S)
    send(script, job, "b")
    assert not handled.done()
    after(job, TIMEOUT_S)
    assert (handled.done(), handled.exception()) == (True, None)
    after(job, INTERVAL_S)
    report = job.master.report
    assert (len(reasons(job)), report.checkpoints[-1].is_completed, report.failures) == (
        1,
        True,
        [],
    )


def test_a_confirmation_that_comes_a_checkpoint_late_counts_for_the_next() -> None:
    script, job = running()
    job.faults.doom("confirm", "late")
    handled = script.coordinator.send(0, "a")
    after(job, INTERVAL_S + TIMEOUT_S, held=("late",))
    assert len(reasons(job)) == 1
    assert job.machines.snapshot[0].state == "confirming"
    assert not handled.done()
    job.flow()
    assert (handled.done(), handled.exception()) == (True, None)
    assert job.master.report.checkpoints[-1].is_completed
    assert job.master.report.failures == []


@pytest.mark.parametrize("tag", ["event", "confirm"])
def test_whatever_is_lost_last_the_job_stops_once_it_has_restarted(tag: str) -> None:
    script, job = running(tolerable_checkpoint_failures=0)
    lose(job, tag)
    send(script, job, "a")
    job.master.stop()
    job.settle()
    assert job.result.state == "finished"
    assert job.master.report.global_restarts == 1


def test_without_checkpoints_a_lost_last_event_is_missed_by_the_next_alone() -> None:
    script, job = running(checkpoint_interval_s=None)
    lose(job, "event")
    lost = send(script, job, "a")
    after(job, 1000 * TIMEOUT_S)
    assert not lost.done()
    next_one = send(script, job, "b")
    assert [type(future.exception()).__name__ for future in (lost, next_one)] == ["EventLost"] * 2


@pytest.mark.parametrize(("tag", "to"), [("restore", "task"), ("run", "driver")])
def test_an_attempt_that_never_says_that_it_runs_is_replaced(
    tag: str, to: Literal["task", "driver"]
) -> None:
    script = Script()
    job = SimulatedJob(
        lambda start: JobConfiguration("scripted", 1, (ScriptedProvider("op", script),)),
        lambda subtask: echo_program(script),
        faults=[Fault(tag, 1, "lost", to=to)],
    )
    job.flow()
    after(job, 1000 * TIMEOUT_S)
    assert job.machines.attempt[0].is_running()
