"""Rows that replace others (`--merge-on`): after each delivery the table has what plain Python
makes of all of them, also where processes die and drivers crash.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.spark.tables import iceberg_replay
from tests.spark.tables.merged import (
    Change,
    Place,
    Table,
    deliveries,
    delta_place,
    iceberg_place,
    make_partitioned,
    merged,
    postgres_place,
)

KINDS = ("delta", "delta, partitioned", "iceberg", "iceberg, partitioned", "postgres")
Make = Callable[..., Any]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a place in a new folder, as a context."""
    numbers = itertools.count()
    kind: str = request.param
    if kind.startswith("delta"):
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    if kind.startswith("iceberg"):
        pytest.importorskip("pyiceberg", reason="the extra `iceberg` is not installed")
    dsn = request.getfixturevalue("dsn") if kind == "postgres" else ""

    @contextmanager
    def made(**changes: Any) -> Iterator[Place]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        if kind == "postgres":
            with postgres_place(folder, dsn, **changes) as place:
                yield place
        elif kind.startswith("delta"):
            by = {"partition_by": ("at",)} if "partitioned" in kind else {}
            yield delta_place(folder, **by, **changes)
        else:
            for name, value in iceberg_replay.catalog(folder).items():
                monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
            if "partitioned" in kind:
                make_partitioned(folder)
            yield iceberg_place(folder, **changes)

    return made


def expected(table: Table) -> list[tuple[Any, ...]]:
    return sorted(one.shown for one in table.values())


def test_rows_replace_delete_and_add(make: Make) -> None:
    with make(merge_order=("at",)) as place:
        place.deliver([Change(1, "north", 1, "a"), Change(2, "north", 1, "b")])
        assert place.run().state == "finished"
        place.deliver([Change(1, "north", 2, "c"), Change(2, "north", 2, "", "D")])
        result = place.run()
        assert (result.state, result.rows_committed, result.rows_visible) == ("finished", 2, 1)
        place.deliver([Change(1, "north", 1, "late"), Change(3, "", 0, "")])
        assert place.run().rows_visible == 2
        assert place.read() == [(1, "north", 2, "c"), (3, "", 0, "")]


@pytest.mark.extended
@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_table_has_what_python_makes_of_all_deliveries(make: Make, is_ordered: bool) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        some=deliveries(is_ordered=is_ordered),
        faults=st.lists(st.integers(3, 40), max_size=2),
        seed=st.none() | st.integers(0, 99),
    )
    def held(some: list[list[Change]], faults: list[int], seed: int | None) -> None:
        table: Table = {}
        with make(merge_order=("at",) if is_ordered else ()) as place:
            for delivery in some:
                place.deliver(delivery)
                result = place.run(faults, seed)
                assert result.state == "finished", result.reason
                table = merged(table, delivery, is_ordered=is_ordered)
                assert place.read() == expected(table)
                assert result.rows_visible == len(table)

    held()


def test_without_an_order_the_newest_checkpoint_counts_and_rows_that_are_the_same_are_one(
    make: Make,
) -> None:
    with make() as place:
        place.deliver([Change(1, "", 5, "first"), Change(1, "", 5, "first")])
        assert place.run().rows_visible == 1
        place.deliver([Change(1, "", 2, "second")])
        assert place.run().state == "finished"
        assert place.read() == [(1, "", 2, "second")]


@pytest.mark.parametrize("order", [(), ("at",)])
def test_different_rows_of_one_key_of_which_none_is_the_last_end_the_job_by_name(
    make: Make, order: tuple[str, ...]
) -> None:
    with make(merge_order=order) as place:
        place.deliver([Change(1, "", 5, "old"), Change(2, "north", 1, "")])
        assert place.run().state == "finished"
        place.deliver([Change(2, "north", 3, "a"), Change(2, "north", 3, "b")])
        result = place.run()
        assert (result.state, result.rows_committed) == ("failed", 0)
        assert "several different rows of one checkpoint have the key" in (result.reason or "")
        assert "north" in (result.reason or "")
        assert place.read() == [(1, "", 5, "old"), (2, "north", 1, "")]
        result = place.run(merge_order=("at", "text"))
        assert result.state == "finished", result.reason
        assert place.read() == [(1, "", 5, "old"), (2, "north", 3, "b")]


def test_rows_that_delete_may_leave_out_what_the_table_demands(make: Make) -> None:
    with make(merge_order=("at",)) as place:
        place.deliver([Change(1, "", 1, "a")])
        place.run()
        (place.folder / "in" / "zz.csv").write_text('id,region,at,text,op\n1,"",2,,D\n')
        assert place.run().state == "finished"
        assert place.read() == []


@pytest.mark.parametrize("name", ["id", "at"])
def test_a_row_without_a_key_or_a_place_in_the_order_ends_the_job_with_its_place(
    make: Make, name: str
) -> None:
    with make(merge_order=("at",)) as place:
        row = {"id": "1", "region": '""', "at": "1", "text": "a", "op": "U", name: "NULL"}
        lines = ["id,region,at,text,op", '7,"",1,a,U', ",".join(row.values())]
        (place.folder / "in" / "a.csv").write_text("\n".join(lines) + "\n")
        result = place.run()
        assert result.state == "failed"
        assert f"column {name!r}, by which rows are merged, has no value" in (result.reason or "")
        assert "row 2 of " in (result.reason or "")
        assert place.read() == []
