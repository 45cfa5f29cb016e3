"""Counts of the rows taken, by journals, tests and checks, and the rows that nothing took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.diagrams import theme
from epochgate.diagrams.description import describe
from epochgate.diagrams.passages import passages
from epochgate.diagrams.picture import Picture
from epochgate.diagrams.taken import Taken, painted
from epochgate.fsm import Row
from epochgate.fsm.checker import check
from epochgate.fsm.tally import Place, Tally
from epochgate.models import Gateway, Holder
from tests.diagrams.told_door import ToldDoor
from tests.fsm.turnstile import Station
from tests.traces.stories import told

Capture = pytest.CaptureFixture[str]
TURNSTILE = "tests.fsm.turnstile:Turnstile"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("traces"), events=3)


def cells(page: Path, trigger: str, when: str) -> list[str]:
    """The last cells of the rows of a trigger and a condition."""
    lines = page.read_text(encoding="utf-8").split("## Every")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith(f"| `{trigger}`")]
    return [row[-1] for row in rows if row[3] == when]


def test_a_row_that_no_journal_took_stands_out(
    traces: Path, tmp_path: Path, capsys: Capture
) -> None:
    shown = tmp_path / "shown"
    assert main(["draw", "gateway", "--taken-by", str(traces), "-o", str(shown)]) == 0
    printed = capsys.readouterr().out
    assert "never: gateway.lose in open, marked, closed (an event may be in no state" in printed
    page = shown / "gateway.md"
    # Of two subtasks: three rounds of three events and a checkpoint, and one more at the end.
    sent = "`is_bound` and `reaches_attempt`"
    assert cells(page, "send", sent) == ["journals: 18; never in marked"]
    assert cells(page, "mark", "`is_newer`") == ["journals: 8"]
    assert "**never taken**" in cells(page, "lose", "`is_bound`")
    picture = (shown / "gateway.svg").read_text(encoding="utf-8")
    assert ">never taken<" in picture
    assert ">taken by journals:<" in picture


def test_the_traces_of_tasks_are_counted_too(traces: Path, tmp_path: Path) -> None:
    assert main(["draw", "task", "--taken-by", str(traces), "-o", str(tmp_path)]) == 0
    assert cells(tmp_path / "task.md", "event", "`is_next`") == ["journals: 18; never in ended"]


def test_counts_of_tests_and_results_of_checks_are_added(tmp_path: Path, capsys: Capture) -> None:
    station, tally = Station(), Tally()
    station.observer = tally
    station.turnstile[0].pay(1)
    station.turnstile[0].pay(1)
    for name in ("one", "two"):
        tally.write(tmp_path / f"{name}.json")
    shown = tmp_path / "shown"
    assert main(["draw", TURNSTILE, "--taken-by", str(tmp_path), "-o", str(shown)]) == 0
    page = shown / "Turnstile.md"
    assert cells(page, "pay", "`is_enough`") == ["tests: 2"]
    assert cells(page, "pay", "") == ["**never taken**"]
    assert "never reached" in (shown / "Turnstile.svg").read_text(encoding="utf-8")


def test_a_row_that_a_check_took_is_told_without_a_count(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    result.write_text(check(ToldDoor).json_text())
    counts = Tally()
    counts.write(tmp_path / "counts.json")
    system, shown = "tests.diagrams.told_door:ToldDoor", tmp_path / "shown"
    assert main(["draw", system, "--taken-by", str(tmp_path), "-o", str(shown)]) == 0
    assert cells(shown / "bell.md", "ring", "`may_ring`") == ["tests: never; checks: taken"]


def test_the_states_in_which_a_check_did_not_take_a_row_are_told(tmp_path: Path) -> None:
    row = {
        "machine": "turnstile",
        "origin": "Turnstile",
        "trigger": "hit",
        "source": "locked or unlocked",
        "because": "it is not solid",
        "is_taken": True,
        "untaken_from": ["locked"],
    }
    (tmp_path / "result.json").write_text(json.dumps([{"coverage": [row]}]))
    assert main(["draw", TURNSTILE, "--taken-by", str(tmp_path), "-o", str(tmp_path)]) == 0
    told_of = [cell for cell in cells(tmp_path / "Turnstile.md", "hit", "") if "checks" in cell]
    assert told_of == ["checks: taken; never in locked"]


def test_a_line_that_nothing_took_stands_out_beside_others_of_its_card() -> None:
    holder = describe({"holder": Holder})["holder"]
    (close,) = (row for row in holder.rows if row.trigger == "close" and row.dest == "closed")
    tally = Tally([(Place("holder", "Holder", "close", "started", close.because), 1)])
    dot = Picture(holder, painted(holder, {"tests": Taken(tally)})).dot()
    lines = [line for line in dot.splitlines() if "arrowhead=vee" in line]
    card = next(n for n, one in enumerate(passages(holder)) if one.rows == (close,))
    met = {line.split()[0]: line for line in lines if f'-> "passage {card}"' in line}
    assert theme.NEVER in met["restoring"]
    assert theme.NORMAL in met["started"]


def test_a_tally_hears_all_systems_beside_their_own_observers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from epochgate.fsm.run_to_completion import Running

    # Which the session's own counts would be, and what is set below is taken back.
    monkeypatch.setattr(Running, "observer", None, raising=False)
    tally, heard = Tally(), list[Row]()
    tally.hear_all()
    station = Station()
    station.turnstile[0].pay(1)
    station.observer = lambda machine, source, row, arguments: heard.append(row)
    present = station.observer
    station.observer = present
    station.turnstile[0].pay(1)
    station.observer = None
    station.turnstile[0].hit()
    assert sum(tally.counts.values()) == 3
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as JSON"),
        (
            '{"rows": 1, "format": "epochgate rows taken, 9"}',
            "has the format 'epochgate rows taken",
        ),
        ('{"rows": [1], "format": "epochgate rows taken, 1"}', "does not hold the counts of rows"),
        ('{"other": 1}', "is neither a result of `epochgate check --json` nor counts of rows"),
    ],
)
def test_a_file_of_something_else_is_told(
    content: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "odd.json").write_text(content)
    options = ["--taken-by", str(tmp_path), "-o", str(tmp_path / "shown")]
    assert main(["draw", "gateway", *options]) == 2
    assert message in capsys.readouterr().err


def test_what_is_not_there_or_lacks_a_folder_is_told(tmp_path: Path, capsys: Capture) -> None:
    assert main(["draw", "gateway", "--taken-by", str(tmp_path / "gone"), "-o", "x"]) == 2
    assert "there is no file or folder" in capsys.readouterr().err
    assert main(["draw", "gateway", "--taken-by", str(tmp_path), "-o", str(tmp_path)]) == 2
    assert "there is nothing to read in" in capsys.readouterr().err
    assert main(["draw", "gateway", "--taken-by", str(tmp_path)]) == 2
    assert "name a folder for them, -o" in capsys.readouterr().err


def test_a_trace_that_is_refused_is_told(traces: Path, tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "driver.000001.jsonl"
    trace.write_text((traces / trace.name).read_text().replace(".send", ".sand", 1))
    assert main(["draw", "gateway", "--taken-by", str(trace), "-o", str(tmp_path)]) == 2
    assert "the trace is refused" in capsys.readouterr().err


def test_all_rows_of_the_machine_are_told(traces: Path, tmp_path: Path) -> None:
    assert main(["draw", "gateway", "--taken-by", str(traces), "-o", str(tmp_path)]) == 0
    lines = (tmp_path / "gateway.md").read_text(encoding="utf-8").split("## Every")[0].splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == len(Gateway.ROWS)
    assert all(not line.endswith("|  |") for line in rows)
