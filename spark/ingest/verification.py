"""Compares what was ingested with what there was to ingest, by DuckDB and none of our own code.

Decides nothing but how the two are read: the source's CSV files, the target's Parquet files, and
both compared as multisets of rows. Needs the package duckdb.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class VerifierMissing(UsageError):
    """The engine that verifies is not installed."""


@dataclass(frozen=True)
class Verdict:
    """The rows of a target beside those expected: all counts of rows.

    lost: expected and not there. duplicated: there more often than expected. foreign: there, and
    not expected at all.
    """

    expected: int
    found: int
    lost: int
    duplicated: int
    foreign: int

    def is_exact(self) -> bool:
        """Return whether every row is there exactly once, and no other."""
        return self.lost == self.duplicated == self.foreign == 0

    def __str__(self) -> str:
        arrived = self.expected - self.lost
        text = (
            f"{'' if self.is_exact() else 'not '}exactly once: {arrived:,} of {self.expected:,} "
            f"rows, {self.lost:,} lost, {self.duplicated:,} duplicated"
        )
        return text + (f", {self.foreign:,} foreign" if self.foreign else "")


def require_verifier() -> None:
    """Raise VerifierMissing unless duckdb is there."""
    if importlib.util.find_spec("duckdb") is None:
        raise VerifierMissing(
            "the result is verified by duckdb, which is not installed: "
            "`pip install 'epochgate-proving[demo]'`, or use `make run`, which does"
        )


def verify_csv(csv: str | os.PathLike[str], target: str | os.PathLike[str]) -> Verdict:
    """Compare CSV files (a path, or a pattern) with all Parquet files below `target`.

    Raises VerifierMissing, and what duckdb raises.
    """
    require_verifier()
    import duckdb

    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.read_csv(os.fspath(csv), header=True, all_varchar=True).create_view("read")
        columns = database.table("read").columns
        names = ", ".join(f'"{name}"' for name in columns)
        files = os.path.join(target, "**", "*.parquet")
        if any(Path(target).glob("**/*.parquet")):
            database.read_parquet(files).create_view("written")
        else:
            database.execute("create view written as from read limit 0")
        described = "select column_name, column_type from (describe written)"
        types = dict(database.execute(described).fetchall())
        wanted = ", ".join(_value(name, types.get(name, "VARCHAR")) for name in columns)
        shown = ", ".join(_shown(name, types.get(name, "VARCHAR")) for name in columns)
        database.execute(f"create table expected as select {wanted} from read")
        database.execute(f"create table found as select {shown} from written")
        return counted(database, names)


def counted(database: DuckDBPyConnection, columns: str) -> Verdict:
    """Compare the tables `expected` and `found`, which have these columns."""
    counts = database.execute(
        f"""with counted as (
            select sum(_e) as e, sum(_f) as f from (
                select {columns}, 1 as _e, 0 as _f from expected
                union all select {columns}, 0, 1 from found
            ) group by {columns}
        ) select sum(e), sum(f), sum(greatest(e - f, 0)),
            sum(case when e > 0 then greatest(f - e, 0) else 0 end),
            sum(case when e = 0 then f else 0 end) from counted"""
    ).fetchall()[0]
    expected, found, lost, duplicated, foreign = (int(count or 0) for count in counts)
    return Verdict(expected, found, lost, duplicated, foreign)


def _value(name: str, kind: str) -> str:
    """A CSV field as a value; empty, or NA where that is no text, means that there is none."""
    if kind == "VARCHAR":
        return f"""coalesce("{name}", '') as "{name}\""""
    missing = f"""case when "{name}" in ('', 'NA') then null else "{name}" end"""
    return f'cast({missing} as {kind}) as "{name}"'


def _shown(name: str, kind: str) -> str:
    return f"""coalesce("{name}", '') as "{name}\"""" if kind == "VARCHAR" else f'"{name}"'
