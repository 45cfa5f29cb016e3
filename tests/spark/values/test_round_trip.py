"""Random tables with the nasty values of every type, through files into every target and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from tests.spark.values.partitioned import (
    DeltaPartitions,
    IcebergPartitions,
    ParquetPartitions,
)
from tests.spark.values.properties import (
    Place,
    Property,
    corrected_files,
    declared_texts,
    inferred_texts,
    other_files,
    parquet_files,
    plain_files,
    rescued_texts,
    tally,
)
from tests.spark.values.streamed import Stream
from tests.spark.values.targets import Delta, Iceberg, Objects, Parquet, Postgres

TABLES = int(os.environ.get("EPOCHGATE_TABLES", "0"))
"""How many tables the long run makes."""
SHARES: dict[Any, int] = {
    Parquet: 20,
    ParquetPartitions: 6,
    Objects: 24,
    Delta: 10,
    DeltaPartitions: 4,
    Iceberg: 4,
    IcebergPartitions: 2,
    Postgres: 8,
    Stream: 24,
}
"""Of a hundred tables of the long run, how many go into each target at least: the more, the less a
table costs."""
CORRECTED = 2
EXTENDED = 6
"""How many times as many tables `make extended` tries as `make test`."""
PROPERTIES = (
    parquet_files,
    other_files,
    plain_files,
    declared_texts,
    inferred_texts,
    rescued_texts,
)
CASES = [
    (target, claim)
    for claim in PROPERTIES
    for target in SHARES
    if (target, claim) != (Stream, rescued_texts)  # a stream has no `rescue`
]


def hold(claim: Property, place: Place, folder: Callable[[], Path], few: int, share: float) -> None:
    """Try a property with a few tables, always the same, or with a share of a hundred of as many as
    are asked for.
    """

    @settings(
        max_examples=int(TABLES * share / 100) or few,
        deadline=None,
        derandomize=not TABLES,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if not TABLES else [Phase.generate],
    )
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        claim(place, folder, data)

    holds()


@pytest.mark.parametrize(("target", "claim"), CASES, ids=lambda of: of.__name__)
@pytest.mark.parametrize("times", [1, pytest.param(EXTENDED, marks=pytest.mark.extended)])
def test_each_value_arrives_as_it_was_or_is_refused(
    target: Any,
    claim: Property,
    times: int,
    folder: Callable[[], Path],
    request: pytest.FixtureRequest,
) -> None:
    place: Place = target
    if target is Postgres:
        place = partial(Postgres, dsn=request.getfixturevalue("dsn"))
    is_slow = issubclass(target, Iceberg) or claim in (plain_files, rescued_texts)
    few = 6 if target is IcebergPartitions else 10 if is_slow else 20
    hold(claim, place, folder, few * times, SHARES[target] / len(PROPERTIES))


def test_a_file_that_was_corrected_is_not_taken_for_what_it_was(
    folder: Callable[[], Path],
) -> None:
    hold(corrected_files, Parquet, folder, 20, CORRECTED)


def test_most_tables_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the tables of the tests above, so that a refusal of everything is no success."""
    with capsys.disabled():
        if TABLES:
            sys.stdout.write("".join(f"\n{line}" for line in tally.lines()))
    for target in tally.rows:
        arrived, refused = (tally.count(target, has_arrived=has) for has in (True, False))
        assert arrived > refused, f"{target}: {arrived} have arrived, {refused} were refused"
