"""The figures of one coordinator, beside those of the tasks in the job's report.

Decides nothing. A counter is counted by the coordinator, a gauge is read when its figure is
looked up: on the reader's thread, so it must return a number that is there and wait for nothing.
When the job is over each keeps the value it had. Source: the metric group of Apache Flink's
OperatorCoordinator.Context.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from epochgate.errors import UsageError
from epochgate.runtime.api.raised import let_pass

Number = int | float


class MetricNameTaken(UsageError):
    """A coordinator registers two metrics under one name."""


class Counter:
    """A count that only its coordinator changes; any thread."""

    __slots__ = ("_lock", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: Number = 0

    def add(self, amount: Number = 1) -> None:
        """Count `amount` more; a negative one counts down."""
        with self._lock:
            self._value += amount

    @property
    def value(self) -> Number:
        """The count so far."""
        return self._value


class CoordinatorMetrics(Mapping[str, Number]):
    """Name -> value now, as a report shows it; any thread.

    >>> metrics = CoordinatorMetrics()
    >>> metrics.counter("splits_assigned").add(3)
    >>> waiting = ["a", "b"]
    >>> metrics.gauge("splits_waiting", lambda: len(waiting))
    >>> dict(metrics)
    {'splits_assigned': 3, 'splits_waiting': 2}
    """

    def __init__(self) -> None:
        self._reads: dict[str, Callable[[], Number]] = {}
        self._counters: dict[str, Counter] = {}

    def counter(self, name: str) -> Counter:
        """Return the counter of this name, made at the first call.

        Raises MetricNameTaken when a gauge has the name.
        """
        if name not in self._counters:
            if name in self._reads:
                raise MetricNameTaken(f"{name!r} is a gauge already; give the counter another name")
            counter = self._counters[name] = Counter()
            self._reads[name] = lambda: counter.value
        return self._counters[name]

    def gauge(self, name: str, read: Callable[[], Number]) -> None:
        """Show what `read` returns; a later gauge of the same name takes the place of the earlier.

        What `read` raises shows as not-a-number. Raises MetricNameTaken when a counter has the
        name.
        """
        if name in self._counters:
            raise MetricNameTaken(f"{name!r} is a counter already; give the gauge another name")
        self._reads[name] = read

    def fenced(self, is_open: Callable[[], bool]) -> CoordinatorMetrics:
        """Return another access to the same figures, which changes nothing once `is_open()` is
        false.
        """
        return _FencedMetrics(self, is_open)

    def freeze(self) -> None:
        """Keep every value as it is now and let go of what was read; at the job's end. A gauge that
        is being read shows as not-a-number meanwhile, and is not read again.
        """
        for name in self:
            read, self._reads[name] = self._reads[name], partial(_same, math.nan)
            self._reads[name] = partial(_same, _read(read))

    def __getitem__(self, name: str) -> Number:
        return _read(self._reads[name])

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._reads))

    def __len__(self) -> int:
        return len(self._reads)


class _FencedMetrics(CoordinatorMetrics):
    def __init__(self, metrics: CoordinatorMetrics, is_open: Callable[[], bool]) -> None:
        self._metrics, self._is_open = metrics, is_open
        self._reads, self._counters = metrics._reads, metrics._counters

    def counter(self, name: str) -> Counter:
        is_kept = self._is_open() or name in self._counters
        return _FencedCounter(self._metrics.counter(name) if is_kept else Counter(), self._is_open)

    def gauge(self, name: str, read: Callable[[], Number]) -> None:
        if self._is_open():
            self._metrics.gauge(name, read)

    def freeze(self) -> None:
        if self._is_open():
            self._metrics.freeze()


class _FencedCounter(Counter):
    __slots__ = ("_counter", "_is_open")

    def __init__(self, counter: Counter, is_open: Callable[[], bool]) -> None:
        self._counter, self._is_open = counter, is_open

    def add(self, amount: Number = 1) -> None:
        if self._is_open():
            self._counter.add(amount)

    @property
    def value(self) -> Number:
        return self._counter.value


def _read(read: Callable[[], Number]) -> Number:
    try:
        return read()
    except BaseException as error:  # noqa: BLE001  # a figure for the display must not fail who looks at it
        let_pass(error)
        return math.nan


def _same(value: Number) -> Number:
    return value
