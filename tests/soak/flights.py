"""A round over a public data set: all of it is there from the beginning, and no file changes."""

from __future__ import annotations

import random
from pathlib import Path

from epochgate.chaos.verification import Verdict, verify_csv
from tests.soak.driver import Drivers, Tally

ROWS_PER_S = 6_000
DRIVER_KILLS = 1
STRIKES_PER_DRIVER = (5, 15)


def soak_flights(source: Path, place: Path, chance: random.Random, tally: Tally) -> Verdict:
    """Ingest the CSV files of `source` once, over as many drivers as it takes."""
    target = place / "target"
    drivers = Drivers(str(source), str(target), place, chance, tally)
    options = ["--rows-per-second", str(ROWS_PER_S)]
    for _ in range(DRIVER_KILLS):
        if not drivers.live(chance.randint(*STRIKES_PER_DRIVER), options, lambda: None):
            break
    else:
        drivers.finish(options, is_disturbed=True)
    drivers.count_kills()
    drivers.check_traces()
    return verify_csv(source / "*.csv", target)
