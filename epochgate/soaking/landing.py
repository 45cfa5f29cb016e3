"""A round over a landing zone that changes all the time, with another parallelism at each start."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

from epochgate.soaking.driver import SLOTS, Drivers, SoakFailed, Tally
from epochgate.soaking.zone import KINDS, LandingZone
from epochgate.spark.ingest.verification import Verdict, verify_parquet

DRIVERS = 4
STRIKES_PER_DRIVER = (4, 14)
ACTS_BETWEEN = 3
OPTIONS = ["--on-changed-file", "new"]
FOLLOWING = ["--follow", "--settle-s", "0.5", "--rows-per-second", "2000"]


def soak_landing_zone(kind: str, place: Path, chance: random.Random, tally: Tally) -> Verdict:
    """Follow a zone of files of this kind over `DRIVERS` drivers, and end with what is left."""
    target, options = place / "target", [*OPTIONS, *KINDS[kind].options]
    rejected = Path(f"{target}.rejected")

    def have_arrived(first: int, end: int, bad: list[str]) -> bool:
        return _rows_there(target, first, end) == end - first and not (
            Counter(bad) - Counter(_rejected(rejected))
        )

    zone = LandingZone(place, KINDS[kind], chance, have_arrived)
    drivers = Drivers(zone.source, place, chance, tally)
    for _ in range(DRIVERS):
        following = [*options, *FOLLOWING, *_parallelism(chance)]
        drivers.live(chance.randint(*STRIKES_PER_DRIVER), following, zone.act)
        for _ in range(ACTS_BETWEEN):
            zone.act()
    drivers.finish([*options, *_parallelism(chance)], is_disturbed=False)
    drivers.count_kills()
    _require_rejected(zone.bad_rows, _rejected(rejected))
    return verify_parquet(zone.ledger, target)


def _require_rejected(expected: list[str], found: list[str]) -> None:
    """Raise SoakFailed unless each bad row was rejected once, and nothing else."""
    lost, foreign = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if lost or foreign:
        raise SoakFailed(
            f"{len(expected)} bad rows were delivered and {len(found)} rejected; not rejected: "
            f"{sorted(lost.elements())[:3]}, rejected without need or twice: "
            f"{sorted(foreign.elements())[:3]}"
        )


def _parallelism(chance: random.Random) -> list[str]:
    return ["--parallelism", str(chance.randint(1, SLOTS))]


def _rejected(table: Path) -> list[str]:
    return [str(raw) for (raw,) in _selected(table, "raw", "true")]


def _rows_there(target: Path, first: int, end: int) -> int:
    return len(_selected(target, "id", f"id >= {first} and id < {end}"))


def _selected(table: Path, column: str, condition: str) -> list[tuple[Any, ...]]:
    import duckdb

    if not any(table.glob("**/*.parquet")):
        return []
    files = os.path.join(table, "**", "*.parquet")
    query = f"select {column} from read_parquet('{files}') where {condition}"
    with duckdb.connect() as database:
        return database.execute(query).fetchall()
