"""Rescued values of an ingestion: each once, whatever is killed, beside rows that are rejected."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

import duckdb
import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.ingest.test_simulated import When


@pytest.mark.parametrize("seed", range(4))
def test_values_are_rescued_once_whatever_dies(tmp_path: Path, seed: int) -> None:
    numbers = write_source(tmp_path)
    for path in (tmp_path / "in").iterdir():
        path.write_text(path.read_text() + "1e3,odd\nno row\n")
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(4)]
    options = options_for(tmp_path, on_bad_row="rescue", schema="x INT, name STRING")
    simulated = SimulatedIngest(options, faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    found = duckdb.execute(
        """
        select x, name, _rescued ->> 'x', parse_filename(_rescued ->> '_file_path')
        from read_parquet(?) order by x nulls last, 4
        """,
        [f"{tmp_path}/out/**/*.parquet"],
    ).fetchall()
    names = [f"{number:06}.csv" for number in (0, 10, 20)]
    assert found == [
        *((number, f"text {number}", None, None) for number in numbers),
        *((None, "odd", "1e3", name) for name in names),
    ]
    query = f"select raw from read_parquet('{tmp_path}/out.rejected/**/*.parquet')"
    assert duckdb.execute(query).fetchall() == [("no row",)] * 3
