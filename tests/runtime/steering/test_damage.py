"""Damage to the files of a control, and foreign files among them: named, or ignored, never used."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.runtime.entries.errors import EntryDamaged
from epochgate.runtime.entries.stores import open_entries
from epochgate.runtime.source.batches.planned import plans
from epochgate.runtime.steering import UpdateFailed, VersionMissing
from epochgate.runtime.steering.layout import controls_in, foreign_in, queries_of
from epochgate.spark.streaming import Control
from tests.runtime.steering.numbered import STREAM, Numbers, driver as planner

QUERY = "query-1"
VERSION = Path("pricing/versions/000000000000002.json")
DECISION = Path("pricing/queries/query-1/000000000000001.json")


def control_in(folder: Path) -> Control:
    return Control("pricing", {"limit": 900, "mode": "strict"}, store=str(folder))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two updates, and two batches: the second ran with both."""
    control = control_in(tmp_path)
    control.update(limit=700)
    control.decide(QUERY, 0)
    control.update(mode="lax")
    control.decide(QUERY, 1)
    return tmp_path


@pytest.mark.parametrize("damaged", [VERSION, DECISION], ids=["version", "decision"])
def test_no_flipped_bit_changes_a_value(store: Path, damaged: Path) -> None:
    whole = (store / damaged).read_bytes()
    told: list[str] = []
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        (store / damaged).write_bytes(flipped)
        control = control_in(store)
        try:
            assert control.value == {"limit": 700, "mode": "lax"}
            assert control.decide(QUERY, 1).value == {"limit": 700, "mode": "lax"}
        except EntryDamaged as error:
            told.append(str(error))
    assert all(str(damaged) in one for one in told)
    assert len(told) > 7 * len(whole)


def test_entries_without_a_checksum_as_earlier_releases_wrote_them_are_read(store: Path) -> None:
    for path in store.rglob("*.json"):
        entry = json.loads(path.read_text())
        del entry["sha256"]
        path.write_text(json.dumps(entry))
    control = control_in(store)
    assert control.value == {"limit": 700, "mode": "lax"}
    assert control.decide(QUERY, 1).value == {"limit": 700, "mode": "lax"}
    assert control.update(limit=600) == 3


FOREIGN = (
    "pricing/versions/backup.json",
    "pricing/versions/2.json",
    "pricing/versions/old/000000000000009.json",
    "pricing/queries/notes.json",
    "pricing/queries/query-1/000000000000001 (copy).json",
)


def test_foreign_files_are_told_and_ignored(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in FOREIGN:
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_text("{}")
    os.mkfifo(store / "pricing/versions/pipe.json")
    entries = open_entries(str(store))
    with caplog.at_level(logging.WARNING):
        control = control_in(store)
        assert control.update(limit=600) == 3
        assert control.decide(QUERY, 2).value == {"limit": 600, "mode": "lax"}
    assert {name for name in FOREIGN if name in caplog.text} == {
        *FOREIGN[:2],
        *FOREIGN[2:3],
        FOREIGN[4],
    }
    assert foreign_in(entries, "pricing") == sorted([*FOREIGN, "pricing/versions/pipe.json"])
    assert (controls_in(entries), queries_of(entries, "pricing")) == (["pricing"], [QUERY])


def test_foreign_files_among_plans_are_ignored(tmp_path: Path) -> None:
    one = planner(open_entries(str(tmp_path)), Numbers(4))
    assert one.has_batch(1)
    (tmp_path / STREAM / "plans" / "backup.json").write_text("{}")
    assert one.has_batch(2)
    assert [plan.batch for plan in plans(str(tmp_path))] == [1, 2]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def exchange(path: Path) -> None:
    path.write_bytes(path.with_name("000000000000001.json").read_bytes())


def hold_nothing(path: Path) -> None:
    path.write_text("{}")


DAMAGES = (cut, empty, make_fifo, make_directory, exchange, hold_nothing)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_version_is_named_with_a_way_on_that_works(
    store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store / VERSION)
    control = control_in(store)
    with pytest.raises(EntryDamaged, match=rf"^{store / VERSION} is damaged: .* move it out"):
        _ = control.value
    with pytest.raises(EntryDamaged, match=rf"^{store / VERSION} is damaged: .* move it out"):
        control.decide(QUERY, 2)
    with pytest.raises(UpdateFailed, match=rf"{VERSION} is damaged: .* move it out"):
        control.update(limit=600)
    (store / VERSION).rename(store / "moved")
    with pytest.raises(VersionMissing, match=r"update 2 .* and the newest is 1") as missing:
        control.decide(QUERY, 2)
    assert "'mode': 'lax'" in str(missing.value)
    assert control.update(mode="open") == 3
    assert control.decide(QUERY, 2).value == {"limit": 700, "mode": "open"}
    assert [control.effective_from(version) for version in (2, 3)] == [1, 2]


@pytest.mark.parametrize("damage", [cut, empty, make_fifo, make_directory, hold_nothing])
def test_a_damaged_decision_is_named_with_a_way_on_that_works(
    store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store / DECISION)
    control = control_in(store)
    with pytest.raises(EntryDamaged, match=rf"^{store / DECISION} is damaged: .* move it out"):
        control.decide(QUERY, 1)
    (store / DECISION).rename(store / "moved")
    assert control.decide(QUERY, 1).value == {"limit": 700, "mode": "lax"}
