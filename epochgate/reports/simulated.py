"""The outcomes of simulated tests, as files: JUnit XML for continuous integration, and for failures
the page that counterexamples have.

A failing run becomes a counterexample: each of its steps acts on the lane of the test, a task, the
store, or the machine whose row was taken first, with the states before and after it. Its trace must
have been made with the states kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from epochgate.fsm.checker.result import (
    Counterexample,
    PropertyResult,
    Result,
    TakenRow,
    TraceStep,
    Verdict,
)
from epochgate.reports.junit import legal
from epochgate.reports.page import Own, html_page
from epochgate.runtime.testing.worlds.report import broken_text, replayed_by, report, vacuous
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.runtime.testing.worlds.trace import Happening

DEVIATES: Final = "✱"
"""Before what the default schedule does not have."""


def simulated_junit(results: Mapping[str, Found], module: str) -> str:
    """A suite with a case for each test."""
    failures = sum(not found.has_passed for found in results.values())
    suite = ElementTree.Element(
        "testsuite", name=legal(module), tests=str(len(results)), failures=str(failures)
    )
    suite.set("time", f"{sum(found.seconds for found in results.values()):.3f}")
    for name, found in results.items():
        case = ElementTree.SubElement(suite, "testcase", classname=legal(module), name=legal(name))
        case.set("time", f"{found.seconds:.3f}")
        if found.failure is not None and found.failure.broken is not None:
            _fail(case, broken_text(found.failure.broken), report(name, found))
        elif not found.has_passed:
            text = vacuous(name, found)
            _fail(case, text.split("\n")[0], text)
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _fail(case: ElementTree.Element, message: str, text: str) -> None:
    ElementTree.SubElement(case, "failure", message=legal(message)).text = legal(text)


def simulated_page(failures: Mapping[str, Found]) -> str:
    """One HTML page with the shortest schedule of each failure, and what replays it."""
    results = {name: _result(name, found) for name, found in failures.items()}
    own = {name: _own(name, found) for name, found in failures.items()}
    return html_page(results, command="fuzz", own=own)


def _own(name: str, found: Found) -> Own:
    failure = found.failure
    assert failure is not None
    others = len(failure.deviations) - failure.faults
    figures = {
        "runs": f"{found.runs:,}",
        "seed": f"{found.seed}",
        "steps of the shortest": f"{failure.steps:,}",
        "its faults": f"{failure.faults}",
        "other deviations": f"{others}",
        "took": f"{found.seconds:.1f} s",
    }
    drawn = [f"{label} = {value!r}" for label, value in failure.drawn]
    keep = [*drawn, *([""] if drawn else []), *replayed_by(name, failure, found.node)]
    return Own(figures, report(name, found), "\n".join(keep))


def _result(name: str, found: Found) -> Result:
    failure = found.failure
    assert failure is not None
    assert failure.broken is not None
    broken = failure.broken
    file, line = ("", 0) if broken.place is None else (broken.place.file, broken.place.line)
    kind = broken.kind if broken.kind in ("always", "eventually") else "assertion"
    claim = PropertyResult(
        kind, broken.claim, broken.claim, Verdict.FAIL, file, line, broken.detail
    )
    steps = tuple(_steps(failure))
    first = next((one.after for one in failure.trace if one.after), {})
    return Result(
        system=name,
        constants={},
        engine="simulation",
        workers=1,
        verdict=Verdict.FAIL,
        states=failure.steps,
        transitions=len(steps),
        depth=len(steps),
        terminal_states=0,
        compile_seconds=0.0,
        search_seconds=found.seconds,
        bytes_per_state=0.0,
        properties=[claim],
        coverage=[],
        counterexample=Counterexample(
            kind, broken.claim, file, line, first, steps, property=broken.claim
        ),
    )


def _steps(one: Run) -> list[TraceStep]:
    told = [happening for happening in one.trace if happening.after]
    found: list[TraceStep] = []
    before = told[0].after if told else {}
    for number, happening in enumerate(told, 1):
        found.append(_step(number, happening, before))
        before = happening.after
    return found


def _step(number: int, happening: Happening, before: dict[str, dict[str, object]]) -> TraceStep:
    after = happening.after
    instance = _instance(happening)
    is_default = happening.deviation is None
    because = happening.rows[0].because if happening.rows else ""
    mark = "" if is_default else f"not in the default schedule ({happening.deviation})"
    text = "; ".join([*(call.text for call in happening.calls), happening.text])
    return TraceStep(
        number=number,
        instance=instance if instance in after else "test",
        trigger=text,
        label=text if is_default else f"{DEVIATES} {text}",
        because=": ".join(filter(None, (mark, because))),
        rows=tuple(
            TakenRow(row.instance, row.trigger, row.source, row.dest, row.because)
            for row in happening.rows
            if row.instance in after
        ),
        effects=(),
        before=before,
        after=after,
        changed={
            f"{name}.{field}": (before.get(name, {}).get(field), value)
            for name, fields in after.items()
            for field, value in fields.items()
            if before.get(name, {}).get(field) != value
        },
        channels={
            f"{name}.{field}": value
            for name, fields in after.items()
            for field, value in fields.items()
            if field in ("to_task", "to_driver") and value
        },
    )


def _instance(happening: Happening) -> str:
    lane = happening.lane
    if lane == "driver" and happening.calls:
        return f"coordinator {happening.calls[0].operator_id}"
    if lane.startswith("task "):
        return f"task[{lane.removeprefix('task ')}]"
    if lane == "driver" and happening.rows:
        return happening.rows[0].instance
    return "lifecycle" if lane == "driver" else lane
