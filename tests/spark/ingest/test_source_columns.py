"""Source columns of an ingestion: the same whatever is killed, as DuckDB finds them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.ingest.options import IngestMisconfigured
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills, write_source
from tests.spark.ingest.test_simulated import When

ADDED = ("source_file=file.path", "file.name", "file.size", "n=file.row")


def expected(tmp_path: Path) -> list[Any]:
    """The rows as DuckDB reads the source; the number of a row is that of its line."""
    query = """
        select x, filename, parse_filename(filename), size,
               row_number() over (partition by filename order by x)
        from read_csv(?, filename = true) join read_blob(?) using (filename) order by x
    """
    source = f"{tmp_path}/in/*.csv"
    query = query.replace("read_blob(?)", "(select filename, size from read_blob(?))")
    return duckdb.execute(query, [source, source]).fetchall()


def found(tmp_path: Path) -> list[Any]:
    columns = "x, source_file, file_name, file_size, n"
    query = f"select {columns} from read_parquet('{tmp_path}/out/**/*.parquet') order by x"
    return duckdb.execute(query).fetchall()


@pytest.mark.parametrize("seed", range(6))
def test_rows_have_their_places_whatever_dies(tmp_path: Path, seed: int) -> None:
    write_source(tmp_path)
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(4)]
    simulated = SimulatedIngest(options_for(tmp_path, add_columns=ADDED), faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert found(tmp_path) == expected(tmp_path)
    write_source(tmp_path, files=1, first=100)
    again = SimulatedIngest(options_for(tmp_path, add_columns=ADDED), name="again")
    again.run()
    assert again.leave().state == "finished"
    assert found(tmp_path) == expected(tmp_path)


def test_a_transform_is_given_the_added_columns(tmp_path: Path) -> None:
    write_source(tmp_path)
    options = options_for(
        tmp_path, add_columns=ADDED, transform=lambda batch: batch.slice(0, 1), batch_rows=100
    )
    simulated = SimulatedIngest(options)
    simulated.run()
    assert simulated.leave().state == "finished"
    assert [row[4] for row in found(tmp_path)] == [1, 1, 1]


def test_a_column_of_the_schema_cannot_be_added(tmp_path: Path) -> None:
    with pytest.raises(IngestMisconfigured, match="is one of the files"):
        options_for(tmp_path, schema="n BIGINT", add_columns=("n=file.row",))
