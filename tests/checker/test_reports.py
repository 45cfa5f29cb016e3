"""The findings of a check, as files: well-formed, complete, safe whatever the texts are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from epochgate.cli import main
from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.reference import Reference
from epochgate.reports import (
    html_page,
    junit_xml,
    sarif_json,
    sequence_diagram,
    sequence_diagrams,
)
from epochgate.reports.messages import changes, lanes, messages
from tests.checker import small_systems as small
from tests.checker.broken import NoValve
from tests.checker.relay import Confused

ROOT = Path(__file__).parents[2]
HOSTILE = "</script><b>&\"'#;:\n\x00 %%{init}%% ]]> é"
FOUND: dict[str, Result] = {}
VOID = {"meta", "link", "input", "br"}


def found(system: type[ClosedSystem]) -> Result:
    if system.__name__ not in FOUND:
        FOUND[system.__name__] = check(system(), engine="python")
    return FOUND[system.__name__]


def stopped() -> Result:
    result = check(Reference(), engine="python", max_states=20)
    assert result.verdict is Verdict.BOUNDED
    return result


def hostile() -> Result:
    result = found(small.UnfairHouse)
    way = result.counterexample
    assert way is not None
    steps = tuple(replace(step, because=HOSTILE, label=HOSTILE) for step in way.steps)
    return replace(
        result,
        properties=[replace(claim, claim=HOSTILE) for claim in result.properties],
        counterexample=replace(way, message=HOSTILE, steps=steps),
        notes=[HOSTILE],
    )


def suites(results: dict[str, Result]) -> ElementTree.Element:
    return ElementTree.fromstring(junit_xml(results, ROOT))


def sarif(results: dict[str, Result]) -> dict[str, Any]:
    log = json.loads(sarif_json(results, ROOT))
    assert log["version"] == "2.1.0"
    assert "sarif-schema-2.1.0" in log["$schema"]
    (run,) = log["runs"]
    assert isinstance(run, dict)
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
    return run


class Reader(HTMLParser):
    """Insists that every element is closed in its turn, and keeps what was read."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: list[str] = []
        self.links: list[str] = []
        self.data: list[Any] = []
        self.is_json = False
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.classes += (named.get("class") or "").split()
        self.links += [named[key] or "" for key in ("href", "src") if key in named]
        self.is_json = named.get("type") == "application/json"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.classes += (dict(attrs).get("class") or "").split()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.is_json:
            self.data.append(json.loads(data))
        self.is_json = False


def test_junit_has_a_suite_for_each_system_and_a_case_for_each_claim() -> None:
    tree = suites({"house": found(small.House), "unfair": found(small.UnfairHouse)})
    assert {key: tree.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "10",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    house, unfair = tree
    assert [case.get("name") for case in house.iter("testcase")] == [
        "always: who is inside has locked the door",
        "sometimes: a visitor is inside",
        "no fault and no deadlock",
        "every row is taken",
    ]
    (case,) = (case for case in unfair.iter("testcase") if case.find("failure") is not None)
    assert case.get("name") == "leads_to: the first visitor gets in"
    assert case.get("file") == "tests/checker/small_systems.py"
    assert "2. visitor[1].ask: a visitor comes" in (case.findtext("failure") or "")


def test_junit_tells_a_fault_of_no_claim_with_its_trace() -> None:
    (suite,) = suites({"no valve": found(NoValve)})
    failure = suite.find("testcase[@name='no fault and no deadlock']/failure")
    assert failure is not None
    assert failure.get("type") == "assertion"
    assert "  at models/studies/reference.py:" in (failure.text or "")


def test_junit_skips_what_was_not_decided_and_fails_what_never_happens() -> None:
    (suite,) = suites({"reference": stopped()})
    assert (suite.get("failures"), suite.get("skipped")) == ("0", suite.get("tests"))
    vacuous = found(small.NeverThere)
    assert vacuous.verdict is Verdict.VACUOUS
    (suite,) = suites({"there": vacuous})
    assert {failure.get("type") for failure in suite.iter("failure")} == {"VACUOUS"}


def test_sarif_of_what_holds_has_rules_and_no_results() -> None:
    run = sarif({"house": found(small.House)})
    assert run["results"] == []
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "house/is_locked_when_visited",
        "house/a_visitor_is_inside",
    ]


