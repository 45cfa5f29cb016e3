"""Random tables with the nasty values of every type, through files into every target and back."""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st

from tests.spark.values import inferred, nasty
from tests.spark.values.evolving import parts_of
from tests.spark.values.sources import Format, Unwritable, write
from tests.spark.values.streamed import Stream
from tests.spark.values.tally import Tally
from tests.spark.values.targets import ZONES, Delta, Iceberg, Objects, Parquet, Postgres, Target
from tests.spark.values.trip import in_zone, take

TABLES = int(os.environ.get("EPOCHGATE_TABLES", "0"))
"""How many tables the long run makes."""
PROPERTIES = 3
FOLDERS = (*["values"] * 6, "values %20", "va\u0301lues +#x & 'more'")
Place = Callable[[Path], Target]
tally = Tally()
"""The tables of this process."""


@pytest.fixture(params=[Parquet, Objects, Delta, Iceberg, Postgres, Stream], ids=lambda t: t.__name__)
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
of_any_type = simple | st.sampled_from(list(nasty.EXOTIC))
parquet_tables = nasty.tables(of_any_type | nasty.nested(of_any_type))


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
    target = placed(place, top, data)
    table = data.draw(parquet_tables if target.takes_nested else flat_tables)
    trip(target, table, data.draw(st.sampled_from(["parquet", "parquet by DuckDB"])), data)


@examples(20)
@given(data=st.data())
def test_texts_of_declared_types_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    target, table = placed(place, folder(), data), data.draw(text_tables)
    kind: Format = data.draw(st.sampled_from(["csv", "jsonl"]))
    trip(target, table, kind, data, schema=table.schema)


@examples(20)
@given(data=st.data())
def test_texts_of_which_no_type_was_said_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    target, table = placed(place, folder(), data), data.draw(inferred.tables())
    assume(target.makes_itself)
    trip(target, table, data.draw(st.sampled_from(["csv", "jsonl"])), data, is_inferred=True)


def placed(place: Place, top: Path, data: st.DataObject) -> Target:
    """A target, where a folder may have an odd name."""
    target = place(top)
    if target.takes_odd_paths:
        target.place = top / data.draw(st.sampled_from(FOLDERS))
        target.place.mkdir()
    return target


def trip(
    target: Target, table: pa.Table, kind: Format, data: st.DataObject, **options: Any
) -> None:
    """Take one table on its way."""
    chance, schema = random.Random(data.draw(st.integers(0, 9999))), options.get("schema")
    assume(target.makes_itself or len(set(map(str.lower, table.column_names))) == table.num_columns)
    evolution = data.draw(st.sampled_from(target.evolutions if schema is None else ("none",)))
    is_inferred = "is_inferred" in options
    whole, parts = parts_of(
        table,
        data.draw(st.integers(1, 3)),
        chance,
        may_lack=evolution != "none" or (schema is not None and chance.random() < 0.3),
        evolution="none" if is_inferred and evolution == "widen" else evolution,
        kept=(inferred.ROW,) if is_inferred else (),
    )
    needs_header = is_inferred or any(part.num_columns < whole.num_columns for part in parts)
    try:
        source = write(
            target.place / "in", whole, parts, kind, chance, needs_header=needs_header
        )
    except Unwritable:
        assume(False)
    source.options |= {
        "schema_evolution": evolution,
        "batch_rows": chance.choice([1, 100]),
        "split_bytes_target": chance.choice([64, 1 << 20, 1 << 20, 1 << 20]),
    }
    with in_zone(chance.choice(ZONES)):
        outcome = take(source, target, starts_again=chance.random() < 0.1, **options)
    tally.add(type(target).__name__, kind, whole, outcome)


def test_most_tables_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the tables of the tests above, so that a refusal of everything is no success."""
    with capsys.disabled():
        if TABLES:
            sys.stdout.write("".join(f"\n{line}" for line in tally.lines()))
    for target in tally.rows:
        arrived, refused = (tally.count(target, has_arrived=has) for has in (True, False))
        assert arrived > refused, f"{target}: {arrived} have arrived, {refused} were refused"
