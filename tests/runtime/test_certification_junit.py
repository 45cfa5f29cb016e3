"""A certificate as JUnit XML is what CI servers read, and has a case for each fault point.

The rules below are those of `junit-10.xsd` of Jenkins' xUnit plugin, which pytest and Maven write
for, too: which attributes an element must and may have, and what may be in it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from epochgate import cli
from epochgate.runtime.testing.certification import (
    Broken,
    Certificate,
    Failure,
    Guarantee,
    certify,
    report,
    to_junit,
)
from epochgate.runtime.testing.certification.certifying import Group
from tests.runtime.broken_sinks import AppendsInCommit, FileByFile

TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


class Rule(NamedTuple):
    must: frozenset[str]
    may: frozenset[str]
    holds: frozenset[str]


def rule(must: str, may: str, holds: str = "") -> Rule:
    return Rule(*(frozenset(words.split()) for words in (must, may, holds)))


RULES = {
    "testsuites": rule("", "name time tests failures errors", "testsuite"),
    "testsuite": rule(
        "name tests failures errors",
        "group time skipped timestamp hostname id package file log url",
        "testsuite properties testcase system-out system-err",
    ),
    "testcase": rule(
        "name",
        "time classname group",
        "skipped error failure rerunFailure rerunError flakyFailure flakyError system-out"
        " system-err",
    ),
    "failure": rule("", "type message"),
    "skipped": rule("", "type message"),
    "system-out": rule("", ""),
}


def broken_rules(element: ElementTree.Element) -> list[str]:
    """Return what the schema does not allow of an element, and of what is in it."""
    rule, given = RULES.get(element.tag), set(element.attrib)
    if rule is None:
        return [f"there is no {element.tag}"]
    found = [f"{element.tag} without {name}" for name in sorted(rule.must - given)]
    found += [f"{element.tag} with {name}" for name in sorted(given - rule.must - rule.may)]
    found += [f"{one.tag} in {element.tag}" for one in element if one.tag not in rule.holds]
    is_of_suite = element.tag.startswith("testsuite")
    if is_of_suite and not TIME.fullmatch(element.attrib.get("time", "")):
        found.append(f"the time of {element.tag}")
    return found + [broken for one in element for broken in broken_rules(one)]


@pytest.fixture(scope="module")
def document() -> ElementTree.Element:
    """Of a sink that fails in a part of its fault points."""
    return ElementTree.fromstring(to_junit(certify(FileByFile(), stride=3)))


def test_a_certificate_keeps_the_rules_of_the_schema(document: ElementTree.Element) -> None:
    assert document.tag == "testsuites"
    assert broken_rules(document) == []


def test_what_breaks_a_rule_is_told() -> None:
    text = "<testsuites><testsuite name='a' tests='1' failures='0' time='x'>"
    text += "<testcase because='b'><reason/></testcase></testsuite></testsuites>"
    assert broken_rules(ElementTree.fromstring(text)) == [
        "testsuite without errors",
        "the time of testsuite",
        "testcase without name",
        "testcase with because",
        "reason in testcase",
        "there is no reason",
    ]


def test_the_figures_are_those_of_the_cases(document: ElementTree.Element) -> None:
    cases = list(document.iter("testcase"))
    found = Counter(one.tag for case in cases for one in case)
    for element in (document, document[0]):
        assert element.attrib["tests"] == str(len(cases))
        assert element.attrib["failures"] == str(found["failure"])
    assert document[0].attrib["skipped"] == str(found["skipped"])
    assert found["failure"] >= 1


def test_each_fault_point_is_a_case_of_its_own(document: ElementTree.Element) -> None:
    named = [(one.attrib["classname"], one.attrib["name"]) for one in document.iter("testcase")]
    assert len(named) == len(set(named))
    points = {found[1] for _, name in named if (found := re.match(r"point (\d+), ", name))}
    assert len(points) > 10
    assert ("tests.runtime.broken_sinks.FileByFile.complete", "no failure") in named


def test_a_failure_has_the_shortest_schedule_that_shows_it() -> None:
    document = ElementTree.fromstring(to_junit(certify(AppendsInCommit(), first_only=True)))
    (failure,) = document.iter("failure")
    assert failure.attrib["type"] == "idempotent replay"
    assert failure.attrib["message"].startswith("rows 3-4, 1002-1003 can be seen more than once")
    told = failure.text or ""
    assert "failed    1 of 1 schedules here" in told
    assert told.rstrip().endswith(
        "driver run-1: create_committer(restored_checkpoint=4), open (to"
        " be committed again: 4),\n        commit(4)"
    )


def test_a_guarantee_that_was_not_tried_is_a_skipped_case() -> None:
    document = ElementTree.fromstring(to_junit(certify(AppendsInCommit(), first_only=True)))
    skipped = [one for one in document.iter("testcase") if one.find("skipped") is not None]
    classname = "tests.runtime.broken_sinks.AppendsInCommit.fencing"
    assert classname in [one.attrib["classname"] for one in skipped]


def test_a_skipped_case_says_why() -> None:
    document = ElementTree.fromstring(to_junit(certify(AppendsInCommit(), first_only=True)))
    reasons = {one.attrib["message"] for one in document.iter("skipped")}
    assert reasons == {
        "not tried: the schedules ended at a failure",
        "not tried: the case has no `staged`",
    }


def test_a_guarantee_that_no_failure_inside_commit_has_tried_is_a_failed_case() -> None:
    certificate = Certificate("Case", unseen="nothing was seen")
    document = ElementTree.fromstring(to_junit(certificate))
    assert broken_rules(document) == []
    failures = {one.attrib["type"]: one.attrib["message"] for one in document.iter("failure")}
    assert failures == dict.fromkeys(
        ("idempotent replay", "fencing"), "not tried: nothing was seen"
    )


def test_what_xml_cannot_hold_is_escaped_and_a_warning_is_no_failure() -> None:
    left = Failure(Broken(Guarantee.TIDY, "left \x00 <&", "a\ud800", "nothing"), ("the end",))
    group = Group(Guarantee.TIDY, "point \x01", 1, 0.5, warning=left)
    certificate = Certificate("Case", tried={Guarantee.TIDY: 1})
    certificate.groups[Guarantee.TIDY, "point"] = group
    document = ElementTree.fromstring(to_junit(certificate))
    assert broken_rules(document) == []
    case = next(document.iter("testcase"))
    assert case.attrib["name"] == r"point \x01"
    assert case.find("failure") is None
    told = case.findtext("system-out") or ""
    assert r"left \x00 <&" in told
    assert r"a\ud800" in told


def test_a_second_failure_of_the_same_kind_is_told_as_probably_the_same() -> None:
    doubled = "can be seen more than once"
    findings = {
        Guarantee.REPLAY: f"rows 3-4, 1002 {doubled} before the return of commit(4)",
        Guarantee.FENCING: f"row 2 {doubled} after the start",
        Guarantee.BACK: "row 2 could be seen before and cannot any more after the start",
    }
    failures = {
        guarantee: Failure(Broken(guarantee, finding, "rows", "no rows"), ("the end",))
        for guarantee, finding in findings.items()
    }
    told = report(Certificate("Case", failures=failures))
    _, replay, fencing, back = told.split("FAILS: ")
    assert "  cause     probably the same as above: idempotent replay\n" in fencing
    assert "cause" not in replay + back


def test_the_command_writes_it_beside_the_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "sink.xml"
    case = "tests.runtime.broken_sinks:AppendsInCommit"
    assert cli.main(["certify-sink", case, "--first", "--junit", str(file)]) == 1
    assert capsys.readouterr().out.endswith("AppendsInCommit is not certified.\n")
    text = file.read_text(encoding="utf-8")
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    assert broken_rules(ElementTree.fromstring(text.partition("\n")[2])) == []
