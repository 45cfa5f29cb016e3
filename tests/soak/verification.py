"""Compares a ledger of Parquet files with what was ingested, by DuckDB."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from epochgate.chaos.verification import Verdict, counted


def verify_parquet(ledger: str | os.PathLike[str], target: str | os.PathLike[str]) -> Verdict:
    """Compare the Parquet files in the directory `ledger` with all of those below `target`, in the
    ledger's columns; values of any type are compared by their JSON.
    """
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.read_parquet(os.path.join(ledger, "*.parquet")).create_view("ledger")
        names = ", ".join(f'"{name}"' for name in sorted(database.table("ledger").columns))
        row = f"to_json(struct_pack({names})) as row"
        database.execute(f"create table expected as select {row} from ledger")
        if any(Path(target).glob("**/*.parquet")):
            files = os.path.join(target, "**", "*.parquet")
            database.read_parquet(files).create_view("written")
            database.execute(f"create table found as select {row} from written")
        else:
            database.execute("create table found as from expected limit 0")
        return counted(database, "row")
