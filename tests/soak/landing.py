"""A round over a landing zone that changes all the time, with another parallelism at each start.

Once in a round, the job ends by the limits for its saves and commits. In rounds without bad rows,
the target is set back once, and the rows that it lacks are given up as the refusals of the next
starts say: these rows are lost, and no others.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochgate.chaos.verification import Verdict
from tests.soak.driver import SLOTS, Drivers, NotTaken, SoakFailed, Tally
from tests.soak.folders import (
    Directory,
    DirectoryTable,
    Folder,
    ObjectTable,
    Prefix,
    Table,
)
from tests.soak.verification import verify_parquet
from tests.soak.zone import KINDS, LandingZone

DRIVERS = 3
STRIKES_PER_DRIVER = (4, 14)
ACTS_BETWEEN = 3
SET_BACK_BY = (1, 5)
"""Commits."""
STARTS_MAX = 4
OPTIONS = ["--on-changed-file", "new"]
FOLLOWING = ["--follow", "--settle-s", "0.5", "--rows-per-second", "2000"]


@dataclass(frozen=True)
class Grounds:
    """The grounds of a round: source and target as the job is given them, and as seen."""

    source: str
    target: str
    folder: Folder
    rows: Table
    rejected: Table


def on_disk(place: Path) -> Grounds:
    """Source and target in directories of `place`."""
    target = place / "target"
    return Grounds(
        str(place / "source"),
        str(target),
        Directory(place / "source"),
        DirectoryTable(target),
        DirectoryTable(Path(f"{target}.rejected")),
    )


def in_bucket(place: Path, bucket: str, variables: Mapping[str, str]) -> Grounds:
    """Source, target and, beside it, the checkpoints in an object store, under the place's name.

    `variables`: what the store's clients have in their environment, and this process too.
    """
    url = f"s3://{bucket}/{place.name}"
    target = f"{bucket}/{place.name}/target"
    return Grounds(
        f"{url}/source",
        f"{url}/target",
        Prefix(f"{url}/source"),
        ObjectTable(target, place / "rows", variables),
        ObjectTable(f"{target}.rejected", place / "rejected", variables),
    )


def soak_landing_zone(
    kind: str, grounds: Grounds, place: Path, chance: random.Random, tally: Tally
) -> Verdict:
    """Follow a zone of files of this kind over `DRIVERS` drivers, and end with what is left."""
    options = [*OPTIONS, *KINDS[kind].options]

    def have_arrived(first: int, end: int, bad: list[str]) -> bool:
        return _rows_there(grounds.rows, first, end) == end - first and not (
            Counter(bad) - Counter(_rejected(grounds.rejected))
        )

    zone = LandingZone(grounds.folder, place / "ledger", KINDS[kind], chance, have_arrived)
    drivers = Drivers(grounds.source, grounds.target, place, chance, tally)
    hangs_after, set_back_after = (chance.randrange(DRIVERS) for _ in range(2))
    for number in range(DRIVERS):
        following = [*options, *FOLLOWING, *_parallelism(chance)]
        drivers.live(chance.randint(*STRIKES_PER_DRIVER), following, zone.act)
        if number == hangs_after:
            drivers.hang(following, zone.act)
        for _ in range(ACTS_BETWEEN):
            zone.act()
        if number == set_back_after and KINDS[kind].bad_row is None:
            kept = place / "set-back"
            grounds.rows.set_back(chance.randint(*SET_BACK_BY), kept)
            _go_on(drivers, following, zone.act)
            tally.set_back += 1
            tally.rows_given_up += zone.give_up(kept)
    drivers.finish([*options, *_parallelism(chance)], is_disturbed=False)
    drivers.count_kills()
    drivers.check_traces()
    _require_rejected(zone.bad_rows, _rejected(grounds.rejected))
    return verify_parquet(zone.ledger, grounds.rows.files())


def _go_on(drivers: Drivers, options: list[str], meanwhile: Callable[[], None]) -> None:
    """Give up what each start names, until one takes the target. SoakFailed if the first one does,
    or none.
    """
    for number in range(STARTS_MAX):
        try:
            drivers.live(1, options, meanwhile)
        except NotTaken as refusal:
            drivers.give_up(refusal.way_on)
        else:
            if number == 0:
                raise SoakFailed("a target that was set back was taken without a word")
            return
    raise SoakFailed(f"a target that was set back was refused {STARTS_MAX} times")


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


def _rejected(table: Table) -> list[str]:
    return [str(raw) for (raw,) in _selected(table, "raw", "true")]


def _rows_there(table: Table, first: int, end: int) -> int:
    return len(_selected(table, "id", f"id >= {first} and id < {end}"))


def _selected(table: Table, column: str, condition: str) -> list[tuple[Any, ...]]:
    import duckdb

    place = table.files()
    if not any(place.glob("**/*.parquet")):
        return []
    files = os.path.join(place, "**", "*.parquet")
    query = f"select {column} from read_parquet('{files}') where {condition}"
    with duckdb.connect() as database:
        return database.execute(query).fetchall()