def test_sarif_points_at_the_line_that_declares_the_claim() -> None:
    result = found(small.UnfairHouse)
    claim = next(claim for claim in result.properties if claim.verdict is Verdict.FAIL)
    (told,) = sarif({"unfair": result})["results"]
    assert (told["ruleId"], told["level"]) == ("unfair/first_wants", "error")
    (location,) = told["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "tests/checker/small_systems.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": claim.line},
    }


def test_sarif_follows_a_fault_through_the_rows_that_were_taken() -> None:
    result = found(NoValve)
    way = result.counterexample
    assert way is not None
    (told,) = sarif({"no valve": result})["results"]
    assert told["ruleId"] == "no valve/assertion"
    flow = told["codeFlows"][0]["threadFlows"][0]["locations"]
    assert len(flow) == len(way.steps) + 1
    first = flow[0]["location"]["physicalLocation"]
    assert first["artifactLocation"]["uri"] == "models/studies/reference.py"
    assert first["region"]["startLine"] in {row.line for row in result.coverage}


def test_sarif_keeps_files_outside_the_root_absolute(tmp_path: Path) -> None:
    log = json.loads(sarif_json({"unfair": found(small.UnfairHouse)}, tmp_path))
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": Path(small.__file__).resolve().as_uri()}


def test_sarif_notes_an_undecided_search_and_warns_of_what_never_happens() -> None:
    run = sarif({"reference": stopped()})
    assert run["results"] == []
    assert "stopped before an answer" in str(run["invocations"][0]["toolExecutionNotifications"])
    assert {told["level"] for told in sarif({"there": found(small.NeverThere)})["results"]} == {
        "warning"
    }


def test_messages_are_followed_from_sender_to_receiver() -> None:
    way = found(NoValve).counterexample
    assert way is not None
    told = [(m.label, m.sender, m.pushed_at, m.taker, m.taken_at) for m in messages(way)]
    assert told[0] == ("wire 0", "gateway[0][0]", 3, "subtask[0]", 4)
    assert {m.taken_at is None for m in messages(way)} == {False}
    overflowing = found(small.Overflowing).counterexample
    assert overflowing is not None
    assert [(m.value, m.taken_at) for m in messages(overflowing)] == [
        (1, None),
        (2, None),
        (3, None),
    ]


def test_a_sequence_diagram_has_a_lane_for_each_instance_that_acts_or_changes() -> None:
    result = found(NoValve)
    way = result.counterexample
    assert way is not None
    lines = sequence_diagram("no valve", result).splitlines()
    assert lines[0] == "sequenceDiagram"
    named = [line.split(" as ")[1] for line in lines if line.startswith("  participant ")]
    assert named == [lane for lane in lanes(way) if lane in named]
    assert {step.instance for step in way.steps} <= set(named)
    assert "gateway[1][1]" not in named
    assert "  p2-)p0: wire 0" in lines
    assert lines[-1].endswith("coordinator and subtask agree on what belongs to the checkpoint")


def test_a_sequence_diagram_repeats_what_repeats_for_ever() -> None:
    lines = sequence_diagram("unfair", found(small.UnfairHouse)).splitlines()
    assert lines.count("  loop for ever") == lines.count("  end") == 1
    assert "here it stays for ever" in sequence_diagram("quiet", found(small.QuietHouse))


def test_a_sequence_diagram_of_what_holds_says_so() -> None:
    assert "no counterexample" in sequence_diagram("house", found(small.House))
    both = sequence_diagrams({"house": found(small.House), "unfair": found(small.UnfairHouse)})
    assert both.count("```mermaid\n") == 2


