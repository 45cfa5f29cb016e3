"""A coordinator that is recreated at every reset, and how the old one is kept from doing harm."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime import CoordinatorReplaced, EventLost
from epochgate.runtime.testing.scripted import ScriptedCoordinator
from tests.runtime.recreated import Staged


def test_the_fenced_context_knows_operator_and_parallelism() -> None:
    context = Staged(subtasks=2).newest.context
    assert (context.operator_id, context.parallelism) == ("op", 2)
    assert context.load("json:dumps")(1) == "1"
    assert context.checkpoints.last_completed_id == 0


def test_a_coordinator_that_is_not_replaced_may_fail_the_job() -> None:
    staged = Staged()
    staged.newest.context.fail_job("count is off")
    staged.job.settle()
    assert staged.restarts == 1
    assert "count is off" in staged.failed()[0]


@pytest.mark.parametrize("is_before", [True, False])
def test_a_replaced_coordinator_cannot_fail_the_job(is_before: bool) -> None:
    staged = Staged()
    old = staged.newest
    if is_before:  # its turn comes after the reset
        old.context.fail_job("count is off")
    staged.reset()
    if not is_before:
        old.context.fail_job(ValueError("count is off"))
    staged.job.settle()
    assert (staged.restarts, staged.failed()) == (0, [])


def test_a_reset_makes_a_new_coordinator_with_the_state_and_never_restores_the_old() -> None:
    staged = Staged()
    staged.reset(2, b"state")
    staged.job.settle()
    first, second = staged.maker.made
    assert first.script.calls == [
        "op.start()",
        "op.execution_attempt_ready(0, 0)",
        "op.close()",
    ]
    assert second.script.calls == ["op.reset_to_checkpoint(2, b'state')", "op.start()"]
    assert staged.wrapper.inner is second


def test_a_job_that_resumes_restores_the_first_coordinator_before_it_starts() -> None:
    staged = Staged()
    wanted = staged.job.master.request_checkpoint()
    staged.job.settle(wanted.done)
    staged.job.crash_driver()
    staged.job.settle()
    assert staged.newest.script.calls == [
        "op.reset_to_checkpoint(1, b'0')",
        "op.start()",
        "op.execution_attempt_ready(0, 0)",
    ]
    assert len(staged.maker.made) == 2


def test_a_close_that_takes_too_long_fails_the_job_and_holds_no_successor_up() -> None:
    staged = Staged(close_timeout_s=7.0)
    staged.reset(0, b"state")
    staged.job.flow(("blocking",))
    assert staged.wrapper.inner is None
    staged.job.wait(7.0)
    staged.job.drain()
    successor = staged.maker.made[1].script
    assert successor.calls[:2] == ["op.reset_to_checkpoint(0, b'state')", "op.start()"]
    assert "did not close within 7 s" in staged.failed()[0]
    staged.job.settle()
    assert staged.restarts == 1
    assert staged.wrapper.inner is staged.newest


def test_a_close_that_fails_fails_the_job() -> None:
    staged = Staged()
    staged.maker.pattern.raise_at("op.close", OSError("socket is gone"))
    staged.reset()
    staged.job.settle()
    assert staged.restarts == 1
    assert "failed to close: OSError('socket is gone')" in staged.failed()[0]
    assert staged.wrapper.inner is staged.newest


def test_calls_made_during_a_long_close_reach_the_new_coordinator_in_order() -> None:
    staged = Staged()
    staged.reset(5, b"state")
    wrapper = staged.wrapper
    result: Future[bytes] = Future()
    wrapper.handle_event_from_operator(0, 0, "hello")
    wrapper.execution_attempt_failed(0, 0, "killed")
    wrapper.subtask_reset(0, 5)
    wrapper.notify_checkpoint_complete(5)
    wrapper.notify_checkpoint_aborted(6)
    wrapper.checkpoint(7, result)
    answer = wrapper.handle_client_request("who")
    assert len(staged.maker.made) == 1
    assert not result.done()
    staged.job.settle()
    assert staged.newest.script.calls == [
        "op.reset_to_checkpoint(5, b'state')",
        "op.start()",
        "op.handle_event_from_operator(0, 0, 'hello')",
        "op.execution_attempt_failed(0, 0, 'killed')",
        "op.subtask_reset(0, 5)",
        "op.notify_checkpoint_complete(5)",
        "op.notify_checkpoint_aborted(6)",
        "op.checkpoint(7)",
        "op.handle_client_request('who')",
    ]
    assert (result.result(0), answer.result(0)) == (b"1", 1)


def test_an_event_is_handled_once_the_coordinator_of_the_time_has_handled_it() -> None:
    staged = Staged()
    staged.reset()
    handled = staged.wrapper.handle_event_from_operator(0, 0, "hello")
    assert handled is not None
    assert not handled.done()
    staged.job.settle()
    assert handled.done()
    assert staged.wrapper.handle_event_from_operator(0, 0, "again") is None


def test_an_aborted_checkpoint_is_told() -> None:
    staged = Staged()
    staged.wrapper.notify_checkpoint_aborted(3)
    assert staged.newest.script.calls[-1] == "op.notify_checkpoint_aborted(3)"


def test_a_replaced_coordinator_reaches_neither_tasks_nor_the_job_nor_its_peers() -> None:
    staged = Staged()
    old, told = staged.newest, list[Any]()
    context, gateway = old.context, old.gateways[0]
    context.coordinator_store.put("leader", 0)
    context.post_later(5, told.append, "timer")
    context.run_async(lambda: 1, lambda result, error: told.append(result))
    context.post(told.append, "posted")
    staged.reset()
    context.post(told.append, "posted later")
    context.run_async(lambda: told.append("work"), lambda *_: None)
    context.coordinator_store.put("leader", 1)
    lost = gateway.send_event("from the past")
    asked = context.checkpoints.request()
    staged.job.wait(5)
    staged.job.settle()
    assert told == []
    assert context.coordinator_store.get("leader") == 0
    assert isinstance(lost.exception(), EventLost)
    assert isinstance(asked.exception(0), CoordinatorReplaced)
    assert staged.job.machines.gateway[0, 0].sent == 0
    assert staged.job.master.report.checkpoints == []


def test_a_replaced_coordinators_coroutines_are_cancelled() -> None:
    staged, told = Staged(), list[Any]()
    context = staged.newest.context

    async def poll() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    context.run_coroutine(poll(), lambda *_: told.append("then"))
    staged.job.settle()
    staged.reset()
    context.run_coroutine(poll(), lambda *_: told.append("then")).cancel()
    staged.job.settle()
    assert told == ["cancelled"]


def test_who_waits_for_a_replaced_coordinator_learns_it() -> None:
    staged = Staged()
    answer = staged.wrapper.handle_client_request("later")
    staged.reset()
    assert isinstance(answer.exception(0), CoordinatorReplaced)
    result: Future[bytes] = Future()
    staged.wrapper.checkpoint(1, result)
    staged.reset()
    assert isinstance(result.exception(0), CoordinatorReplaced)
    staged.maker.later[0].set_result("too late")


def test_a_future_of_an_old_coordinator_completes_no_later_checkpoint() -> None:
    staged = Staged()
    staged.maker.pattern.is_completing = staged.newest.script.is_completing = False
    first = staged.job.master.request_checkpoint()
    staged.job.flow()
    old = staged.newest
    old.context.fail_job("count is off")
    staged.job.settle()
    assert first.exception(0) is not None
    second = staged.job.master.request_checkpoint()
    staged.job.flow()
    old.results[1].set_result(b"of the past")
    staged.job.flow()
    assert not second.done()
    staged.newest.results[2].set_result(b"of now")
    staged.job.settle(second.done)
    assert staged.job.store.load(2).coordinators == {"op": b"of now"}


@pytest.mark.parametrize("method", ["create", "reset_to_checkpoint", "start"])
def test_a_successor_that_cannot_be_made_fails_the_job_which_makes_another(method: str) -> None:
    staged = Staged()
    staged.maker.pattern.raise_at(f"op.{method}", OSError("no such table"))
    staged.reset(0, None)
    staged.job.drain()
    staged.job.run_blocking()
    staged.job.drain()
    assert staged.wrapper.inner is None
    result: Future[bytes] = Future()
    staged.wrapper.checkpoint(1, result)
    assert isinstance(result.exception(0), CoordinatorReplaced)
    assert isinstance(staged.wrapper.handle_client_request("who").exception(0), CoordinatorReplaced)
    staged.job.settle()
    assert staged.restarts == 1
    assert "no such table" in staged.failed()[0]
    assert staged.newest.script.calls[-1] == "op.execution_attempt_ready(0, 1)"


@pytest.mark.parametrize("is_there", [True, False])
def test_resets_in_a_row_make_one_successor(is_there: bool) -> None:
    staged = Staged()
    if not is_there:
        staged.maker.pattern.raise_at("op.create", OSError("no such table"))
        staged.reset()
        staged.job.run_blocking()
        staged.job.drain(1)
    before = len(staged.maker.made)
    for state in (b"one", b"two", b"three"):
        staged.reset(1, state)
    staged.job.flow()
    made = [coordinator.script.calls[0] for coordinator in staged.maker.made[before:]]
    assert made[0] == "op.reset_to_checkpoint(1, b'three')"
    assert "one" not in str(made)
    assert "two" not in str(made)


@pytest.mark.parametrize("error", [KeyError("split 7"), SystemExit("split 7")])
def test_behind_a_deferred_call_that_raises_no_other_is_made(error: BaseException) -> None:
    staged = Staged()
    staged.maker.pattern.raise_at("op.handle_event_from_operator", error)
    staged.reset()
    staged.wrapper.handle_event_from_operator(0, 0, "hello")
    staged.wrapper.notify_checkpoint_complete(1)
    asked = staged.wrapper.handle_client_request("who")
    staged.job.settle()
    assert staged.maker.made[1].script.told("op.notify_checkpoint_complete") == []
    assert isinstance(asked.exception(0), CoordinatorReplaced)
    assert staged.restarts == 1
    assert "split 7" in staged.failed()[0]
    assert staged.wrapper.inner is staged.newest is staged.maker.made[2]


def test_a_client_whose_deferred_request_raises_is_told_and_the_calls_behind_it_are_made() -> None:
    staged = Staged()
    staged.reset()
    asked = staged.wrapper.handle_client_request("raise")
    staged.wrapper.notify_checkpoint_complete(1)
    staged.job.settle()
    assert isinstance(asked.exception(0), ValueError)
    assert staged.newest.script.told("op.notify_checkpoint_complete") == [(1,)]
    with pytest.raises(ValueError, match="no such request"):
        staged.wrapper.handle_client_request("raise")
    assert staged.wrapper.inner is staged.newest
    assert staged.restarts == 0


@pytest.mark.parametrize("is_deferred", [False, True])
def test_a_client_alone_is_told_of_a_request_that_ends_the_interpreter(is_deferred: bool) -> None:
    staged = Staged()
    if is_deferred:
        staged.maker.pattern.raise_at("op.handle_client_request", SystemExit(3))
        staged.reset()
    else:
        staged.newest.script.raise_at("op.handle_client_request", SystemExit(3))
    asked = staged.job.master.request("op", "who")
    staged.job.settle(asked.done)
    assert isinstance(asked.exception(0), SystemExit)
    wanted = staged.job.master.request_checkpoint()
    staged.job.settle(wanted.done)
    assert (wanted.result(0), staged.restarts) == (1, 0)
    assert staged.wrapper.inner is staged.newest


def test_a_job_that_ends_while_a_close_runs_gives_up_who_waits() -> None:
    staged = Staged()
    staged.reset()
    answer = staged.job.master.request("op", "who")
    staged.job.drain()
    staged.job.master.cancel()
    staged.job.settle(lambda: staged.job.is_over)
    staged.job.settle()
    assert len(staged.maker.made) == 1
    assert staged.maker.made[0].script.calls[-1] == "op.close()"
    assert answer.exception(0) is not None


def test_an_old_coordinators_thread_cannot_get_in_between() -> None:
    staged = Staged()
    old = staged.newest
    ready, go = threading.Barrier(2), threading.Event()

    def insist() -> None:
        ready.wait(60)
        while not go.is_set():
            old.context.fail_job("again")
            old.gateways[0].send_event("again")
        old.context.fail_job("once more")

    staged.reset()
    thread = threading.Thread(target=insist)
    thread.start()
    ready.wait(60)
    staged.job.drain(2000)
    go.set()
    thread.join(60)
    staged.job.settle()
    assert (staged.restarts, staged.failed()) == (0, [])
    assert staged.job.machines.gateway[0, 0].sent == 0


class Rounds:
    """Resets, events, failures and checkpoints at random, and what each generation is due."""

    def __init__(self, staged: Staged, seed: int) -> None:
        self.staged, self.wrapper = staged, staged.wrapper
        self._chance = random.Random(seed)
        self.due: list[list[str]] = [list(staged.newest.script.calls)]
        self.taken: list[tuple[int, Future[bytes]]] = []

    def play(self, number: int) -> None:
        kind = self._chance.choice(["reset", "event", "failed", "checkpoint", "close", "old fails"])
        if kind == "reset":
            self.wrapper.reset_to_checkpoint(number, b"%d" % number)
            self.due.append([f"op.reset_to_checkpoint({number}, b'{number}')", "op.start()"])
        elif kind == "event":
            self.wrapper.handle_event_from_operator(0, 0, number)
            self.due[-1].append(f"op.handle_event_from_operator(0, 0, {number})")
        elif kind == "failed":
            self.wrapper.execution_attempt_failed(0, number, "killed")
            self.due[-1].append(f"op.execution_attempt_failed(0, {number}, 'killed')")
        elif kind == "checkpoint":
            result: Future[bytes] = Future()
            self.wrapper.checkpoint(number, result)
            self.taken.append((len(self.due) - 1, result))
            self.due[-1].append(f"op.checkpoint({number})")
        elif kind == "close":
            self.staged.job.run_blocking()
            self.staged.job.drain()
        else:
            for old in self.staged.maker.made[:-1]:
                old.context.fail_job("of the past")
            self.staged.job.drain()

    def made(self, generation: int) -> ScriptedCoordinator | None:
        """The coordinator of a generation; None if it was replaced before it could be made."""
        first = self.due[generation][0]
        found = [made for made in self.staged.maker.made if made.script.calls[:1] == [first]]
        return found[0] if found else None


def test_a_thousand_rounds_let_each_coordinator_see_its_own_generation_only() -> None:
    staged = Staged()
    rounds = Rounds(staged, seed=7)
    for number in range(1, 1001):
        rounds.play(number)
    staged.job.settle()
    for generation, due in enumerate(rounds.due):
        made = rounds.made(generation)
        told = due if made is None else made.script.calls
        assert [call for call in told if call != "op.close()"] == due
    assert staged.newest.script.calls == rounds.due[-1]
    assert len(staged.maker.made) > 50
    for generation, result in rounds.taken:
        made = rounds.made(generation)
        outcome = None if result.exception(0) is not None else result.result(0)
        assert outcome == (None if made is None else made.script.state)
    assert (staged.restarts, staged.failed()) == (0, [])
    staged.job.master.cancel()
    staged.job.settle(lambda: staged.job.is_over)
    assert all(made.script.calls.count("op.close()") == 1 for made in staged.maker.made)
