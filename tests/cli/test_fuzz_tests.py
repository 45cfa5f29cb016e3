"""`epochgate fuzz MODULE:TEST` runs tests of the user's, here, in processes or on Spark."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epochgate import cli
from epochgate.commands import fuzz
from epochgate.runtime.testing.worlds import searching

MODULE = "tests.worlds.fuzzed"


def test_a_right_test_has_nothing_found_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", f"{MODULE}:right"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("profile dev, seeds from 0: right\n")
    assert "right: nothing found in 21 runs, " in shown
    assert "\n20 seeds in " in shown
    assert "rows of the job's machines taken: " in shown
    assert "(--rows lists them)" in shown


@pytest.fixture
def look_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes whenever something asks for the time, and none otherwise."""
    seconds = count()
    monkeypatch.setattr(fuzz.Limit, "taken_s", lambda _: next(seconds))
    monkeypatch.setattr(searching, "_now_s", lambda: next(seconds))


@pytest.mark.usefixtures("look_of_a_second")
def test_a_profile_that_time_has_ended_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", f"{MODULE}:right", "--profile", "ci", "--minutes", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"right: nothing found in \d+ runs, .*; 6 s were over before the 80 ", shown)


@pytest.mark.usefixtures("look_of_a_second")
def test_what_should_happen_sometimes_is_not_judged_when_time_was_up_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["fuzz", f"{MODULE}:seldom", "--minutes", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"not judged in \d runs, fewer than the test's: 'the moon rises'", shown)


def test_the_help_says_what_is_fuzzed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "With MODULE[:TEST] your own coordinators, operators and sources are fuzzed" in shown


def test_a_whole_module_is_judged_test_by_test_and_written_as_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    junit, page = tmp_path / "fuzz.xml", tmp_path / "fuzz.html"
    assert cli.main(["fuzz", MODULE, "--junit", str(junit), "--html", str(page)]) == 1
    shown = capsys.readouterr().out
    assert "wrong: a claim of `always` does not hold" in shown
    assert "vacuous is vacuous: in " in shown
    assert "explored: explored completely within F=1, delays<=0: " in shown
    suite = ElementTree.fromstring(junit.read_text(encoding="utf-8"))
    failed = [
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    assert (suite.get("tests"), sorted(map(str, failed))) == ("4", ["vacuous", "wrong"])
    text = page.read_text(encoding="utf-8")
    assert "<h1>epochgate <span>fuzz</span></h1>" in text
    assert "each task hears 1, 2, 3 and so on" in text
    assert "✱ process 1 dies" in text
    reset = r'"label":"CountingOn\.subtask_reset\(\d, \d\)[^"]*","instance":"coordinator count"'
    assert re.search(reset, text)
    assert "not in the default schedule (5:1die)" in text
    assert "test_wrong_again = replay(wrong, &#39;5:1die&#39;)" in text
    assert "<dt>seed</dt><dd>15</dd>" in text
    assert '"heard":"[1, 3]"' in text
    assert "  task[0]            heard = [1, 3]\n" in shown
    assert "the barrier of checkpoint 1" in text


def test_processes_share_the_seeds_and_the_failure_is_shrunk_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["fuzz", f"{MODULE}:wrong", "--jobs", "2", "--profile", "ci"]) == 1
    shown = capsys.readouterr().out
    assert "has 1 fault and no deviations from the default order" in shown


def test_a_plain_function_of_a_world_is_a_test_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", f"{MODULE}:plain", "--minutes", "0.01"]) == 0
    assert "plain: nothing found in " in capsys.readouterr().out


def test_what_is_no_test_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", f"{MODULE}:no_test"]) == 2
    assert "is no simulated test, and holds none; decorate" in capsys.readouterr().err
    assert cli.main(["fuzz", "tests/worlds/fuzzed.py:right"]) == 2
    assert f"names a file; write the module: {MODULE}:right\n" in capsys.readouterr().err


def report_of(shown: str) -> list[str]:
    """From the claim that is broken to the test to keep, with the seed and the token; without how
    many runs there were by then, which depends on how many share them.
    """
    lines = [re.sub(r"by run \d+ ", "", line) for line in shown.split("\n")]
    [first] = [n for n, line in enumerate(lines) if line.startswith("wrong: ")]
    [last] = [n for n, line in enumerate(lines) if line.lstrip().startswith("test_wrong_again = ")]
    return lines[first : last + 1]


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.slow
def test_seeds_that_tasks_of_spark_share_have_the_verdicts_that_they_have_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reports = []
    for place in ((), ("--master", "local[2]")):
        assert cli.main(["fuzz", f"{MODULE}:wrong", *place]) == 1
        reports.append(report_of(capsys.readouterr().out))
    here, on_spark = reports
    assert here == on_spark
    assert any("--epochgate-replay=" in line for line in here)
    assert any("--epochgate-seed=" in line for line in here)
    assert cli.main(["fuzz", f"{MODULE}:right", "--master", "local[2]", "--seed", "100"]) == 0
    shown = capsys.readouterr().out
    assert "right: nothing found in 42 runs, " in shown
    assert "\n40 seeds in " in shown


@pytest.mark.parametrize("minutes", ["0", "-3", "soon"])
def test_minutes_must_be_a_number_above_zero(
    minutes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["fuzz", "--minutes", minutes]) == 2
    assert "is not a number of minutes above 0" in capsys.readouterr().err


@pytest.mark.programs
def test_without_a_module_epochgate_itself_is_fuzzed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("profile dev, seeds from 0: events, records\n")
    assert re.search(r"^events: nothing found in 25\d runs, ", shown, re.M)
    assert re.search(r"^records: nothing found in 25\d runs, ", shown, re.M)
