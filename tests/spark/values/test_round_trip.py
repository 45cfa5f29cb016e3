"""Random tables with the nasty values of every type, through files into every target and back."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st

from tests.spark.values import inferred, nasty
from tests.spark.values.sources import Format, Unwritable, write
from tests.spark.values.targets import Delta, Iceberg, Objects, Parquet, Postgres, Target
from tests.spark.values.trip import take

TABLES = int(os.environ.get("EPOCHGATE_TABLES", "0"))
"""How many tables the long run makes."""
Place = Callable[[Path], Target]
tally: Counter[tuple[str, str, str]] = Counter()
"""The tables of this process, by target, format and outcome."""


TARGETS: list[Any] = [Parquet, Objects, Delta, Iceberg, Postgres]


@pytest.fixture(params=TARGETS, ids=lambda t: t.__name__)
def place(request: pytest.FixtureRequest) -> Place:
    """Makes targets of one kind."""
    if request.param is Postgres:
        dsn = request.getfixturevalue("dsn")
        return lambda folder: Postgres(folder, dsn)
    kind: Place = request.param
    return kind


@pytest.fixture
def folder() -> Iterator[Callable[[], Path]]:
    """Makes folders, each of which is removed by the next."""
    top = Path(tempfile.mkdtemp(prefix="values-"))

    def fresh() -> Path:
        shutil.rmtree(top)
        top.mkdir()
        return top

    yield fresh
    shutil.rmtree(top)


def examples(few: int) -> settings:
    """Settings of a property: a few examples, always the same, or as many as are asked for."""
    return settings(
        max_examples=max(few, TABLES // 10),
        deadline=None,
        derandomize=not TABLES,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if not TABLES else [Phase.generate],
    )


simple = st.sampled_from(list(nasty.SIMPLE))
flat_tables = nasty.tables(simple)
parquet_tables = nasty.tables(simple | nasty.nested(simple))


def is_told_in_text(table: pa.Table) -> bool:
    """Whether digits can tell all numbers of the table."""
    return not any(
        pa.types.is_floating(column.type)
        and any(one.is_valid and one.as_py() - one.as_py() != 0 for one in column)
        for column in table.columns
    )


text_tables = nasty.tables(st.sampled_from(nasty.SPEAKABLE)).filter(is_told_in_text)


@examples(20)
@given(data=st.data())
def test_parquet_files_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    top = folder()
    target = place(top)
    table = data.draw(parquet_tables if target.takes_nested else flat_tables)
    trip(target, top, table, data.draw(st.sampled_from(["parquet", "parquet by DuckDB"])), data)


@examples(20)
@given(data=st.data())
def test_texts_of_declared_types_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    top, table = folder(), data.draw(text_tables)
    kind: Format = data.draw(st.sampled_from(["csv", "jsonl"]))
    trip(place(top), top, table, kind, data, schema=table.schema)


# A table of PostgreSQL has its types before there are files, so none is inferred for it.
@pytest.mark.parametrize(
    "place", [t for t in TARGETS if t.makes_itself], indirect=True, ids=lambda t: t.__name__
)
@examples(20)
@given(data=st.data())
def test_texts_of_which_no_type_was_said_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    top = folder()
    target, table = place(top), data.draw(inferred.tables())
    trip(target, top, table, data.draw(st.sampled_from(["csv", "jsonl"])), data, is_inferred=True)


def trip(
    target: Target, top: Path, table: pa.Table, kind: Format, data: st.DataObject, **options: Any
) -> None:
    """Take one table on its way."""
    seed, parts = data.draw(st.integers(0, 999)), data.draw(st.integers(1, 3))
    try:
        source = write(top / "in", table, kind, seed, parts)
    except Unwritable:
        assume(False)
    outcome = take(source, target, **options)
    tally[type(target).__name__, kind, "arrived" if outcome.has_arrived else "refused"] += 1


def test_most_tables_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the tables of the tests above, so that a refusal of everything is no success."""
    counted = Counter[tuple[str, bool]]()
    with capsys.disabled():
        for (target, kind, outcome), count in sorted(tally.items()):
            counted[target, outcome == "arrived"] += count
            if TABLES:
                sys.stdout.write(f"{target:10} {kind:18} {outcome:8} {count:7,}\n")
    for target, _ in list(counted):
        assert counted[target, True] > 2 * counted[target, False], target
