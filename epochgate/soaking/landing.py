"""A round over a landing zone that changes all the time, with another parallelism at each start."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

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
    zone = LandingZone(place, KINDS[kind], chance, lambda *ids: _have_arrived(target, *ids))
    drivers = Drivers(zone.source, place, chance, tally)
    for _ in range(DRIVERS):
        following = [*options, *FOLLOWING, *_parallelism(chance)]
        drivers.live(chance.randint(*STRIKES_PER_DRIVER), following, zone.act)
        for _ in range(ACTS_BETWEEN):
            zone.act()
    drivers.finish([*options, *_parallelism(chance)], is_disturbed=False)
    drivers.count_kills()
    _require_rejected(zone.bad_rows, Path(f"{target}.rejected"))
    return verify_parquet(zone.ledger, target)


def _require_rejected(expected: list[str], table: Path) -> None:
    """Raise SoakFailed unless the table holds each bad row once, and nothing else."""
    import duckdb

    found: list[str] = []
    if any(table.glob("**/*.parquet")):
        files = os.path.join(table, "**", "*.parquet")
        with duckdb.connect() as database:
            query = f"select raw from read_parquet('{files}')"
            found = [str(raw) for (raw,) in database.execute(query).fetchall()]
    lost, foreign = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if lost or foreign:
        raise SoakFailed(
            f"{len(expected)} bad rows were delivered and {len(found)} rejected; not rejected: "
            f"{sorted(lost.elements())[:3]}, rejected without need or twice: "
            f"{sorted(foreign.elements())[:3]}"
        )


def _parallelism(chance: random.Random) -> list[str]:
    return ["--parallelism", str(chance.randint(1, SLOTS))]


def _have_arrived(target: Path, first: int, end: int) -> bool:
    import duckdb

    files = os.path.join(target, "**", "*.parquet")
    if not any(target.glob("**/*.parquet")):
        return False
    query = f"select count(*) from read_parquet('{files}') where id >= {first} and id < {end}"
    with duckdb.connect() as database:
        (count,) = database.execute(query).fetchall()[0]
    return bool(count == end - first)
