"""The landing zone of the soak keeps its word, and its ledger finds what is wrong with a target."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from tests.soak.driver import Drivers, NotTaken, SoakFailed, Tally
from tests.soak.folders import LOG, Directory, DirectoryTable, ObjectTable, Table
from tests.soak.run import main
from tests.soak.verification import verify_parquet
from tests.soak.zone import KINDS, LandingZone


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


def on_a_disk(place: Path, numbers: Sequence[int]) -> DirectoryTable:
    table = place / "table"
    manifests = place / ".table.epochgate" / "manifests"
    manifests.mkdir(parents=True)
    for number in numbers:
        directory = table / f"checkpoint={number:012d}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [10 * number, 10 * number + 1]}), directory / "a.parquet")
        (manifests / f"checkpoint-{number:012d}.json").touch()
    return DirectoryTable(table)


def in_objects(place: Path, numbers: Sequence[int]) -> ObjectTable:
    """Through the same client of Arrow's, on a directory in the place of the store."""
    (place / "bucket" / "table" / LOG).mkdir(parents=True)
    entries: list[dict[str, Any]] = [{"kind": "claim"}]
    for number in numbers:
        name = f"data/{number}.parquet"
        path = place / "bucket" / "table" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [10 * number, 10 * number + 1]}), path)
        entries.append({"kind": "commit", "checkpoint": number, "files": [name]})
        entries.append({"kind": "claim"})
    for number, entry in enumerate(entries):
        path = place / "bucket" / "table" / LOG / f"{number:015d}.json"
        path.write_text(json.dumps(entry))
    keys = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
    table = ObjectTable("bucket/table", place / "copies", dict.fromkeys(keys, "http://x"))
    table._s3 = pyarrow.fs.SubTreeFileSystem(str(place), pyarrow.fs.LocalFileSystem())
    return table


def ids_in(folder: Path) -> list[int]:
    found: list[int] = []
    for path in folder.rglob("*.parquet"):
        found += pq.read_table(path, partitioning=None)["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("make", [on_a_disk, in_objects])
def test_a_table_that_is_set_back_lacks_its_newest_commits_which_are_kept(
    make: Callable[[Path, Sequence[int]], Table], tmp_path: Path
) -> None:
    table = make(tmp_path, [3, 4, 10, 12])
    assert len(ids_in(table.files())) == 8
    table.set_back(2, tmp_path / "kept")
    assert ids_in(table.files()) == [30, 31, 40, 41]
    assert ids_in(tmp_path / "kept") == [100, 101, 120, 121]
    left = [path.name for path in tmp_path.rglob("*.json")]
    assert len(left) == (2 if make is on_a_disk else 5), "its notes are of that time"


def test_rows_that_are_given_up_leave_the_ledger_and_no_others(tmp_path: Path) -> None:
    zone = zone_at(tmp_path, "parquet")
    zone.deliver()
    (tmp_path / "kept" / "checkpoint=1").mkdir(parents=True)
    lost = pa.table({"id": pa.array([0, zone.rows - 1], pa.int64())})
    pq.write_table(lost, tmp_path / "kept" / "checkpoint=1" / "a.parquet")
    assert zone.give_up(tmp_path / "kept") == 2
    assert ids_in(zone.ledger) == list(range(1, zone.rows - 1))


class Scripted(Drivers):
    """Its drivers are shell scripts."""

    def __init__(self, place: Path, script: str) -> None:
        super().__init__("in", "out", place, random.Random(1), Tally())
        self._script = script

    def _started(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("a") as output:
            return subprocess.Popen(["sh", "-c", self._script], stdout=output)


WAY = "echo 'rows are missing: `epochgate commits give-up /a/b --after 7`, and'; exit "


@pytest.mark.parametrize("code", [1, 2])
def test_a_driver_that_does_not_take_its_target_names_what_may_be_given_up(
    code: int, tmp_path: Path
) -> None:
    with pytest.raises(NotTaken) as caught:
        Scripted(tmp_path, f"{WAY}{code}").live(1, [], lambda: None)
    assert caught.value.way_on == ["commits", "give-up", "/a/b", "--after", "7"]
    assert "rows are missing" in str(caught.value)


@pytest.mark.parametrize("script", ["echo no space left; exit 1", f"{WAY}130"])
def test_another_end_names_none(script: str, tmp_path: Path) -> None:
    with pytest.raises(SoakFailed) as caught:
        Scripted(tmp_path, script).live(1, [], lambda: None)
    assert not isinstance(caught.value, NotTaken)


def test_a_job_whose_store_hangs_has_to_end_by_its_limit(tmp_path: Path) -> None:
    ended = Scripted(tmp_path, "echo store_timeout_s is the limit; exit 1")
    ended.hang([], lambda: None)
    for number, script in enumerate(["exit 0", "echo store_timeout_s is the limit", "exit 1"]):
        place = tmp_path / str(number)
        place.mkdir()
        with pytest.raises(SoakFailed, match="a job whose store hangs ended with exit code"):
            Scripted(place, script).hang([], lambda: None)


@pytest.mark.parametrize("arguments", [("--kills", "0"), ("--minutes", "0"), ("--keep", ".")])
def test_soak_refuses_what_cannot_be_meant(
    arguments: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments]) == 2
    assert arguments[0].removeprefix("--") in capfd.readouterr().err
