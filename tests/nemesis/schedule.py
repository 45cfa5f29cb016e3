"""Random mixtures of faults: which comes when, for how long and where, all from one seed.

Decides that the job can go on: a fault that takes a worker's host away leaves the other one alone,
the driver is struck by one fault at a time, and there are `AT_ONCE_MAX` in all. After every
`CALM_EVERY` faults all are healed, and the jobs have to get well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.nemesis.faults import FAULTS, Fault

AT_ONCE_MAX = 2
CALM_EVERY = 8
GAP_S = (0.5, 4.0)
HOLD_S = (1.0, 12.0)


@dataclass(frozen=True)
class Strike:
    """fault: begins `at_s` after the beginning of its bout, and is healed `hold_s` later."""

    at_s: float
    fault: Fault
    hold_s: float

    def __str__(self) -> str:
        return f"{self.at_s:6.1f} s  {self.fault.name} for {self.hold_s:.1f} s"

    @property
    def end_s(self) -> float:
        return self.at_s + self.hold_s


Bout = list[Strike]


def bouts(seed: int, faults: Sequence[Fault] = FAULTS) -> Iterator[Bout]:
    """Bouts of faults without end; the same for the same seed, where none is missing."""
    chance = random.Random(seed)
    mixed = [fault for fault in faults if fault.is_mixed and not fault.missing]
    while True:
        yield _bout(chance, mixed)


def _bout(chance: random.Random, faults: Sequence[Fault]) -> Bout:
    bout: Bout = []
    at_s = 0.0
    while len(bout) < CALM_EVERY:
        at_s += chance.uniform(*GAP_S)
        fault = chance.choice(faults)
        hold_s = chance.uniform(*HOLD_S) if fault.hold_s else 0.0
        active = [strike for strike in bout if strike.end_s >= at_s]
        while not _may_begin(fault, active):
            at_s = min(strike.end_s for strike in active) + chance.uniform(*GAP_S)
            active = [strike for strike in bout if strike.end_s >= at_s]
        bout.append(Strike(at_s, fault, hold_s))
    return bout


def _may_begin(fault: Fault, active: Sequence[Strike]) -> bool:
    places = [strike.fault.place for strike in active]
    return len(active) < AT_ONCE_MAX and fault.place not in places
