"""Results as JUnit XML, which CI servers show as tests.

A suite per system; a case per claim, one for faults and deadlocks, which break no claim of their
own, and one for coverage. What a search did not get to decide is skipped, what it found never to
happen is a failure, as in the command's exit code. The format is the one that Jenkins' and GitLab's
readers share; it has no standard of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from epochgate.fsm.checker.result import PropertyResult, Result, Verdict
from epochgate.reports.places import relative, trace

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


def junit_xml(results: Mapping[str, Result], root: Path | None = None) -> str:
    """The results by the names of their systems; file names are relative to `root`, by default
    the current folder.
    """
    suites = ElementTree.Element("testsuites", name="epochgate check")
    for name, result in results.items():
        suites.append(_suite(name, result, root or Path.cwd()))
    for key in ("tests", "failures", "errors", "skipped"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    suites.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(name: str, result: Result, root: Path) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=legal(name))
    seconds = result.compile_seconds + result.search_seconds
    suite.set("time", f"{seconds:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "verdict": result.verdict.value,
        "engine": result.engine,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        **result.constants,
    }
    for key, value in facts.items():
        ElementTree.SubElement(properties, "property", name=key, value=str(value))
    cases = [_claim(result, claim, root) for claim in result.properties]
    for case in [*cases, _faults(result, root), _coverage(result)]:
        case.set("classname", legal(name))
        suite.append(case)
    if result.notes:
        ElementTree.SubElement(suite, "system-out").text = legal("\n".join(result.notes))
    suite.set("tests", str(len(cases) + 2))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return suite


def _claim(result: Result, claim: PropertyResult, root: Path) -> ElementTree.Element:
    case = _case(f"{claim.kind}: {claim.claim}")
    case.set("file", legal(relative(claim.file, root)))
    case.set("line", str(claim.line))
    found = result.counterexample
    if claim.verdict is Verdict.BOUNDED:
        _skip(case, claim.detail or result.stopped or "not decided")
    elif claim.verdict is Verdict.VACUOUS:
        _fail(case, "VACUOUS", claim.detail or "what it is about never happens", "")
    elif claim.verdict is Verdict.FAIL:
        text = trace(found, root) if found and found.property == claim.name else ""
        _fail(case, claim.kind, claim.detail or claim.claim, text)
    return case


def _faults(result: Result, root: Path) -> ElementTree.Element:
    case = _case("no fault and no deadlock")
    found = result.counterexample
    if found is not None and not found.property:
        _fail(case, found.kind, found.message, trace(found, root))
    elif result.verdict is Verdict.BOUNDED or found is not None:
        _skip(case, result.stopped or "the search ended before this was decided")
    return case


def _coverage(result: Result) -> ElementTree.Element:
    taken = sum(row.is_taken for row in result.coverage)
    case = _case("every row is taken")
    told = f"{taken} of {len(result.coverage)} rows taken"
    rows = [
        f"{row.machine}.{row.trigger} from {row.source}: {row.because}" for row in result.untaken
    ]
    if rows and result.verdict in (Verdict.FAIL, Verdict.BOUNDED):
        _skip(case, f"{told}; the search ended before the others could be")
    elif rows:
        _fail(case, "VACUOUS", told, "\n".join(["never taken:", *rows]))
    return case


def _case(name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", name=legal(name))


def _skip(case: ElementTree.Element, message: str) -> None:
    ElementTree.SubElement(case, "skipped", message=legal(message))


def _fail(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    failure = ElementTree.SubElement(case, "failure", type=legal(kind), message=legal(message))
    failure.text = legal(text) or None


def legal(text: str) -> str:
    """Replace what XML cannot hold."""
    return NOT_XML.sub("�", text)
