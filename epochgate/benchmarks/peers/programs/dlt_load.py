"""Loads the new files of a folder by dlt, with the readers of dlt-filesystem; run by the Python of
their environment: KIND FOLDER INTO TARGET DISPOSITION STATE.
"""

from __future__ import annotations

import sys
from typing import Any

import dlt  # type: ignore[import-not-found]  # in an environment of its own
from dlt_filesystem.source.adapter import readers  # type: ignore[import-not-found]

ROWS = 50_000


def main(kind: str, folder: str, into: str, target: str, disposition: str, state: str) -> None:
    """Load what is new since the last run, whose state is in `state` and in the target."""
    source = readers(
        bucket_url=f"file://{folder}",
        file_glob=f"*.{kind}",
        incremental=dlt.sources.incremental("modification_date"),
    )
    rows = (
        source.read_parquet(chunksize=ROWS, use_pyarrow=True)
        if kind == "parquet"
        else source.read_csv_duckdb(chunk_size=ROWS, use_pyarrow=True)
    )
    hints: dict[str, Any] = {"write_disposition": disposition}
    if into == "delta":
        hints["table_format"] = "delta"
    if disposition == "merge":
        hints |= {"primary_key": "id"}
    destination = (
        dlt.destinations.filesystem(bucket_url=f"file://{target}")
        if into == "delta"
        else dlt.destinations.postgres(credentials=target)
    )
    pipeline = dlt.pipeline(
        pipeline_name="peers", pipelines_dir=state, destination=destination, dataset_name="loaded"
    )
    pipeline.run(rows.with_name("events").apply_hints(**hints)).raise_on_failed_jobs()


if __name__ == "__main__":
    main(*sys.argv[1:])
