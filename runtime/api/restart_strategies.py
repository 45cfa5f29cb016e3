"""Restart strategies: when a failed job is tried again, and when it is given up.

Decides: the delay after each failure. Leaves to others: what is restarted (failover), and waiting
(timers of the event queue).
The rules are those of Flink's strategies of the same names: "Task Failure Recovery" in its
documentation (nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/task_failure_recovery/)
and the classes `FixedDelayRestartBackoffTimeStrategy`, `ExponentialDelayRestartBackoffTimeStrategy`
(with FLIP-364) and `FailureRateRestartBackoffTimeStrategy`. Where they differ, the class says so.
Deterministic, without a clock: each call hands in the time, in seconds on any clock that does not
go backwards. Called from the event queue. A strategy counts for one job; take a new one for the
next.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from epochgate.errors import UsageError
from epochgate.runtime.durations import InvalidDuration, parse_duration_s

RESTART_STRATEGY_FORMS = (
    "none",
    "fixed:ATTEMPTS,DELAY",
    "exponential[:INITIAL[,MAX[,MULTIPLIER[,RESET_AFTER[,JITTER]]]]]",
    "rate:FAILURES,INTERVAL,DELAY",
)


class InvalidRestartStrategy(UsageError):
    """A restart strategy was described in a way that has no meaning."""


class RestartStrategy(Protocol):
    """Answers each failure of one job with the delay before the next try. A strategy that is a
    `CountsRestarts` too has its count told with each failure.
    """

    def next_delay_s(self, now_s: float) -> float | None:
        """A failure happened at `now_s`: the seconds to wait before restarting; none to give up."""

    def notify_healthy(self, now_s: float) -> None:
        """At `now_s`, all tasks are running again."""


@runtime_checkable
class CountsRestarts(Protocol):
    """Knows how many restarts it still allows."""

    @property
    def restarts_left(self) -> int | None:
        """After the latest failure, that many more may follow within the strategy's time; None: as
        many as there will be.
        """


@dataclass
class NoRestart:
    """Gives up at the first failure.

    >>> NoRestart().next_delay_s(0.0)
    """

    @property
    def restarts_left(self) -> int:
        """There is never any."""
        return 0

    def next_delay_s(self, now_s: float) -> float | None:
        return None

    def notify_healthy(self, now_s: float) -> None:
        """Nothing depends on it."""


@dataclass
class FixedDelay:
    """Restarts `attempts_max` times over the life of the job, `delay_s` seconds after each failure.

    Raises InvalidRestartStrategy for less than 0 of either. Source: Flink's
    FixedDelayRestartBackoffTimeStrategy.

    >>> strategy = FixedDelay(attempts_max=2, delay_s=1.0)
    >>> [strategy.next_delay_s(now_s) for now_s in (0.0, 10.0, 1000.0)]
    [1.0, 1.0, None]
    """

    attempts_max: int
    delay_s: float
    _failures: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _expect(self.attempts_max >= 0, "attempts_max", self.attempts_max, "0 or more")
        _expect_duration("delay_s", self.delay_s, least_exclusive=False)

    def next_delay_s(self, now_s: float) -> float | None:
        self._failures += 1
        return self.delay_s if self._failures <= self.attempts_max else None

    @property
    def restarts_left(self) -> int:
        """Over the life of the job."""
        return max(0, self.attempts_max - self._failures)

    def notify_healthy(self, now_s: float) -> None:
        """Nothing depends on it: the attempts count for the whole life of the job."""


@dataclass
class ExponentialDelay:
    """Waits longer after each failure, and forgets them after `reset_after_s` of smooth running.

    The delay begins with `initial_s`, grows by `multiplier` and ends at `max_s`. A failure that
    happens while a restart is already due does not count again: it gets the rest of that delay.
    With `attempts_max`, the job is given up after that many restarts without a reset in between. A
    `jitter` of 0.1 spreads each delay by up to a tenth to both sides, within `initial_s` and
    `max_s`.

    Differs from Flink: `reset_after_s` counts from `notify_healthy` where that is called, and not
    from the end of the delay; jitter is off unless asked for, and is drawn around the delay after
    it has been limited; a failure at the very instant of the restart is a new one, since on a
    virtual clock it would otherwise be answered by a delay of 0 for ever.

    Raises InvalidRestartStrategy for durations that are not above 0 seconds, `max_s` below
    `initial_s`, a multiplier of 1 or less, and a jitter above 1 or without a source. Source:
    Flink's ExponentialDelayRestartBackoffTimeStrategy.

    >>> strategy = ExponentialDelay(initial_s=1.0, max_s=5.0, multiplier=2.0, reset_after_s=60.0)
    >>> [strategy.next_delay_s(now_s) for now_s in (0.0, 0.75, 10.0, 20.0, 30.0, 100.0)]
    [1.0, 0.25, 2.0, 4.0, 5.0, 1.0]
    """

    initial_s: float = 1.0
    max_s: float = 60.0
    multiplier: float = 1.5
    reset_after_s: float = 3600.0
    jitter: float = 0.0
    jitter_source: random.Random | None = None
    attempts_max: int | None = None
    _attempts: int = field(default=0, init=False, repr=False, compare=False)
    _backoff_s: float = field(default=0.0, init=False, repr=False, compare=False)
    _restart_at_s: float = field(default=-math.inf, init=False, repr=False, compare=False)
    _healthy_since_s: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _expect_duration("initial_s", self.initial_s, least_exclusive=True)
        _expect_duration("max_s", self.max_s, least_exclusive=True)
        _expect_duration("reset_after_s", self.reset_after_s, least_exclusive=True)
        at_least_initial = f"at least initial_s, {self.initial_s}"
        _expect(self.max_s >= self.initial_s, "max_s", self.max_s, at_least_initial)
        is_growth = math.isfinite(self.multiplier) and self.multiplier > 1
        _expect(is_growth, "multiplier", self.multiplier, "more than 1")
        _expect(0 <= self.jitter <= 1, "jitter", self.jitter, "0 to 1")
        has_source = self.jitter == 0 or self.jitter_source is not None
        _expect(has_source, "jitter", self.jitter, "0 unless a jitter_source is given")
        allows_one = self.attempts_max is None or self.attempts_max >= 1
        _expect(allows_one, "attempts_max", self.attempts_max, "1 or more, or none")

    def next_delay_s(self, now_s: float) -> float | None:
        if now_s < self._restart_at_s:
            return self._restart_at_s - now_s
        if now_s - self._smooth_since_s() >= self.reset_after_s:
            self._attempts = 0
        self._attempts += 1
        if self.attempts_max is not None and self._attempts > self.attempts_max:
            return None
        is_first = self._attempts == 1
        grown_s = self.initial_s if is_first else self._backoff_s * self.multiplier
        self._backoff_s = min(grown_s, self.max_s)
        delay_s = self._spread(self._backoff_s)
        self._restart_at_s = now_s + delay_s
        self._healthy_since_s = None
        return delay_s

    @property
    def restarts_left(self) -> int | None:
        """Until the failures are forgotten."""
        return None if self.attempts_max is None else max(0, self.attempts_max - self._attempts)

    def notify_healthy(self, now_s: float) -> None:
        if self._healthy_since_s is None:
            self._healthy_since_s = now_s

    def _smooth_since_s(self) -> float:
        if self._healthy_since_s is None:
            return self._restart_at_s
        return max(self._healthy_since_s, self._restart_at_s)

    def _spread(self, backoff_s: float) -> float:
        if self.jitter == 0 or self.jitter_source is None:
            return backoff_s
        offset_s = backoff_s * self.jitter
        spread_s = backoff_s + self.jitter_source.uniform(-offset_s, offset_s)
        return min(max(spread_s, self.initial_s), self.max_s)


@dataclass
class FailureRate:
    """Restarts `delay_s` after each failure, unless there were too many of late.

    Gives up at a failure if, with it, more than `failures_max` happened within `interval_s`
    seconds. Raises InvalidRestartStrategy for less than one failure, no interval, or a delay below
    0. Source: Flink's FailureRateRestartBackoffTimeStrategy.

    >>> strategy = FailureRate(failures_max=2, interval_s=60.0, delay_s=1.0)
    >>> [strategy.next_delay_s(now_s) for now_s in (0.0, 50.0, 61.0, 110.0)]
    [1.0, 1.0, 1.0, None]
    """

    failures_max: int
    interval_s: float
    delay_s: float
    _failed_at_s: deque[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _expect(self.failures_max >= 1, "failures_max", self.failures_max, "1 or more")
        _expect_duration("interval_s", self.interval_s, least_exclusive=True)
        _expect_duration("delay_s", self.delay_s, least_exclusive=False)
        self._failed_at_s = deque(maxlen=self.failures_max + 1)

    def next_delay_s(self, now_s: float) -> float | None:
        self._failed_at_s.append(now_s)
        is_full = len(self._failed_at_s) > self.failures_max
        if is_full and now_s - self._failed_at_s[0] <= self.interval_s:
            return None
        return self.delay_s

    @property
    def restarts_left(self) -> int:
        """Within `interval_s` before the latest failure."""
        now_s = self._failed_at_s[-1] if self._failed_at_s else 0.0
        recent = sum(now_s - failed_s <= self.interval_s for failed_s in self._failed_at_s)
        return max(0, self.failures_max - recent)

    def notify_healthy(self, now_s: float) -> None:
        """Nothing depends on it: only the failures' times count."""


