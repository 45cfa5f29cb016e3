"""Calls with a limit: their thread, their end, and what is told of one that is late."""

from __future__ import annotations

import gc
import logging
import threading
from threading import Event, Thread

import pytest

from epochgate.runtime.limited import CallLate, Limit, LimitedCalls, limited, watched

LONG = Limit("store_timeout_s", 60.0)
SHORT = Limit("store_timeout_s", 0.01)


def test_calls_are_made_on_one_thread_and_give_what_they_return_or_raise() -> None:
    calls = LimitedCalls("clerk")
    assert calls.call("a name", LONG, lambda: threading.current_thread().name) == "clerk"
    first = calls.call("a thread", LONG, threading.current_thread)
    assert calls.call("a thread", LONG, threading.current_thread) is first

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit) as raised:
        calls.call("an exit", LONG, leave)
    assert raised.value.code == 3
    assert not calls.is_left_behind
    assert limited("a sum", LONG, lambda: 1 + 1) == 2


def test_a_call_that_exceeds_its_limit_is_left_behind_and_the_next_has_another_thread() -> None:
    calls, goes_on = LimitedCalls("clerk"), Event()
    first = calls.call("a thread", LONG, threading.current_thread)
    with pytest.raises(CallLate) as raised:
        calls.call("reading the plan", SHORT, goes_on.wait)
    told = str(raised.value)
    assert told.startswith("reading the plan has not ended within 0.01 s; store_timeout_s is the")
    assert "threading.py" in told
    assert calls.is_left_behind
    assert calls.call("a thread", LONG, threading.current_thread) is not first
    goes_on.set()
    first.join(60)
    assert not first.is_alive()


def test_the_thread_ends_with_its_owner() -> None:
    calls = LimitedCalls("clerk")
    thread: Thread = calls.call("a thread", LONG, threading.current_thread)
    del calls
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_a_call_that_takes_long_is_named_with_its_stack() -> None:
    told, messages = Event(), []

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())
            told.set()

    log, handler = logging.getLogger("epochgate.runtime.limited"), Telling()
    log.addHandler(handler)
    try:
        assert LimitedCalls("clerk", warn_s=0.001).call("the store", LONG, lambda: told.wait(60))
        told.clear()
        with watched("the function of batch 7", warn_s=0.001):
            assert told.wait(60)
    finally:
        log.removeHandler(handler)
    first, *_, last = messages
    assert first.startswith("the store has been under way for 0.001 s; store_timeout_s is 60.")
    assert last.startswith("the function of batch 7 has been under way for")
    assert "in test_a_call_that_takes_long_is_named_with_its_stack" in last
