"""The landing zone of the soak keeps its word, and its ledger finds what is wrong with a target."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from epochgate.soaking.folders import Directory
from epochgate.soaking.zone import KINDS, LandingZone
from epochgate.spark.ingest.verification import verify_parquet


def zone_at(place: Path, kind: str) -> LandingZone:
    return zone_of(place, kind, lambda first, *_: first % 3 == 0)


def zone_of(place: Path, kind: str, have_arrived: Callable[..., bool]) -> LandingZone:
    source = Directory(place / "source")
    return LandingZone(source, place / "ledger", KINDS[kind], random.Random(7), have_arrived)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_that_was_ever_delivered_is_in_the_ledger_once(tmp_path: Path, kind: str) -> None:
    zone = zone_at(tmp_path, kind)
    for _ in range(120):
        zone.act()
    ids = [i for path in zone.ledger.iterdir() for i in pq.read_table(path)["id"].to_pylist()]
    assert sorted(ids) == list(range(zone.rows))
    assert set(Counter(zone.done)) == {
        "deliver",
        "touch",
        "deliver again",
        "rewrite",
        "take away",
        "bring back",
    }
    assert len(zone.bad_rows) == len(set(zone.bad_rows))
    assert bool(zone.bad_rows) == (kind != "parquet")
    assert {path.suffix for path in (tmp_path / "source").iterdir()} == {f".{kind}"}


@pytest.mark.parametrize("kind", KINDS)
def test_only_files_that_have_arrived_are_rewritten_or_taken_away(
    tmp_path: Path, kind: str
) -> None:
    zone = zone_of(tmp_path, kind, lambda *_: False)
    for _ in range(30):
        zone.act()
    assert not {"rewrite", "take away", "bring back"}.intersection(zone.done)


def test_an_act_asks_for_one_file_at_most_however_many_there_are(tmp_path: Path) -> None:
    asked: list[tuple[int, int, list[str]]] = []

    def have_arrived(*content: Any) -> bool:
        asked.append(content)
        return False

    zone = zone_of(tmp_path, "csv", have_arrived)
    for _ in range(60):
        before = len(asked)
        zone.act()
        assert len(asked) <= before + 1
    assert len(asked) > 5
    assert zone.done.count("deliver") > 10
    assert {bad for *_, content in asked for bad in content} <= set(zone.bad_rows)


def test_the_ledger_finds_lost_repeated_and_foreign_rows_of_any_type(tmp_path: Path) -> None:
    zone, target = zone_at(tmp_path, "parquet"), tmp_path / "target"
    zone.deliver()
    target.mkdir()
    first, second = (pq.read_table(path) for path in sorted(zone.ledger.iterdir()))
    assert verify_parquet(zone.ledger, target).lost == zone.rows
    pq.write_table(first, target / "a.parquet")
    pq.write_table(second, target / "b.parquet")
    assert verify_parquet(zone.ledger, target).is_exact()
    pq.write_table(second.slice(1), target / "b.parquet")
    pq.write_table(first.slice(0, 2), target / "c.parquet")
    changed = first.slice(0, 1).to_pylist()
    changed[0]["spot"]["label"] = "elsewhere"
    pq.write_table(first.from_pylist(changed, first.schema), target / "d.parquet")
    verdict = verify_parquet(zone.ledger, target)
    assert (verdict.lost, verdict.duplicated, verdict.foreign) == (1, 2, 1)
