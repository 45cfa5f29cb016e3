"""`epochgate control` says what steers a query and which batch saw what, and changes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.spark.streaming import Control
from tests.runtime.steering.coordinators import Provider


@pytest.fixture
def store(tmp_path: Path) -> str:
    control = Control("pricing", {"limit": 900, "mode": "strict"}, store=str(tmp_path))
    for batch in range(12):
        control.decide("query-1", batch)
        if batch == 4:
            control.update(limit=700)
    return str(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["control", *words]) == 0
    return capsys.readouterr().out


def test_controls_are_listed_with_what_they_hold(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(capsys, "list", store).splitlines()
    assert lines[1].split(maxsplit=2) == ["pricing", "1", '{"limit": 700}  1']
    found = json.loads(told(capsys, "list", store, "--json"))
    assert found[0]["queries"] == ["query-1"]


def test_batches_are_shown_with_what_they_ran_with(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(capsys, "show", store, "pricing")
    assert "(2 older ones: --all)" in shown
    assert [line.split()[:3] for line in shown.splitlines() if line[:2] in ("4 ", "5 ")] == [
        ["4", "0", "0"],
        ["5", "1", "5"],
    ]
    assert "older" not in told(capsys, "show", store, "pricing", "--all")
    batches = json.loads(told(capsys, "show", store, "pricing", "--json"))["queries"]["query-1"]
    assert [one["value"]["limit"] for one in batches] == [900] * 5 + [700] * 7


def test_files_that_are_ignored_are_shown(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(store, "pricing", "versions", "backup.json").write_text("{}")
    shown = told(capsys, "show", store, "pricing")
    assert shown.splitlines()[-2:] == [
        "ignored, of others than epochgate:",
        "pricing/versions/backup.json",
    ]
    found = json.loads(told(capsys, "show", store, "pricing", "--json"))
    assert found["ignored"] == ["pricing/versions/backup.json"]


def test_what_is_set_is_in_the_next_batch(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "set", store, "pricing", "limit=600", 'mode="lax"')
    assert said.startswith('update 2 of pricing: {"limit": 600, "mode": "lax"}')
    by = [one.updated_by for one in Control("pricing", store=store).updates()]
    assert by[1] == by[0]
    control = Control("pricing", {"limit": 900, "mode": "strict"}, store=store)
    assert control.decide("query-1", 11).value == {"limit": 700, "mode": "strict"}
    assert control.decide("query-1", 12).value == {"limit": 600, "mode": "lax"}


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (["show", "prices"], "has no control 'prices'; it has pricing"),
        (["set", "pricing"], "nothing is to be set; give NAME=JSON, with a name of limit, mode"),
        (["set", "pricing", "limt=1"], "pricing has no value 'limt'"),
        (["set", "pricing", 'limit="high"'], "has limit = 700, a number, and 'high' is a str"),
        (["show"], "name a control of"),
        (["show", "pricing", "--query", "zz"], "no batch of query 'zz' was decided"),
        (["set", "pricing", "mode=lax"], "a word stands in quotes, mode='\"lax\"'"),
    ],
)
def test_a_slip_is_told_and_changes_nothing(
    store: str, words: list[str], because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["control", words[0], store, *words[1:]]) == 2
    assert because in capsys.readouterr().err
    assert Control("pricing", store=store).value == {"limit": 700}


def test_a_batch_shows_the_coordinator_that_chose_and_the_size_of_its_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path)
    initial = {"limit": 900, "mode": "strict"}
    Control("pricing", initial, store=store).decide("query-1", 0)
    Control("pricing", initial, store=store, coordinator=Provider()).decide("query-1", 1)
    shown = told(capsys, "show", store, "pricing").splitlines()
    assert shown[-3].endswith("chosen by")
    assert shown[-2].rstrip().endswith('"strict"}')
    assert shown[-1].endswith('{"limit": 899, "mode": "strict"}  lowering (state: 1 B)')
    batches = json.loads(told(capsys, "show", store, "pricing", "--json"))["queries"]["query-1"]
    assert [one["state"] for one in batches] == [
        None,
        {"operator_id": "lowering", "version": 1, "data": 1},
    ]
