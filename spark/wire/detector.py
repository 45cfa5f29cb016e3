"""The suspicion of a silent peer: a failure detector that learns how regularly the peer is heard.

Computes phi, the accrual failure detector's measure of suspicion: minus the decimal logarithm of
the probability that a peer which is alive is silent for as long as it has been. The gaps between
the moments at which the peer was heard are taken to be normally distributed; their mean and their
deviation come from the last ones. A pause on top of the mean is for what no gap has announced: a
garbage collection, a call into C that holds the interpreter's lock, packets that are sent again.

The detector computes, and neither reads a clock nor ends a connection; the wire's server does, and
what the loss of a connection means is decided by the rows of `Attempt`. Source: Hayashibara,
Defago, Yared, Katayama, "The phi accrual failure detector", SRDS 2004; the pause and the least
deviation are those of Akka's implementation.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from epochgate.spark.wire.errors import WireSettingInvalid

WINDOW: Final = 100
"""Gaps that are remembered."""
DEVIATION_S_MIN: Final = 0.1
"""A peer that is heard like clockwork is still given what a busy machine delays it by."""


@dataclass(frozen=True)
class Detection:
    """The settings that say how soon silence is taken for a loss, in seconds and phi.

    `pause_s`: how long a process that lives may be silent on top of what is usual for it.
    `link_pause_s`: how long a host that lives may leave what is sent to it without acknowledgement,
    on top of what is usual. `threshold`: the phi from which a peer is suspected; 8 is a gap that
    one in 10**8 gaps exceeds. Raises `WireSettingInvalid`.
    """

    pause_s: float = 4.0
    link_pause_s: float = 2.0
    threshold: float = 8.0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("pause_s", 0.0, 86400.0),
            ("link_pause_s", 0.0, 86400.0),
            ("threshold", 1.0, 16.0),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise WireSettingInvalid(
                    f"{name} of Detection is {value}; it must be between {least:g} and {most:g}."
                )


DETECTION: Final = Detection()
"""By default."""


def _chance_beyond(deviations: float) -> float:
    """Return how likely a gap is longer than the mean by this many deviations."""
    return math.erfc(deviations / math.sqrt(2)) / 2


@lru_cache
def deviations(phi: float) -> float:
    """Return by how many deviations a gap with this `phi`, from 1 to 16, is longer than the mean.

    >>> round(deviations(8.0), 2)
    5.61
    """
    # By halves; `statistics` could tell, and takes a worker ten milliseconds to import.
    low, high = 0.0, 16.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _chance_beyond(middle) > 10.0**-phi else (low, middle)
    return high


class PhiDetector:
    """The memory of how regularly one peer is heard, and from which silence on it is suspected.

    `interval_s`: how often the peer is to be heard at least. `silence_s_max`: from this silence on
    the peer is suspected whatever phi is. Times are seconds of a monotonic clock.
    """

    def __init__(
        self,
        *,
        interval_s: float,
        pause_s: float,
        threshold: float,
        silence_s_max: float,
        now_s: float,
    ) -> None:
        self.pause_s = pause_s
        self._silence_s_max = silence_s_max
        self._deviations = deviations(threshold)
        self._gap_s_min = interval_s / 2
        self._gaps: deque[float] = deque((0.75 * interval_s, 1.25 * interval_s), maxlen=WINDOW)
        self._sum_s = sum(self._gaps)
        self._sum_of_squares = sum(gap * gap for gap in self._gaps)
        self._heard_at_s = self._learnt_at_s = now_s

    @property
    def limit_s(self) -> float:
        """The silence from which the peer is suspected."""
        mean_s, deviation_s = self._gap()
        expected_s = mean_s + self.pause_s + self._deviations * deviation_s
        return min(self._silence_s_max, expected_s)

    def heard(self, now_s: float) -> None:
        """The peer was heard; of what comes quickly one after the other, the first counts as a
        gap.
        """
        self._heard_at_s = now_s
        gap_s = now_s - self._learnt_at_s
        if gap_s >= self._gap_s_min:
            self._learn(gap_s)
            self._learnt_at_s = now_s

    def heard_since(self, then_s: float) -> None:
        """The peer was heard at this moment, which may be earlier than the last that is known."""
        if then_s > self._heard_at_s:
            self.heard(then_s)

    def excuse(self, seconds: float) -> None:
        """Leave out a time in which nothing could be heard."""
        self._heard_at_s += seconds
        self._learnt_at_s += seconds

    def silence_s(self, now_s: float) -> float:
        """Return how long the peer has been silent."""
        return max(0.0, now_s - self._heard_at_s)

    def is_suspect(self, now_s: float) -> bool:
        """Return whether the peer has been silent for too long."""
        return self.silence_s(now_s) > self.limit_s

    def phi(self, now_s: float) -> float:
        """Return the suspicion: 0.3 for a silence as long as expected, and infinity in the end."""
        mean_s, deviation_s = self._gap()
        late = (self.silence_s(now_s) - mean_s - self.pause_s) / deviation_s
        chance = _chance_beyond(late)
        return -math.log10(chance) if chance > 0 else math.inf

    def _learn(self, gap_s: float) -> None:
        if len(self._gaps) == WINDOW:
            oldest_s = self._gaps[0]
            self._sum_s -= oldest_s
            self._sum_of_squares -= oldest_s * oldest_s
        self._gaps.append(gap_s)
        self._sum_s += gap_s
        self._sum_of_squares += gap_s * gap_s

    def _gap(self) -> tuple[float, float]:
        """Mean and deviation of a gap."""
        mean_s = self._sum_s / len(self._gaps)
        variance = self._sum_of_squares / len(self._gaps) - mean_s * mean_s
        return mean_s, max(DEVIATION_S_MIN, math.sqrt(max(0.0, variance)))