@pytest.mark.parametrize(
    ("system", "diagrams"),
    [(small.House, 0), (small.UnfairHouse, 1), (small.QuietHouse, 1), (small.Overflowing, 1)],
)
def test_a_page_is_whole_by_itself(system: type[ClosedSystem], diagrams: int) -> None:
    result = found(system)
    page = html_page({"it": result}, ROOT)
    reader = Reader(page)
    assert reader.links == ["data:,"]
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in unescape(page)
    assert reader.classes.count("diagram") == len(reader.data) == diagrams
    if result.counterexample is not None:
        count = len(result.counterexample.steps)
        assert reader.classes.count("dot") == reader.classes.count("row") == count
        assert len(reader.data[0]["steps"]) == count + 1


def test_effects_are_told_where_they_leave() -> None:
    result = found(Confused)
    reader = Reader(html_page({"relay": result}, ROOT))
    assert reader.data[0]["steps"][1]["effects"][3] == "runner[1].stand.bow(depth=1)"
    assert reader.classes.count("effects") == 3  # one triangle for each runner
    lines = sequence_diagram("relay", result).splitlines()
    runners = [line.partition(" as ")[0].split()[-1] for line in lines if " as runner" in line]
    assert lines[-4:-1] == [
        f"  Note right of {runners[0]}: line.cross(number=1)<br/>line.cross(number=2)<br/>"
        "line.cross(number=3)<br/>stand.bow(depth=0)",
        f"  Note right of {runners[1]}: stand.bow(depth=1)",
        f"  Note right of {runners[2]}: stand.bow(depth=2)",
    ]
    (suite,) = suites({"relay": result})
    assert "effect: runner[2].stand.bow(depth=2)" in (suite.findtext(".//failure") or "")


def test_a_page_tells_what_differs_at_each_step_and_of_an_array_which_part() -> None:
    way = found(NoValve).counterexample
    assert way is not None
    told = [(place, was, now) for step in way.steps for place, was, now in changes(step)]
    assert ("subtask[0].received[0]", 0, 1) in told
    assert ("subtask[0].wire", [0], []) in told  # a channel, as a whole
    reader = Reader(html_page({"no valve": found(NoValve)}, ROOT))
    changed = [step["changed"] for step in reader.data[0]["steps"][1:]]
    assert [["[0]", 0, 1]] in [one.get("subtask[0].received") for one in changed]
    assert "subtask[0].received[0]: 0 → 1" in html_page({"no valve": found(NoValve)}, ROOT)


def test_a_page_draws_each_message_once() -> None:
    way = found(NoValve).counterexample
    assert way is not None
    reader = Reader(html_page({"no valve": found(NoValve)}, ROOT))
    assert reader.classes.count("message") == len(messages(way))


def test_no_text_breaks_out_of_a_report() -> None:
    results = {HOSTILE: hostile()}
    assert "<b>" in (suites(results)[0].get("name") or "")
    said = sarif(results)["results"][0]["message"]["text"]
    assert HOSTILE.replace("{init}", "{{init}}") in said
    page = html_page(results, ROOT)
    assert Reader(page).data[0]["violation"] == HOSTILE
    assert "</script><b>" not in page
    diagram = sequence_diagram(HOSTILE, hostile())
    assert not re.search(r"[<\"]/?(script|b)>|%%|init}", diagram)
    assert len(diagram.splitlines()) == len(
        sequence_diagram("unfair", found(small.UnfairHouse)).splitlines()
    )


def test_the_command_writes_what_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["check", "tests.checker.small_systems:UnfairHouse", "--engine", "python"]
    for option in ("junit", "sarif", "html", "mermaid"):
        arguments += [f"--{option}", str(tmp_path / option)]
    assert main(arguments) == 1
    assert ElementTree.parse(tmp_path / "junit").getroot().get("failures") == "1"
    assert len(json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"]) == 1
    assert (tmp_path / "html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "mermaid").read_text().startswith("sequenceDiagram\n")
    assert "FAIL" in capsys.readouterr().out


def test_one_diagram_for_several_systems_is_refused_before_anything_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "check.mmd"
    assert main(["check", "reference", "valve", "--mermaid", str(path)]) == 2
    captured = capsys.readouterr()
    assert "has room for one diagram and 2 systems are checked" in captured.err
    assert captured.out == ""
    assert not path.exists()
