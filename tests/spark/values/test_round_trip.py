"""Random tables with the nasty values of every type, through files into every target and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from tests.spark.values.properties import (
    Place,
    corrected_files,
    declared_texts,
    inferred_texts,
    parquet_files,
    tally,
)
from tests.spark.values.streamed import Stream
from tests.spark.values.targets import Delta, Iceberg, Objects, Parquet, Postgres

TABLES = int(os.environ.get("EPOCHGATE_TABLES", "0"))
"""How many tables the long run makes."""
TARGETS: list[Any] = [Parquet, Objects, Delta, Iceberg, Postgres, Stream]
WEIGHTS = {Parquet: 4, Objects: 5, Delta: 3, Iceberg: 1, Postgres: 2, Stream: 5}
"""How many tables of the long run go into each, of twenty: the more, the less a table costs."""


@pytest.fixture(params=TARGETS, ids=lambda t: t.__name__)
def place(request: pytest.FixtureRequest) -> Place:
    """Makes targets of one kind."""
    if request.param is Postgres:
        dsn = request.getfixturevalue("dsn")
        return lambda folder: Postgres(folder, dsn)
    kind: Place = request.param
    return kind


def examples(few: int) -> settings:
    """Settings of a property: a few examples, always the same, or as many as are asked for."""
    return settings(
        max_examples=max(few, TABLES // 20),
        deadline=None,
        derandomize=not TABLES,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if not TABLES else [Phase.generate],
    )


@examples(20)
@given(data=st.data())
def test_parquet_files_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    parquet_files(place, folder, data)


@examples(20)
@given(data=st.data())
def test_texts_of_declared_types_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    declared_texts(place, folder, data)


# A table of PostgreSQL has its types before there are files, so none is inferred for it.
@pytest.mark.parametrize(
    "place", [t for t in TARGETS if t.makes_itself], indirect=True, ids=lambda t: t.__name__
)
@examples(20)
@given(data=st.data())
def test_texts_of_which_no_type_was_said_arrive_as_they_were(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    inferred_texts(place, folder, data)


@pytest.mark.parametrize("place", [Parquet], indirect=True, ids=lambda t: t.__name__)
@examples(20)
@given(data=st.data())
def test_a_file_that_was_corrected_is_not_taken_for_what_it_was(
    place: Place, folder: Callable[[], Path], data: st.DataObject
) -> None:
    corrected_files(place, folder, data)


def test_most_tables_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the tables of the tests above, so that a refusal of everything is no success."""
    with capsys.disabled():
        if TABLES:
            sys.stdout.write("".join(f"\n{line}" for line in tally.lines()))
    for target in tally.rows:
        arrived, refused = (tally.count(target, has_arrived=has) for has in (True, False))
        assert arrived > refused, f"{target}: {arrived} have arrived, {refused} were refused"
