"""Old snapshots of an Iceberg table expire as its properties say, and no commit depends on it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.spark.iceberg_sink import (
    IcebergTable,
    IcebergTarget,
    OutcomeUnknown,
    target as targets,
)
from epochgate.spark.iceberg_sink.table import MAX_AGE_MS, MIN_KEPT
from tests.spark.tables.iceberg_replay import metadata, numbers, rows, snapshots
from tests.spark.tables.test_iceberg_target import CHECKPOINT, claimed, library, stage

pytest.importorskip("pyiceberg.catalog", reason="the extra `iceberg` is not installed")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IcebergTarget]:
    """One that expires snapshots after each third commit."""
    monkeypatch.setattr(targets, "EXPIRE_EVERY", 3)
    target = claimed(tmp_path, "r1")
    yield target
    target.release()


def keep(place: Path, age_ms: int | None, least: int = 1) -> None:
    with library(place).transaction() as transaction:
        if age_ms is None:
            transaction.remove_properties(MAX_AGE_MS)
        else:
            transaction.set_properties({MAX_AGE_MS: str(age_ms), MIN_KEPT: str(least)})


def commit(target: IcebergTarget, place: Path, first: int, last: int, run: str = "r1") -> None:
    for number in range(first, last + 1):
        assert target.commit(number, stage(place, run, [number]))


def test_a_table_of_ours_keeps_snapshots_for_a_day_and_at_least_a_hundred(
    target: IcebergTarget, tmp_path: Path
) -> None:
    commit(target, tmp_path, 1, 3)
    held = metadata(tmp_path)
    assert held is not None
    assert held["properties"][MAX_AGE_MS] == str(24 * 3600 * 1000)
    assert held["properties"][MIN_KEPT] == "100"
    assert numbers(tmp_path, CHECKPOINT) == [1, 2, 3]


def test_snapshots_stay_bounded_and_rows_and_refusals_stay_as_they_are(
    target: IcebergTarget, tmp_path: Path
) -> None:
    keep(tmp_path, age_ms=0, least=2)
    commit(target, tmp_path, 1, 12)
    assert len((metadata(tmp_path) or {})["snapshots"]) == 2
    assert numbers(tmp_path, CHECKPOINT) == [11, 12]
    assert rows(tmp_path) == list(range(1, 13))
    assert not target.commit(12, [])
    successor = claimed(tmp_path, "r2", 12)
    commit(successor, tmp_path, 13, 15, "r2")
    assert rows(tmp_path) == list(range(1, 16))
    successor.release()


def test_what_is_young_or_was_never_to_expire_stays(target: IcebergTarget, tmp_path: Path) -> None:
    keep(tmp_path, age_ms=3_600_000)
    commit(target, tmp_path, 1, 3)
    assert numbers(tmp_path, CHECKPOINT) == [1, 2, 3]
    keep(tmp_path, age_ms=None)
    commit(target, tmp_path, 4, 6)
    assert numbers(tmp_path, CHECKPOINT) == [1, 2, 3, 4, 5, 6]


def test_a_tagged_snapshot_stays(target: IcebergTarget, tmp_path: Path) -> None:
    keep(tmp_path, age_ms=0)
    commit(target, tmp_path, 1, 1)
    tagged = snapshots(tmp_path)[-1]["snapshot-id"]
    library(tmp_path).manage_snapshots().create_tag(tagged, "release").commit()
    commit(target, tmp_path, 2, 6)
    kept = {one["snapshot-id"] for one in (metadata(tmp_path) or {})["snapshots"]}
    assert kept == {tagged, snapshots(tmp_path)[-1]["snapshot-id"]}


def test_a_few_expire_at_a_time(
    target: IcebergTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, age_ms=3_600_000)
    commit(target, tmp_path, 1, 11)
    keep(tmp_path, age_ms=0)
    monkeypatch.setattr(targets, "EXPIRE_EVERY", 2)
    held = len((metadata(tmp_path) or {})["snapshots"])
    commit(target, tmp_path, 12, 12)
    assert len((metadata(tmp_path) or {})["snapshots"]) == held + 1 - 4


@pytest.mark.parametrize("error", [OutcomeUnknown("lake.events", "no answer"), None])
def test_a_commit_is_made_whatever_hinders_the_expiry(
    target: IcebergTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception | None,
) -> None:
    commit(target, tmp_path, 1, 2)
    if error is None:
        with library(tmp_path).transaction() as transaction:
            transaction.set_properties({MAX_AGE_MS: "a day"})
    else:

        def failing(table: IcebergTable, at_most: int) -> None:
            raise error

        monkeypatch.setattr(IcebergTable, "expire", failing)
    with caplog.at_level(logging.WARNING):
        commit(target, tmp_path, 3, 3)
    assert "3 commits later is tried again" in caplog.text
    assert ("no answer" if error else "a day") in caplog.text
    assert rows(tmp_path) == [1, 2, 3]
