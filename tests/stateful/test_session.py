"""A session says what it did, and shows the shortest schedule when something is broken."""

from __future__ import annotations

import re

import pytest

from tests.stateful.broken import JobThatTellsNoCoordinator
from tests.stateful.session import main
from tests.stateful.stateful import JobUnderFuzzing

pytestmark = pytest.mark.fuzz


@pytest.mark.programs
def test_a_session_that_finds_nothing_says_what_it_has_covered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seed", "3"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("profile dev, seed 3\n")
    assert "checkpoints: " in shown.out
    assert "; --rows lists the others, longer sessions take more\n" in shown.out
    assert "not in this session" not in shown.out
    assert shown.out.endswith("nothing found: every invariant held in every example\n")
    assert shown.err == ""


@pytest.mark.programs
def test_the_rows_that_no_example_took_are_listed_if_they_are_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seed", "3", "--rows"]) == 0
    shown = capsys.readouterr().out
    [taken, known] = re.findall(
        r"^rows of the machines taken: (\d+) of (\d+), by state$", shown, re.M
    )[0]
    listed = re.findall(r"^  not in this session: \w+: \w+ in \w+ \(.+\)$", shown, re.M)
    assert len(listed) == int(known) - int(taken) > 0


@pytest.mark.programs
def test_a_broken_invariant_is_shown_as_a_schedule_and_can_be_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobUnderFuzzing, "job", JobThatTellsNoCoordinator)
    assert main(["--seed", "5"]) == 1
    first = capsys.readouterr().out
    assert "the shortest schedule found:\n    1. Shape(coordinators=1, subtasks=1" in first
    assert "to replay: python -m tests.stateful.session --profile dev --seed 5" in first
    assert main(["--seed", "5"]) == 1
    again = capsys.readouterr().out
    assert again.split(" examples")[0] == first.split(" examples")[0]
