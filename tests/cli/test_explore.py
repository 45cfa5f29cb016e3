"""`epochgate explore`: in the terminal, from files, and over HTTP; bad requests do no harm."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.exploring.links import STEPS_MAX, View
from epochgate.exploring.seeking import Seeker
from epochgate.exploring.site import Site
from epochgate.fsm.checker.exploring import Explorer, Run
from epochgate.models.studies.catalogue import STUDIES
from tests.browser.jobs import empty
from tests.browser.serving import asked, served
from tests.checker.small_systems import House, UnfairHouse

HOUSE, UNFAIR = (f"tests.checker.small_systems:{one}" for one in ("House", "UnfairHouse"))


def told(
    commands: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *more: str,
) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{one}\n" for one in commands)))
    assert main(["explore", "--terminal", *more]) == 0
    return capsys.readouterr().out


def test_the_terminal_takes_steps_goes_back_and_searches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ["1", "visitor[0].enter", "s", "b", "f", "/ visitor[1].is_inside()", "run", "c", "q"]
    lines = told(commands, monkeypatch, capsys, HOUSE).splitlines()
    assert lines[0] == "step 0 of 0: initial state 0"
    assert "  door: state on, is_locked True" in lines
    assert lines.count("step 2 of 2: visitor[0].enter: no visitor is inside") == 2
    assert "step 1 of 2: visitor[0].ask: a visitor comes" in lines
    assert lines[-4:-2] == ["visitor[1].ask", "visitor[1].enter"]
    assert lines[-1] == "  a_visitor_is_inside: sometimes, a visitor is inside (true here)"


def test_the_terminal_answers_what_it_cannot_do_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ["77", "visitor[0].leave", "go 9", "c none", "/ 1)", "\x1b[2J", "", "?"]
    out = told(commands, monkeypatch, capsys, HOUSE)
    assert "2 steps are possible here" in out
    assert "step 1, visitor[0].leave, is not possible after the 0 before it" in out
    assert "the run has 0 steps" in out
    assert "there is no claim 'none'" in out
    assert "'1)' is no expression" in out
    assert "\x1b" not in out
    assert "take the third of the possible steps" in out


def test_a_counterexample_of_a_check_is_stepped_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "check.json"
    assert main(["check", UNFAIR, "--json", str(path)]) == 1
    found = json.loads(path.read_text())["counterexample"]
    capsys.readouterr()
    lines = told(["last", "run"], monkeypatch, capsys, UNFAIR, "--load", str(path)).splitlines()
    steps = [step["label"] for step in found["steps"]]
    assert lines[:2] == [found["message"], f"step 0 of {len(steps)}: initial state 0"]
    assert lines[-len(steps) :] == steps
    schedule = tmp_path / "steps.txt"
    schedule.write_text("\n".join(steps))
    out = told(["last", "run"], monkeypatch, capsys, UNFAIR, "--load", str(schedule))
    assert out.splitlines()[-len(steps) :] == steps


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no JSON"),
        ("[]", "has no counterexample of House"),
        ('{"system": "House", "counterexample": {"steps": []}}', "lacks 'initial'"),
        ("visitor[0].leave", "is not possible"),
        ("visitor[0].fly", "is none of House"),
    ],
)
def test_a_file_without_a_run_of_the_system_is_misuse(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    path.write_text(text)
    assert main(["explore", HOUSE, "--terminal", "--load", str(path)]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing:Nothing"],
        [HOUSE, "--set", "rooms=2"],
        [HOUSE, "--max-seconds", "0"],
        [HOUSE, "--port", "-1"],
    ],
)
def test_misuse_is_refused(arguments: list[str]) -> None:
    assert main(["explore", *arguments]) == 2


@pytest.fixture(scope="module")
def house() -> Iterator[str]:
    with served(Site("House", Explorer(House()), 10.0, View()).answer) as url:
        yield url


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    with served(
        Site("reference", Explorer(STUDIES["reference"](E=2, K=2)), 0.5, View()).answer
    ) as url:
        yield url


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/no-such-page", 404),
        ("/?run=visitor[0].leave", 400),
        ("/?run=<script>alert(1)</script>", 400),
        ("/?run=visitor[0].ask&at=2", 400),
        ("/?at=-1", 400),
        ("/?at=9999999999999999999", 400),
        ("/?from=1", 400),
        ("/?cycle=x", 400),
        ("/?run=" + "a~" * STEPS_MAX, 400),
        ("/?run=" + "~".join(["visitor[0].ask"] * 10_000), 414),
        ("/?" + "&".join(f"a{n}=1" for n in range(200)), 400),
        ("/search", 400),
        ("/search?condition=__import__('os').abort()", 400),
        ("/search?condition=%00", 400),
        ("/claim?name=no", 400),
        ("//[", 404),
        ("/?note=%ff%fe", 200),
        ("/state.json", 200),
        ("/", 200),
    ],
)
def test_bad_requests_are_refused_and_the_next_one_is_answered(
    house: str, path: str, status: int
) -> None:
    path = path.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")
    found, text, _ = asked(house, path)
    assert found == status
    assert "<script>alert" not in text
    assert "Traceback" not in text
    assert asked(house, "/")[0] == 200


def test_only_this_machine_is_answered_and_nothing_is_written(house: str) -> None:
    assert asked(house, "/", Host="rebound.example")[0] == 403
    assert (
        asked(
            house,
            "/",
            Host=house.replace("127.0.0.1", "localhost").strip("/").removeprefix("http://"),
        )[0]
        == 200
    )
    assert asked(house, "/search?condition=True", Sec_Fetch_Site="cross-site")[0] == 403
    for method in ("POST", "PUT", "DELETE"):
        assert asked(house, "/", method)[0] == 501
    status, text, headers = asked(house, "/", "HEAD")
    assert (status, text) == (200, "")
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_each_link_of_a_place_leads_to_the_same_place_of_another_server(house: str) -> None:
    link = View(Run(0, ("visitor[0].ask", "visitor[0].enter")), 2).link("/state.json")
    state = json.loads(asked(house, link)[1])
    again = Explorer(House()).place(Run(0, ("visitor[0].ask", "visitor[0].enter")))
    assert state["state"] == json.loads(json.dumps(again.state))
    assert [one["step"] for one in state["possible"]] == [one.name for one in again.possible]


def test_a_search_leads_to_its_place_and_one_without_a_claim_says_so(house: str) -> None:
    status, _, headers = asked(house, "/search?condition=door.is_locked")
    assert (status, headers["Location"].partition("&")[0]) == (
        303,
        "/?run=visitor[0].ask~visitor[0].enter",
    )
    told = asked(house, "/claim?name=is_locked_when_visited")[2]["Location"]
    assert told == (
        "/?at=0&note=is_locked_when_visited%3A%20no%20counterexample%3A%20"
        "8%20states%20were%20looked%20at,%20which%20are%20all"
    )


def test_a_search_through_a_large_system_ends_in_time(large: str) -> None:
    location = asked(large, "/search?condition=gateway[0][0].sent%3E99")[2]["Location"]
    assert "stopped%20early" in location


def test_searches_go_one_at_a_time(large: str) -> None:
    found = []

    def search() -> None:
        found.append(asked(large, "/search?condition=gateway[0][0].sent%3E99")[0])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found)[0] == 303
    assert set(found) <= {303, 400}


def test_an_unfair_loop_is_shown_as_one() -> None:
    explorer = Explorer(UnfairHouse())
    view = Seeker(explorer, 10.0).claim("first_wants")
    assert view.cycle is not None
    assert f"cycle={view.cycle}" in view.link()


@pytest.mark.parametrize("name", ["explore", "ui"])
def test_the_server_names_its_address_and_ends_when_it_is_interrupted(
    name: str, tmp_path: Path
) -> None:
    place = HOUSE if name == "explore" else str(empty(tmp_path))
    command = [sys.executable, "-m", "epochgate", name, place, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", told)
        assert found is not None, told
        assert asked(found[0], "/")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
