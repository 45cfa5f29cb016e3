"""`epochgate checkpoints` says what a job has stored, and which of it can be read."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.commands.checkpoints import NoCheckpoint, checkpoints_of, stored_at
from epochgate.runtime import pack_parts
from epochgate.runtime.store import (
    CheckpointStore,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
    checkpoint_file_name,
)
from epochgate.runtime.store.encoding import seal, unseal
from epochgate.spark.parquet_sink.object_target import ObjectTarget
from tests.runtime.objects.stores import Memory

URL = "s3://bucket/jobs/orders"


def checkpoint(number: int) -> CompletedCheckpoint:
    return CompletedCheckpoint(
        number,
        "orders",
        "run-1",
        1_700_000_000.0 + number,
        parallelism=2,
        coordinators={"source": b"c" * 1000, "sink": None},
        subtasks={0: {"source": b"ab", "sink": b""}, 1: {"source": b"abcd"}},
        committables={0: [{"path": "a"}, {"path": "b"}], 1: []},
        uncommitted={number - 1: [{"path": "earlier"}]},
        properties={"rows": b"\xff"},
        versions={0: {"source": 2}, 1: {"source": 2}},
        begun_from="savepoint-1",
    )


def store_in(store: CheckpointStore) -> None:
    for number in (1, 2, 3):
        store.save(checkpoint(number))
    store.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store_in(DirectoryCheckpointStore(tmp_path / "checkpoints", job_id="orders"))
    return tmp_path / "checkpoints"


def damage(directory: Path, number: int) -> Path:
    path = directory / checkpoint_file_name(number)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return path


def test_they_are_listed_with_what_is_left_to_commit(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["checkpoints", "list", str(directory)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["checkpoint", "taken", "states", "subtasks", "to", "commit"]
    assert [line.split()[0] for line in shown[1:]] == ["1", "2", "3"]
    assert shown[1].endswith("1.0 kB  2         3")


def test_one_is_shown_by_operator(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["checkpoints", "show", str(directory), "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("checkpoint 2 of job orders\n")
    rows = [line.split() for line in shown.splitlines()]
    assert ["sink", "-", "1", "0", "B", "0", "B", "0", "B"] in rows
    assert ["source", "1.0", "kB", "2", "2", "B", "4", "B", "6", "B"] in rows
    assert "committables: 2 of 2 subtasks" in shown
    assert "state of source: version 2\nbegun from savepoint savepoint-1\n" in shown
    assert "not known to be committed: 1 of checkpoint 1" in shown


def test_the_newest_is_shown_where_none_is_named(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["checkpoints", "show", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint_id"] == 3


def test_of_one_in_parts_it_is_told_how_much_lies_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "checkpoints"
    large = pack_parts({"a": b"a" * 20_000, "b": b"b" * 20_000, "c": b"c"})
    with DirectoryCheckpointStore(place, job_id="orders") as store:
        store.save(replace(checkpoint(1), subtasks={0: {"source": large}}))
    assert cli.main(["checkpoints", "show", str(place)]) == 0
    assert "in parts of their own: 40.0 kB of the states, 2 parts" in capsys.readouterr().out
    file = tmp_path / "one.json"
    assert cli.main(["checkpoints", "export", str(place), "-o", str(file)]) == 0
    exported = json.loads(file.read_text())["subtasks"]["0"]["source"]["base64"]
    assert base64.b64decode(exported) == large
    [first, _] = sorted((place / "parts").iterdir())
    first.write_bytes(b"")
    assert cli.main(["checkpoints", "verify", str(place)]) == 1
    assert "is not what was written" in capsys.readouterr().out


def test_a_damaged_one_is_named_and_left_as_it_is(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damage(directory, 2)
    before = path.read_bytes()
    assert cli.main(["checkpoints", "verify", str(directory)]) == 1
    shown = capsys.readouterr().out
    assert f"damaged: its checksum does not fit its content ({path})" in shown
    assert shown.endswith("2 of 3 whole\n")
    assert path.read_bytes() == before
    assert cli.main(["checkpoints", "show", str(directory), "2"]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_one_that_a_start_has_set_aside_is_listed_too(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(directory, 3)
    with DirectoryCheckpointStore(directory, job_id="orders") as store:
        assert store.latest() == checkpoint(2)
    assert cli.main(["checkpoints", "list", str(directory), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["checkpoint_id"], one["state"]) for one in found] == [
        (1, "whole"),
        (2, "whole"),
        (3, "damaged"),
    ]
    assert cli.main(["checkpoints", "show", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint_id"] == 2


def test_all_of_one_is_exported(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    assert cli.main(["checkpoints", "export", str(directory), "1", "-o", str(file)]) == 0
    found = json.loads(file.read_text())
    assert base64.b64decode(found["subtasks"]["1"]["source"]["base64"]) == b"abcd"
    assert found["properties"] == {"rows": {"base64": "/w=="}}
    assert found["committables"] == {"0": [{"path": "a"}, {"path": "b"}], "1": []}


def test_a_job_that_runs_keeps_its_directory(directory: Path) -> None:
    with DirectoryCheckpointStore(directory, job_id="orders") as store:
        assert cli.main(["checkpoints", "verify", str(directory)]) == 0
        store.save(checkpoint(4))
        assert store.ids() == [2, 3, 4]


def test_those_of_an_object_store_are_read_without_a_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = Memory()
    monkeypatch.setattr("epochgate.runtime.store.inspection.open_url", memory.open)
    store = ObjectCheckpointStore(memory.open(URL), job_id="orders")
    store.save(checkpoint(1))
    assert cli.main(["checkpoints", "verify", URL]) == 0
    assert "1 of 1 whole" in capsys.readouterr().out
    store.save(checkpoint(2))
    assert cli.main(["checkpoints", "show", URL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint_id"] == 2


def test_a_target_in_an_object_store_stands_for_the_checkpoints_beside_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = Memory()
    monkeypatch.setattr("epochgate.runtime.store.inspection.open_url", memory.open)
    ObjectTarget(memory.open(URL), "orders", "r1").claim(None)
    with pytest.raises(NoCheckpoint):
        stored_at(checkpoints_of(URL))
    ObjectCheckpointStore(memory.open(f"{URL}.checkpoints"), job_id="orders").save(checkpoint(1))
    for given in (URL, f"{URL}/", f"{URL}.checkpoints"):
        assert cli.main(["checkpoints", "verify", given]) == 0
        assert "1 of 1 whole" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "DIR", "7"], "holds no checkpoint 7, but 1, 2, 3"),
        (["list", "DIR/none"], "holds no checkpoints of a job"),
        (["export", "DIR", "-o", "DIR/none/file"], "(-o): No such file or directory"),
    ],
)
def test_what_is_not_there_is_named(
    arguments: list[str], told: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [one.replace("DIR", str(directory)) for one in arguments]
    assert cli.main(["checkpoints", *given]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("created_at", [1e300, -1e18, 2**63, float(2**40)])
@pytest.mark.parametrize("action", ["list", "show", "verify"])
def test_a_time_that_no_calendar_has_is_shown_as_a_number(
    created_at: float, action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DirectoryCheckpointStore(tmp_path, job_id="orders") as store:
        store.save(checkpoint(1))
        store.save(replace(checkpoint(2), created_at=created_at))
    assert cli.main(["checkpoints", action, str(tmp_path)]) == 0
    assert "2" in capsys.readouterr().out


def test_a_file_of_another_version_does_not_hide_the_others(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / checkpoint_file_name(2)
    _, content = unseal(path.read_bytes(), "two")
    path.write_bytes(seal(content, 2**32 - 1))
    (directory / checkpoint_file_name(3)).unlink()
    (directory / checkpoint_file_name(3)).mkdir()
    assert cli.main(["checkpoints", "verify", str(directory)]) == 1
    shown = capsys.readouterr().out
    assert "unreadable: " in shown
    assert f"format version {2**32 - 1}" in shown
    assert "Is a directory" in shown
    assert shown.endswith("1 of 3 whole\n")


@pytest.mark.parametrize("action", ["list", "show", "verify"])
def test_control_characters_of_a_file_do_not_reach_the_terminal(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07\u202e\ncheckpoint 9 whole"
    stored = replace(
        checkpoint(1),
        job_id=evil,
        run_id=evil,
        coordinators={evil: b""},
        properties={evil: 1},
        begun_from=evil,
    )
    with DirectoryCheckpointStore(tmp_path, job_id=evil) as store:
        store.save(stored)
    cli.main(["checkpoints", action, str(tmp_path)])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\u202e" not in shown.out
    assert "\ncheckpoint 9" not in shown.out
    if action == "show":
        assert r"job \x1b]0;owned\x07\u202e\ncheckpoint 9 whole" in shown.out
