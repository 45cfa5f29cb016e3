"""A table that was set back behind what the job has committed is refused at the start, and taken
once its lost rows are given up.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from epochgate import cli
from epochgate.runtime import BehindCheckpoint
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.parquet_sink.gathered import CommitIn
from tests.spark.ingest.simulated import SimulatedIngest, options_for, write_source
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.ways_on import give_up_command_in

Rows = Callable[[], list[int]]


def ingested(options: IngestOptions, name: str) -> None:
    ingest = SimulatedIngest(options, name=name)
    ingest.run()
    assert ingest.leave().state == "finished"


def refused_until_given_up(
    tmp_path: Path,
    options: IngestOptions,
    rows: Rows,
    keep: Callable[[], Any],
    set_back: Callable[[], Any],
) -> None:
    """Three days: a file, a file, and a start without one, so that no commit is open; then the
    table goes back to the first day, and another file comes.
    """
    write_source(tmp_path, 1, 4, 4)
    ingested(options, "first")
    keep()
    write_source(tmp_path, 1, 4, 8)
    ingested(options, "second")
    ingested(options, "idle")
    assert rows() == list(range(4, 12))
    set_back()
    assert rows() == list(range(4, 8))
    write_source(tmp_path, 1, 4, 12)
    for name in ("third", "fourth"):
        with pytest.raises(BehindCheckpoint) as caught:
            SimulatedIngest(options, name=name)
    assert rows() == list(range(4, 8)), "nothing is changed by a refusal"
    assert cli.main(give_up_command_in(str(caught.value))) == 0
    for name in ("fifth", "sixth"):
        ingested(options, name)
        assert rows() == [*range(4, 8), *range(12, 16)]


WHERE = pytest.mark.parametrize("commit_in", get_args(CommitIn))


def options_of(tmp_path: Path, target: str, commit_in: CommitIn = "driver") -> IngestOptions:
    checkpoints = str(tmp_path / "checkpoints")
    return options_for(
        tmp_path,
        target=target,
        checkpoint_directory=checkpoints,
        parallelism=1,
        commit_in=commit_in,
    )


@WHERE
@pytest.mark.parametrize("by", ["restore", "time", "backup"])
def test_a_delta_table(tmp_path: Path, by: str, commit_in: CommitIn) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    table, kept = tmp_path / "out", tmp_path / "kept"
    version: list[Any] = []

    def keep() -> None:
        found = deltalake.DeltaTable(table)
        newest = found.history(1)[0]["timestamp"]
        version.append(found.version() if by == "restore" else _moment(newest))
        shutil.copytree(table, kept)

    def set_back() -> None:
        if by == "backup":
            shutil.rmtree(table)
            shutil.move(kept, table)
        else:
            deltalake.DeltaTable(table).restore(version[0])

    refused_until_given_up(
        tmp_path,
        options_of(tmp_path, f"delta:{table}", commit_in),
        lambda: delta_replay.rows(table),
        keep,
        set_back,
    )


def _moment(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def test_a_delta_table_whose_setting_back_was_taken_back_is_whole(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    options = options_of(tmp_path, f"delta:{tmp_path / 'out'}")
    for day in (1, 2):
        write_source(tmp_path, 1, 4, 4 * day)
        ingested(options, f"day-{day}")
    table = deltalake.DeltaTable(tmp_path / "out")
    whole = table.version()
    table.restore(0)
    table.restore(whole)
    table.optimize.compact()
    ingested(options, "after")
    assert sorted(table.to_pyarrow_table()["x"].to_pylist()) == list(range(4, 12))


@pytest.mark.parametrize("by", ["rollback", "properties"])
def test_an_iceberg_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="`iceberg` is not installed")
    for name, value in iceberg_replay.catalog(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
    kept: list[Any] = []

    def table() -> Any:
        return catalogs.load_catalog("lake", **iceberg_replay.catalog(tmp_path)).load_table(
            "sales.events"
        )

    def keep() -> None:
        kept.append((table().current_snapshot().snapshot_id, dict(table().properties)))

    def set_back() -> None:
        snapshot, properties = kept[0]
        table().manage_snapshots().rollback_to_snapshot(snapshot).commit()
        if by == "properties":
            with table().transaction() as transaction:
                transaction.set_properties(properties)

    refused_until_given_up(
        tmp_path,
        options_of(tmp_path, "iceberg:lake.sales.events"),
        lambda: iceberg_replay.rows(tmp_path),
        keep,
        set_back,
    )


@pytest.fixture
def events(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table events (x bigint primary key, name text)")
        yield connection


@WHERE
def test_a_table_of_postgresql(
    tmp_path: Path, dsn: str, events: psycopg.Connection[Any], commit_in: CommitIn
) -> None:
    kept: list[Any] = []

    def keep() -> None:
        kept.extend(events.execute("select checkpoint, rows from epochgate_ledger").fetchall())

    def set_back() -> None:
        events.execute("delete from events where x >= 8")
        events.execute("update epochgate_ledger set checkpoint = %s, rows = %s", kept[0])

    refused_until_given_up(
        tmp_path,
        options_of(tmp_path, f"postgres:{dsn}#events", commit_in),
        lambda: [row[0] for row in events.execute("select x from events order by x")],
        keep,
        set_back,
    )
