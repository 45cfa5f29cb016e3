"""Events are processed one at a time, to completion, in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.fsm import EventQueue, TransitionRefused, VirtualClock
from epochgate.fsm.errors import QueueReentered
from tests.fsm.turnstile import Log, Station


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def station() -> Station:
    return Station(gates=2)


@pytest.fixture
def queue(station: Station, clock: VirtualClock) -> EventQueue:
    return EventQueue(station, clock)


def note(log: list[Any], value: Any) -> Callable[[], None]:
    return lambda: log.append(value)


def test_events_are_processed_in_the_order_of_posting(queue: EventQueue) -> None:
    log: list[int] = []
    for number in range(5):
        queue.post(log.append, number)
    assert queue.waiting == 5
    assert queue.drain() == 5
    assert log == [0, 1, 2, 3, 4]
    assert queue.is_empty
    assert queue.processed == 5


def test_an_empty_queue_has_no_step(queue: EventQueue) -> None:
    assert queue.step() is False
    assert queue.drain() == 0


def test_what_is_posted_while_draining_comes_after_what_waits(queue: EventQueue) -> None:
    log: list[str] = []

    def first() -> None:
        queue.post(log.append, "posted by the first")
        log.append("first")

    queue.post(first)
    queue.post(log.append, "second")
    assert queue.drain() == 3
    assert log == ["first", "second", "posted by the first"]


def test_no_more_events_are_processed_than_allowed(queue: EventQueue) -> None:
    log: list[int] = []

    def again() -> None:
        log.append(len(log))
        queue.post(again)

    queue.post(again)
    assert queue.drain(events_max=7) == 7
    assert log == list(range(7))
    assert queue.drain(events_max=0) == 0
    assert not queue.is_empty


def test_effects_run_after_their_step_and_before_the_next_event() -> None:
    station = Station()
    queue = EventQueue(station, VirtualClock())
    turnstile, seen = station.turnstile[0], list[Any]()

    class Guard(Log):
        def passed(self, gate: int, count: int) -> None:
            seen.append(("passed", turnstile.state))
            queue.post(seen.append, "posted by the effect")

    station.bind("turnstile", "guard", Guard())
    queue.post(turnstile.pay, 2)
    queue.post(turnstile.push, "a")
    queue.post(seen.append, "next event")
    assert queue.drain() == 4
    assert seen == [("passed", "locked"), "next event", "posted by the effect"]


@pytest.mark.parametrize("again", ["step", "drain"])
def test_an_event_cannot_process_the_next_one_inside_itself(queue: EventQueue, again: str) -> None:
    log: list[str] = []
    queue.post(getattr(queue, again))
    queue.post(log.append, "next")
    with pytest.raises(QueueReentered, match="post from here"):
        queue.drain()
    assert log == []
    assert queue.drain() == 1
    assert log == ["next"]


def test_after_a_refused_event_the_queue_goes_on_with_the_next(
    station: Station, queue: EventQueue
) -> None:
    turnstile = station.turnstile[0]
    for event in (turnstile.hit, turnstile.push, turnstile.hit):
        queue.post(event)
    with pytest.raises(TransitionRefused):
        queue.drain()
    assert queue.processed == 2
    assert queue.drain() == 1


def test_timers_fire_in_the_order_of_their_times_then_of_their_making(
    queue: EventQueue, clock: VirtualClock
) -> None:
    log: list[str] = []
    queue.post_later(2.0, log.append, "late")
    queue.post_later(1.0, log.append, "early")
    queue.post_later(1.0, log.append, "early, made second")
    assert queue.next_due_s() == 1.0
    assert queue.post_due() == 0
    clock.advance(1.0)
    assert queue.post_due() == 2
    queue.drain()
    assert log == ["early", "early, made second"]
    clock.advance(5.0)
    assert queue.post_due() == 1
    queue.drain()
    assert log[-1] == "late"
    assert queue.next_due_s() is None


def test_a_timer_that_is_due_comes_after_events_that_wait(
    queue: EventQueue, clock: VirtualClock
) -> None:
    log: list[str] = []
    queue.post_later(0.0, log.append, "timer")
    queue.post(log.append, "event")
    queue.post_due()
    queue.drain()
    assert log == ["event", "timer"]


def test_a_cancelled_timer_never_fires(queue: EventQueue, clock: VirtualClock) -> None:
    log: list[str] = []
    timer = queue.post_later(1.0, log.append, "cancelled")
    kept = queue.post_later(2.0, log.append, "kept")
    timer.cancel()
    assert queue.next_due_s() == kept.due_s == 2.0
    clock.advance(3.0)
    assert queue.post_due() == 1
    queue.drain()
    assert log == ["kept"]


@settings(max_examples=100, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=20))
def test_timers_fire_like_a_sorted_list(timers: list[tuple[int, bool]]) -> None:
    clock = VirtualClock()
    queue, log = EventQueue(Station(), clock), list[tuple[int, int]]()
    for number, (delay_s, is_cancelled) in enumerate(timers):
        timer = queue.post_later(float(delay_s), log.append, (delay_s, number))
        if is_cancelled:
            timer.cancel()
    for _ in range(6):
        queue.post_due()
        queue.drain()
        clock.advance(1.0)
    expected = [
        (delay_s, n) for n, (delay_s, is_cancelled) in enumerate(timers) if not is_cancelled
    ]
    assert log == sorted(expected)


def test_a_post_wakes_the_sleeping_thread(queue: EventQueue) -> None:
    woken: list[int] = []
    queue.wake = lambda: woken.append(len(woken))
    queue.post(note([], 1))
    queue.post(note([], 2))
    assert woken == [0, 1]


def test_posts_of_many_threads_all_arrive_each_in_its_own_order(queue: EventQueue) -> None:
    log: list[tuple[int, int]] = []

    def post_all(thread: int) -> None:
        for number in range(500):
            queue.post(log.append, (thread, number))

    threads = [threading.Thread(target=post_all, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    processed = 0
    while any(thread.is_alive() for thread in threads):
        processed += queue.drain()
    for thread in threads:
        thread.join()
    processed += queue.drain()
    assert processed == 2000
    for t in range(4):
        assert [number for thread, number in log if thread == t] == list(range(500))


def test_a_clock_does_not_go_back(clock: VirtualClock) -> None:
    clock.advance(1.5)
    with pytest.raises(ValueError, match="cannot go back by 1 s"):
        clock.advance(-1)
    assert clock.now_s() == 1.5


class TickingClock:
    """A clock that goes on by a second with each look at it."""

    def __init__(self) -> None:
        self.looks = 0

    def now_s(self) -> float:
        self.looks += 1
        return float(self.looks)


def test_an_event_has_one_time_and_the_next_event_another() -> None:
    station, clock = Station(), TickingClock()
    queue, times = EventQueue(station, clock), list[float]()

    class Guard(Log):
        def passed(self, gate: int, count: int) -> None:
            times.append(queue.now_s)

    station.bind("turnstile", "guard", Guard())

    def event() -> None:
        times.append(queue.now_s)
        station.turnstile[0].pay(2)
        station.turnstile[0].push("a")
        times.append(queue.now_s)

    queue.post(event)
    queue.post(lambda: times.append(queue.now_s))
    queue.drain()
    assert times == [1.0, 1.0, 1.0, 2.0]
    assert clock.looks == 2


def test_the_clock_is_not_read_for_an_event_that_asks_for_no_time() -> None:
    clock = TickingClock()
    queue = EventQueue(Station(), clock)
    queue.post(note([], 1))
    queue.drain()
    assert clock.looks == 0


def test_between_events_and_after_one_that_has_failed_the_time_is_the_clocks() -> None:
    clock = TickingClock()
    queue = EventQueue(Station(), clock)

    def failing() -> None:
        raise ValueError(queue.now_s)

    assert (queue.now_s, queue.now_s) == (1.0, 2.0)
    queue.post(failing)
    with pytest.raises(ValueError, match=r"3\.0"):
        queue.drain()
    assert queue.now_s == 4.0
