"""Changes as a user delivers them, what a table has after them by plain Python, and what it has by
a reader that is none of the sink's own library.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import psycopg
from hypothesis import strategies as st

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.run import IngestResult
from tests.spark.ingest.simulated import SimulatedIngest, make_older, options_for, random_kills
from tests.spark.tables import delta_replay, iceberg_replay

Key = tuple[int, str]
Table = dict[Key, "Change"]
SCHEMA = "id bigint, region string, at bigint, text string, op string"
COLUMNS = ("id", "region", "at", "text")


@dataclass(frozen=True)
class Change:
    """A row of a delivery: it deletes where `op` is D."""

    id: int
    region: str
    at: int
    text: str
    op: str = "U"

    @property
    def key(self) -> Key:
        """The values of its key."""
        return self.id, self.region

    @property
    def shown(self) -> tuple[int, str, int, str]:
        """The row in the table."""
        return self.id, self.region, self.at, self.text


def merged(table: Table, delivery: Sequence[Change], *, is_ordered: bool) -> Table:
    """The table after a delivery that is one checkpoint."""
    last: Table = {}
    for one in delivery:
        if not is_ordered or one.key not in last or last[one.key].at <= one.at:
            last[one.key] = one
    after = dict(table)
    for key, one in last.items():
        if is_ordered and key in table and table[key].at > one.at:
            continue
        after.pop(key, None)
        if one.op != "D":
            after[key] = one
    return after


_CHANGES = st.builds(
    Change,
    id=st.integers(0, 4),
    region=st.sampled_from(["", "north", "s\u00fcd"]),
    at=st.integers(0, 6),
    text=st.sampled_from(["", "a", "b", "caf\u00e9, 'x'"]),
    op=st.sampled_from("UUUD"),
)


def deliveries(*, is_ordered: bool) -> st.SearchStrategy[list[list[Change]]]:
    """Some of them; in each, every key has one row of a time, or one row without an order."""
    by = (lambda one: (one.key, one.at)) if is_ordered else (lambda one: one.key)
    return st.lists(st.lists(_CHANGES, max_size=8, unique_by=by), min_size=1, max_size=4)


@dataclass
class Place:
    """A target, where its deliveries lie, and the reader of it."""

    folder: Path
    options: IngestOptions
    read: Callable[[], list[tuple[Any, ...]]]
    runs: int = 0

    def deliver(self, delivery: Sequence[Change]) -> None:
        """Write one file."""
        path = self.folder / "in" / f"{len(list((self.folder / 'in').glob('*'))):03d}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(["id", "region", "at", "text", "op"])
            writer.writerows([[*one.shown, one.op] for one in delivery])
        make_older(path)

    def run(
        self, faults: Sequence[int] = (), seed: int | None = None, **changes: Any
    ) -> IngestResult:
        """Ingest what is new; `faults`: steps on the disk after which a driver crashes, one after
        the other; `seed`: of the processes that die.
        """
        self.runs += 1
        simulated = SimulatedIngest(
            replace(self.options, **changes),
            [Fault(at, when="after") for at in faults],
            name=f"run{self.runs}",
        )
        if seed is None:
            simulated.run()
        else:
            simulated.run(random_kills(simulated, seed, share=0.02))
        return simulated.leave()


def place_of(folder: Path, read: Callable[[], list[tuple[Any, ...]]], **changes: Any) -> Place:
    """One whose checkpoints hold whole files."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    given = {
        "merge_on": ("id", "region"),
        "merge_delete": "op = 'D'",
        "schema": SCHEMA,
        "null": ("NULL",),
        "batch_rows": 1000,
        "split_bytes_target": 1 << 20,
        "checkpoint_every_s": 0.003,
        "checkpoint_directory": str(folder / "checkpoints"),
    }
    return Place(folder, options_for(folder, **{**given, **changes}), read)


def check_some(place: Place) -> None:
    """Compare a table after each of some deliveries, while processes die."""
    table: Table = {}
    some = [
        [Change(one, "north", 1, "a") for one in range(4)],
        [Change(0, "north", 2, "b"), Change(1, "north", 0, "late"), Change(2, "north", 2, "", "D")],
        [Change(2, "", 0, ""), Change(3, "north", 3, "c"), Change(3, "north", 4, "d")],
    ]
    for seed, delivery in enumerate(some):
        place.deliver(delivery)
        result = place.run(seed=seed)
        assert result.state == "finished", result.reason
        table = merged(table, delivery, is_ordered=True)
        assert place.read() == sorted(one.shown for one in table.values())
        assert result.rows_visible == len(table)


def rows_of(files: Sequence[Path], columns: Sequence[str] = COLUMNS) -> list[tuple[Any, ...]]:
    """The rows of files as DuckDB reads them, sorted; columns of directories are texts."""
    if not files:
        return []
    named = ", ".join(f'"{name}"' for name in columns)
    query = f"select {named} from read_parquet(?, hive_partitioning = true) order by all"
    found = duckdb.execute(query, [[str(file) for file in files]]).fetchall()
    return [tuple(unquote(v) if isinstance(v, str) else v for v in row) for row in found]


def delta_place(folder: Path, **changes: Any) -> Place:
    """A Delta table that the job makes, so that it has all columns."""
    table = folder / "out"
    return place_of(
        folder,
        lambda: rows_of(delta_replay.active_files(table)),
        target=f"delta:{table}",
        **changes,
    )


def iceberg_place(folder: Path, **changes: Any) -> Place:
    """An Iceberg table that the job makes; a catalog `lake` is described."""
    return place_of(
        folder,
        lambda: rows_of(iceberg_replay.active_files(folder)),
        target="iceberg:lake.sales.events",
        **changes,
    )


def make_partitioned(folder: Path) -> None:
    """Make an Iceberg table by region and buckets of ids, without the column of the condition."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, IdentityTransform
    from pyiceberg.types import LongType, NestedField, StringType

    kinds = {"id": LongType(), "region": StringType(), "at": LongType(), "text": StringType()}
    fields = [
        NestedField(number, name, kind, required=False)
        for number, (name, kind) in enumerate(kinds.items(), 1)
    ]
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "region"),
        PartitionField(1, 1001, BucketTransform(2), "id_bucket"),
    )
    lake = load_catalog("lake", **iceberg_replay.catalog(folder))
    lake.create_namespace("sales")
    lake.create_table("sales.events", Schema(*fields), partition_spec=spec)
    lake.close()


@contextmanager
def postgres_place(folder: Path, dsn: str, **changes: Any) -> Iterator[Place]:
    """A table without the column of the condition."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "create table changed (id bigint, region text, at bigint not null,"
            " text text not null, primary key (region, id))"
        )

        def read() -> list[tuple[Any, ...]]:
            query = "select id, region, at, text from changed"
            return sorted(connection.execute(query).fetchall())

        yield place_of(folder, read, target=f"postgres:{dsn}#changed", **changes)
        connection.execute("drop table changed, epochgate_staged_changed")
