"""Restart strategies and durations: when a job is tried again, and what a user may write."""

from __future__ import annotations

import doctest
import math
import random

import pytest
from hypothesis import given, strategies as st

from epochgate.runtime import durations
from epochgate.runtime.api import restart_strategies
from epochgate.runtime.api.restart_strategies import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    InvalidRestartStrategy,
    NoRestart,
    RestartStrategy,
    parse_restart_strategy,
)
from epochgate.runtime.durations import InvalidDuration, parse_duration_s


@pytest.mark.parametrize("module", [restart_strategies, durations], ids=["restart", "durations"])
def test_the_examples_in_the_documentation_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]  # a module, which has no public type here
    assert result.attempted > 0
    assert result.failed == 0


def test_a_fixed_delay_counts_over_the_whole_life_of_the_job() -> None:
    strategy = FixedDelay(attempts_max=1, delay_s=0.5)
    assert strategy.next_delay_s(0.0) == 0.5
    strategy.notify_healthy(1.0)
    assert strategy.next_delay_s(1e9) is None
    assert FixedDelay(attempts_max=0, delay_s=0.5).next_delay_s(0.0) is None


def test_the_failure_rate_forgets_failures_older_than_its_interval() -> None:
    strategy = FailureRate(failures_max=1, interval_s=10.0, delay_s=2.0)
    assert strategy.next_delay_s(0.0) == 2.0
    assert strategy.next_delay_s(10.5) == 2.0, "the first one is longer ago than 10 s"
    assert strategy.next_delay_s(20.5) is None, "exactly 10 s ago still counts"


def test_an_exponential_delay_grows_to_its_maximum_and_stays_there() -> None:
    strategy = ExponentialDelay(initial_s=1.0, max_s=10.0, multiplier=3.0, reset_after_s=1e6)
    assert [strategy.next_delay_s(100.0 * n) for n in range(2000)] == [1, 3, 9] + [10] * 1997


def test_failures_during_the_delay_share_its_restart() -> None:
    strategy = ExponentialDelay(initial_s=4.0, max_s=100.0, multiplier=2.0, reset_after_s=1e6)
    assert [strategy.next_delay_s(now_s) for now_s in (0.0, 1.0, 3.5)] == [4.0, 3.0, 0.5]
    assert strategy.next_delay_s(4.0) == 8.0, "at the very instant of the restart it is a new one"


def test_smooth_running_is_measured_from_when_the_tasks_run_again() -> None:
    def failed_after(healthy_at_s: float | None, failure_at_s: float) -> float | None:
        strategy = ExponentialDelay(initial_s=1.0, max_s=9.0, multiplier=2.0, reset_after_s=10.0)
        strategy.next_delay_s(0.0)
        if healthy_at_s is not None:
            strategy.notify_healthy(healthy_at_s)
            strategy.notify_healthy(failure_at_s)
        return strategy.next_delay_s(failure_at_s)

    assert failed_after(None, 10.5) == 2.0
    assert failed_after(None, 11.0) == 1.0, "without notice, from the end of the delay"
    assert failed_after(5.0, 14.5) == 2.0, "the restart took until 5"
    assert failed_after(5.0, 15.0) == 1.0, "only the first notice after a failure counts"


def test_each_restart_is_measured_from_its_own_recovery() -> None:
    strategy = ExponentialDelay(initial_s=1.0, max_s=9.0, multiplier=2.0, reset_after_s=10.0)
    strategy.next_delay_s(0.0)
    strategy.notify_healthy(1.0)
    assert strategy.next_delay_s(5.0) == 2.0
    strategy.notify_healthy(9.0)
    assert strategy.next_delay_s(18.0) == 4.0, "running since 9, not since the restart at 7"


def test_limited_attempts_of_an_exponential_delay_return_after_a_reset() -> None:
    strategy = ExponentialDelay(1.0, 1.0, 2.0, reset_after_s=10.0, attempts_max=2)
    assert [strategy.next_delay_s(now_s) for now_s in (0.0, 2.0, 4.0)] == [1.0, 1.0, None]
    again = ExponentialDelay(1.0, 1.0, 2.0, reset_after_s=10.0, attempts_max=2)
    assert [again.next_delay_s(now_s) for now_s in (0.0, 2.0, 20.0, 22.0)] == [1.0] * 4


def test_jitter_repeats_with_its_seed_and_stays_within_the_limits() -> None:
    def delays(seed: int) -> list[float | None]:
        source = random.Random(seed)
        strategy = ExponentialDelay(1.0, 8.0, 2.0, 1e6, jitter=0.25, jitter_source=source)
        return [strategy.next_delay_s(100.0 * n) for n in range(50)]

    assert delays(1) == delays(1) != delays(2)
    assert all(delay is not None and 1.0 <= delay <= 8.0 for delay in delays(1))
    assert len(set(delays(1))) > 10


