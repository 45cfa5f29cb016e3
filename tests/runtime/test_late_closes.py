"""A coordinator that is recreated: closes that end late, and calls whose successor never comes."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from epochgate.runtime import CoordinatorReplaced
from tests.runtime.recreated import Staged

FIRST_CLOSE = "coordinator-op-close"
"""The lane of closes, until one of them is given up."""


def given_up() -> Staged:
    """The close of the first coordinator hangs and was given up; its successor is there."""
    staged = Staged(close_timeout_s=7.0)
    staged.reset()
    staged.job.flow(("blocking",))
    staged.job.wait(7.0)
    staged.job.drain()
    assert len(staged.maker.made) == 2
    assert len(staged.failed()) == 1
    return staged


def end_oldest_close(staged: Staged) -> None:
    assert staged.job.run_blocking()
    staged.job.drain()


@pytest.mark.parametrize("fails", [False, True])
def test_a_close_that_ends_after_it_was_given_up_is_not_taken_for_the_next(fails: bool) -> None:
    staged = given_up()
    if fails:
        staged.maker.pattern.raise_at("op.close", OSError("socket is gone"))
    staged.reset()
    end_oldest_close(staged)
    assert staged.wrapper.inner is None
    assert len(staged.maker.made) == 2
    end_oldest_close(staged)
    assert len(staged.maker.made) == 3
    assert len(staged.failed()) == 1
    staged.job.settle()
    assert staged.restarts == 1
    assert staged.wrapper.inner is staged.newest


def restarted() -> Staged:
    """The close of the first coordinator hangs still, and the job has restarted because of it."""
    staged = Staged(close_timeout_s=7.0)
    staged.job.blocking.hanging.add(FIRST_CLOSE)
    staged.reset()
    for seconds in (0.0, 7.0, 1.0, 1.0):
        staged.job.wait(seconds)
        staged.job.flow()
    assert (staged.restarts, len(staged.failed())) == (1, 1)
    assert staged.wrapper.inner is staged.newest
    return staged


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_awaiting", [False, True])
def test_a_close_that_ends_when_the_job_runs_again_fails_nothing(
    fails: bool, is_awaiting: bool
) -> None:
    staged = restarted()
    if is_awaiting:
        staged.reset()
        staged.job.drain()
    if fails:
        staged.maker.pattern.raise_at("op.close", OSError("socket is gone"))
    assert staged.job.run_blocking(FIRST_CLOSE)
    staged.job.settle()
    assert (staged.restarts, len(staged.failed())) == (1, 1)


@pytest.mark.parametrize("fails", [False, True])
def test_a_close_that_ends_after_its_successor_was_made_makes_no_difference(fails: bool) -> None:
    staged = given_up()
    if fails:
        staged.maker.pattern.raise_at("op.close", OSError("socket is gone"))
    end_oldest_close(staged)
    assert staged.wrapper.inner is staged.newest
    assert len(staged.failed()) == 1
    staged.job.settle()
    assert staged.restarts == 1


def test_the_timer_of_a_close_that_has_ended_makes_no_difference() -> None:
    staged = Staged(close_timeout_s=7.0)
    staged.reset()
    end_oldest_close(staged)
    staged.job.wait(7.0)
    assert staged.wrapper.inner is staged.newest
    assert (len(staged.maker.made), staged.failed()) == (2, [])


def test_the_timer_of_a_close_that_has_ended_is_not_taken_for_the_next_one_s() -> None:
    staged = Staged(close_timeout_s=7.0)
    staged.reset()
    end_oldest_close(staged)
    staged.job.wait(3.0)
    staged.reset()
    staged.job.flow(("blocking",))
    staged.job.wait(4.0)
    assert staged.wrapper.inner is None
    assert (len(staged.maker.made), staged.failed()) == (2, [])
    end_oldest_close(staged)
    assert (len(staged.maker.made), staged.failed()) == (3, [])


def test_calls_that_wait_for_a_successor_that_cannot_be_made_are_given_up() -> None:
    staged = Staged()
    staged.maker.pattern.raise_at("op.create", OSError("no such table"))
    staged.reset()
    result: Future[bytes] = Future()
    staged.wrapper.checkpoint(1, result)
    answer = staged.wrapper.handle_client_request("who")
    assert not answer.done()
    end_oldest_close(staged)
    assert isinstance(result.exception(0), CoordinatorReplaced)
    assert isinstance(answer.exception(0), CoordinatorReplaced)


def test_calls_that_wait_when_the_job_ends_are_given_up() -> None:
    staged = Staged()
    staged.reset()
    answer = staged.wrapper.handle_client_request("who")
    staged.wrapper.close()
    assert isinstance(answer.exception(0), CoordinatorReplaced)


def test_a_job_that_begins_while_its_coordinator_is_replaced_starts_the_successor() -> None:
    staged = Staged(is_up=False)
    for state in (b"first", b"second"):
        staged.reset(1, state)
    staged.job.settle()
    first, second = staged.maker.made
    assert first.script.calls == ["op.reset_to_checkpoint(1, b'first')", "op.close()"]
    assert second.script.calls[:2] == ["op.reset_to_checkpoint(1, b'second')", "op.start()"]
