"""A trace is gone through line by line, in any order, up to the line that is refused."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.exploring.traces import TraceSite
from epochgate.fsm.traces.lines import opened
from epochgate.runtime.tracing import stepping
from epochgate.runtime.tracing.stepping import Stepper, TraceUnreadable, steppers
from tests.browser.serving import asked, served
from tests.traces.stories import told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="module")
def url(story: Path) -> Iterator[str]:
    with served(TraceSite(steppers([str(story)])).answer) as url:
        yield url


def test_places_are_the_same_in_any_order_and_end_where_the_foot_says(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "STATE_EVERY", 7)
    path = story / "driver.000001.jsonl"
    stepper = Stepper([str(path)])
    count = len(stepper.events)
    assert count > 30
    forward = [stepper.at(number).state for number in range(count + 1)]
    assert [stepper.at(number).state for number in reversed(range(count + 1))] == forward[::-1]
    assert [stepper.at(number).before for number in range(1, count + 1)] == forward[:-1]
    lines = path.read_bytes().splitlines()
    assert forward[0] == opened(lines[0])["state"]
    assert forward[-1] == opened(lines[-1])["state"]
    assert stepper.refusal is None
    with pytest.raises(TraceUnreadable, match="there is no line"):
        stepper.at(count + 1)


def test_a_refused_line_is_the_end_and_says_why(story: Path, tmp_path: Path) -> None:
    lines = (story / "driver.000001.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "driver.000001.jsonl"
    path.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    stepper = Stepper([str(path)])
    assert stepper.refusal is not None
    assert (len(stepper.events), stepper.refusal.kind) == (4, "missing")
    assert stepper.at(4).number == 4
    site = TraceSite([stepper])
    with served(site.answer) as url:
        assert "event 5 is missing" in asked(url, "/?at=4")[1]
        assert "event 5 is missing" not in asked(url, "/?at=3")[1]


def test_a_long_trace_is_cut(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "LINES_MAX", 10)
    stepper = Stepper([str(story / "driver.000001.jsonl")])
    assert (len(stepper.events), stepper.is_cut) == (10, True)


def test_the_terminal_steps_through_one_trace(
    story: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = story / "driver.000001.jsonl"
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("f\nf\nb\ns\n/ send\ngo 9999\n/ nothing\nlast\nq\n")
    )
    assert main(["explore", "--terminal", "--trace", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("driver: driver of story, ")
    assert len([one for one in lines if one.startswith("line 1 of ")]) == 2
    assert any(one.startswith("  lifecycle: ") for one in lines)
    assert "no later event has this in its name" in lines


def test_pages_have_each_trace_its_events_and_its_state(url: str) -> None:
    text = asked(url, "/?trace=1&at=3")[1]
    assert "line 3 / " in text.replace("<output>", "")
    assert asked(url, "/find?trace=0&at=0&name=send")[2]["Location"].startswith("/?trace=0&at=")
    assert asked(url, "/find?trace=0&at=0&name=none")[2]["Location"] == "/?trace=0&at=0&missing=4"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?trace=9", 404),
        ("/nothing", 404),
        ("/?at=99999999", 400),
        ("/?at=x", 400),
        ("/?trace=-1", 400),
    ],
)
def test_bad_requests_are_refused_and_the_next_one_is_answered(
    url: str, path: str, status: int
) -> None:
    assert asked(url, path)[0] == status
    assert asked(url, "/")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name a SYSTEM, or --trace TRACE"),
        (["live", "--trace", "x"], "name a SYSTEM, or --trace TRACE"),
        (["--trace", "nowhere"], "there is no file or directory nowhere"),
        (["--trace", "nowhere", "--set", "a=1"], "--set and --load are about a system"),
        (["--trace", "STORY", "--terminal"], "the terminal shows one trace"),
        (["--trace", "README.md"], "README.md:1: the head is damaged"),
    ],
)
def test_misuse_is_refused(
    arguments: list[str], told: str, story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(story) if one == "STORY" else one for one in arguments]
    assert main(["explore", *arguments]) == 2
    assert told in capsys.readouterr().err