@given(
    st.floats(0.001, 10.0),
    st.floats(1.001, 5.0),
    st.lists(st.floats(0.0, 1e4), max_size=60),
    st.booleans(),
)
def test_each_exponential_delay_is_within_its_limits_and_never_below_the_one_before(
    initial_s: float, multiplier: float, pauses_s: list[float], is_notified: bool
) -> None:
    strategy = ExponentialDelay(initial_s, 50 * initial_s, multiplier, reset_after_s=1e9)
    now_s, before_s = 0.0, 0.0
    for pause_s in pauses_s:
        delay_s = strategy.next_delay_s(now_s)
        assert delay_s is not None
        assert max(initial_s, before_s) <= delay_s <= 50 * initial_s
        before_s = delay_s
        now_s += delay_s + pause_s
        if is_notified:
            strategy.notify_healthy(now_s)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("none", NoRestart()),
        (" fixed: 10 , 1s ", FixedDelay(10, 1.0)),
        ("rate:3,5m,100ms", FailureRate(3, 300.0, 0.1)),
        ("exponential", ExponentialDelay(1.0, 60.0, 1.5, 3600.0)),
        ("exponential:2s", ExponentialDelay(2.0, 60.0, 1.5, 3600.0)),
        ("exponential:100ms,10s,2,1m", ExponentialDelay(0.1, 10.0, 2.0, 60.0)),
    ],
)
def test_each_form_of_text_is_its_strategy(text: str, strategy: RestartStrategy) -> None:
    assert parse_restart_strategy(text) == strategy


def test_jitter_from_text_uses_the_source_that_was_handed_in() -> None:
    source = random.Random(7)
    strategy = parse_restart_strategy("exponential:1s,1m,2,1h,0.1", jitter_source=source)
    assert isinstance(strategy, ExponentialDelay)
    assert strategy.jitter_source is source
    with pytest.raises(InvalidRestartStrategy, match="jitter_source"):
        parse_restart_strategy("exponential:1s,1m,2,1h,0.1")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is none of none, fixed"),
        ("fixed", "is none of"),
        ("fixed:3", "is none of"),
        ("none:", "is none of"),
        ("none:1", "is none of"),
        ("fixed:3,1s,2s", "is none of"),
        ("exponential:1s,1m,2,1h,0,9", "is none of"),
        ("often", "For example fixed:10,1s"),
        ("fixed:three,1s", "'three' is not a count"),
        ("fixed:-1,1s", "'-1' is not a count"),
        ("fixed:²,1s", "is not a count"),
        ("fixed:3,1", "'1' has no unit"),
        ("rate:0,1m,1s", "failures_max is 0, expected 1 or more"),
        ("rate:1,0s,1s", "interval_s is 0.0, expected more than 0"),
        ("exponential:1m,1s", "max_s is 1.0, expected at least initial_s, 60.0"),
        ("exponential:1s,1m,1", "multiplier is 1.0, expected more than 1"),
        ("exponential:1s,1m,inf", "multiplier is inf"),
        ("exponential:1s,1m,nan", "multiplier is nan"),
        ("exponential:1s,1m,x", "'x' is not a factor"),
        ("exponential:1s,1m,2,1h,2", "jitter is 2.0, expected 0 to 1"),
        ("exponential:1s,1m,2,1h,nan", "jitter is nan"),
    ],
)
def test_a_text_without_meaning_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidRestartStrategy) as caught:
        parse_restart_strategy(text)
    assert complaint in str(caught.value)
    assert repr(text) in str(caught.value)
    assert caught.value.exit_code == 2


@given(st.text(max_size=30) | st.from_regex(r"(fixed|rate|exponential):[0-9a-z.,]*"))
def test_no_text_raises_anything_but_the_declared_error(text: str) -> None:
    try:
        strategy = parse_restart_strategy(text)
    except InvalidRestartStrategy:
        return
    delay_s = strategy.next_delay_s(0.0)
    assert delay_s is None or (math.isfinite(delay_s) and delay_s >= 0)


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [("0s", 0.0), ("1d", 86400.0), ("0.1ms", 0.0001), (" 3 h ", 10800.0), ("1m", 60.0)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, duration_s: float) -> None:
    assert parse_duration_s(text) == duration_s


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1e3s", "1,5s", "5 seconds", "5S", "999999999d", "٣s", "1s 2s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidDuration) as caught:
        parse_duration_s(text)
    assert repr(text) in str(caught.value)
