"""The log of a Delta table is as long as its property says, and only some commits look for it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.spark.delta_sink import DeltaTarget, log
from tests.spark.tables.test_delta_target import claimed, stage

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
DAY_S = 24 * 3600


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One whose job looks for expired entries with each tenth version."""
    monkeypatch.setattr(log, "CLEANED_EVERY", 10)
    return tmp_path / "table"


@pytest.fixture
def target(table: Path) -> Iterator[DeltaTarget]:
    target = claimed(table, "r1")
    yield target
    target.release()


def commit(target: DeltaTarget, table: Path, first: int, last: int) -> None:
    for number in range(first, last + 1):
        assert target.commit(number, stage(table, "r1", [number]))


def age(table: Path, seconds: float) -> None:
    """Make all entries that old: their own times, and those of their files."""
    then = time.time() - seconds
    for entry in (table / "_delta_log").iterdir():
        if entry.suffix == ".json":
            actions = [json.loads(line) for line in entry.read_text().splitlines()]
            for action in actions:
                if "commitInfo" in action:
                    action["commitInfo"]["timestamp"] = int(then * 1000)
            entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
        os.utime(entry, (then, then))


def versions(table: Path) -> list[int]:
    return sorted(int(entry.stem) for entry in (table / "_delta_log").glob("*.json"))


def values(table: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(table).to_pyarrow_table()["x"].to_pylist())


def test_a_table_of_ours_keeps_its_entries_for_a_day(target: DeltaTarget, table: Path) -> None:
    commit(target, table, 1, 1)
    found = deltalake.DeltaTable(table).metadata().configuration
    assert found == {"delta.logRetentionDuration": "interval 1 days"}


def test_expired_entries_go_with_each_tenth_version_and_no_row_with_them(
    target: DeltaTarget, table: Path
) -> None:
    commit(target, table, 1, 6)
    deltalake.DeltaTable(table).create_checkpoint()
    age(table, 2 * DAY_S)
    commit(target, table, 7, 10)
    assert versions(table) == list(range(10)), "no version before the tenth looks for them"
    commit(target, table, 11, 11)
    assert versions(table) == [5, 6, 7, 8, 9, 10]
    assert values(table) == list(range(1, 12))
    assert not target.commit(11, [])
    target.release()
    successor = claimed(table, "r2", 11)
    assert values(table) == list(range(1, 12))
    successor.release()


def test_young_entries_stay(target: DeltaTarget, table: Path) -> None:
    commit(target, table, 1, 6)
    deltalake.DeltaTable(table).create_checkpoint()
    age(table, DAY_S / 2)
    commit(target, table, 7, 11)
    assert versions(table) == list(range(11))