def parse_restart_strategy(
    text: str, *, jitter_source: random.Random | None = None
) -> RestartStrategy:
    """The strategy that `text` describes, in one of `RESTART_STRATEGY_FORMS`.

    What is left out of "exponential" is as in Flink: 1s, 1m, 1.5, 1h; jitter 0. Raises
    `InvalidRestartStrategy`.

    >>> parse_restart_strategy("fixed:10,1s")
    FixedDelay(attempts_max=10, delay_s=1.0)
    >>> parse_restart_strategy("rate:3,5m,10s")
    FailureRate(failures_max=3, interval_s=300.0, delay_s=10.0)
    >>> parse_restart_strategy("none")
    NoRestart()
    """
    kind, colon, rest = text.strip().partition(":")
    arguments = [argument.strip() for argument in rest.split(",")] if colon else []
    try:
        match kind.strip(), arguments:
            case "none", []:
                return NoRestart()
            case "fixed", [attempts, delay]:
                return FixedDelay(_count(attempts), parse_duration_s(delay))
            case "rate", [failures, interval, delay]:
                interval_s, delay_s = parse_duration_s(interval), parse_duration_s(delay)
                return FailureRate(_count(failures), interval_s, delay_s)
            case "exponential", [*given] if len(given) <= len(_EXPONENTIAL_DEFAULTS):
                return _exponential(given, jitter_source)
    except (InvalidDuration, InvalidRestartStrategy) as error:
        raise InvalidRestartStrategy(f"restart strategy {text!r}: {error}") from error
    raise InvalidRestartStrategy(
        f"restart strategy {text!r} is none of {', '.join(RESTART_STRATEGY_FORMS)}. "
        "For example fixed:10,1s tries 10 times, a second after each failure"
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidRestartStrategy(f"{text!r} is not a count. Expected a number such as 10")
    return int(text)


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidRestartStrategy(
            f"{text!r} is not a factor. Expected a number such as 1.5"
        ) from None


_EXPONENTIAL_DEFAULTS = ("1s", "1m", "1.5", "1h", "0")


def _exponential(given: list[str], jitter_source: random.Random | None) -> ExponentialDelay:
    initial, longest, multiplier, reset, jitter = (*given, *_EXPONENTIAL_DEFAULTS[len(given) :])
    return ExponentialDelay(
        parse_duration_s(initial),
        parse_duration_s(longest),
        _factor(multiplier),
        parse_duration_s(reset),
        _factor(jitter),
        jitter_source,
    )


def _expect(is_met: bool, name: str, value: object, expected: str) -> None:
    if not is_met:
        raise InvalidRestartStrategy(f"{name} is {value}, expected {expected}")


def _expect_duration(name: str, value_s: float, *, least_exclusive: bool) -> None:
    is_met = math.isfinite(value_s) and (value_s > 0 or (value_s == 0 and not least_exclusive))
    expected = "more than 0 seconds" if least_exclusive else "0 seconds or more"
    _expect(is_met, name, value_s, expected)
