"""Results as SARIF 2.1.0, which code hosts show beside the line that declares the claim.

A result for each claim that does not hold, for a fault or deadlock, and for each row that no
step takes; the counterexample is the result's code flow, each step at the row that it took. What a
search did not get to decide is a notification of the run and no result. The source is OASIS,
"Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.13 to 3.52.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochgate.fsm.checker.report import counterexample
from epochgate.fsm.checker.result import Counterexample, Result, TraceStep, Verdict
from epochgate.reports.messages import shown
from epochgate.reports.places import declared, uri

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
KINDS = {
    "refused": "a trigger is refused: no row of the machine holds",
    "assertion": "an assertion in a guard, an action or a property fails",
    "range": "a field leaves its declared range",
    "overflow": "a channel holds more than it may",
    "empty": "something is taken from a channel that holds nothing",
    "index": "an index lies outside its set",
    "endless": "machines trigger each other without end",
    "deadlock": "no step is possible, and the state is not terminal",
}
UNTAKEN_ROW = "coverage/untaken-row"
LEVELS = {Verdict.FAIL: "error", Verdict.VACUOUS: "warning"}


@dataclass
class _Run:
    """The rules and results that pile up while the systems are gone through."""

    root: Path
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    notifications: list[dict[str, Any]] = field(default_factory=list)

    def rule(self, rule: str, text: str, level: str = "error") -> None:
        self.rules.setdefault(
            rule,
            {
                "id": rule,
                "shortDescription": {"text": text},
                "defaultConfiguration": {"level": level},
            },
        )

    def location(self, file: str, line: int, text: str = "") -> dict[str, Any]:
        artifact = uri(file, self.root)
        place: dict[str, Any] = {"uri": artifact}
        if not artifact.startswith("file:"):
            place["uriBaseId"] = "%SRCROOT%"
        physical = {"artifactLocation": place, "region": {"startLine": max(line, 1)}}
        location: dict[str, Any] = {"physicalLocation": physical}
        if text:
            location["message"] = {"text": _literal(text)}
        return location

    def add(
        self, rule: str, level: str, text: str, file: str, line: int, about: str = ""
    ) -> dict[str, Any]:
        location = self.location(file, line)
        print_of = location["physicalLocation"]["artifactLocation"]["uri"]
        digest = hashlib.sha256(f"{rule}\n{print_of}\n{about}".encode()).hexdigest()
        result: dict[str, Any] = {
            "ruleId": rule,
            "ruleIndex": list(self.rules).index(rule),
            "level": level,
            "message": {"text": _literal(text)},
            "locations": [location],
            "partialFingerprints": {"epochgate/v1": digest[:32]},
        }
        self.results.append(result)
        return result

    def system(self, name: str, result: Result) -> None:
        found = result.counterexample
        for claim in result.properties:
            rule = f"{name}/{claim.name}"
            level = LEVELS.get(claim.verdict, "error" if claim.kind != "sometimes" else "warning")
            self.rule(rule, f"{claim.kind}: {claim.claim}", level)
            if claim.verdict not in LEVELS:
                continue
            own = found if found is not None and found.property == claim.name else None
            text = _text(name, result, own) if own else f"{name}: {claim.detail or claim.claim}"
            added = self.add(rule, level, text, claim.file, claim.line)
            if own is not None:
                added["codeFlows"] = [self.flow(result, own)]
        if found is not None and not found.property:
            rule = f"{name}/{found.kind}"
            self.rule(rule, KINDS.get(found.kind, found.kind))
            text = _text(name, result, found)
            added = self.add(rule, "error", text, found.file, found.line, found.message)
            added["codeFlows"] = [self.flow(result, found)]
        for note in result.notes:
            text = _literal(f"{name}: {note}")
            self.notifications.append({"level": "note", "message": {"text": text}})
        if result.verdict is Verdict.BOUNDED:
            text = f"{name}: stopped before an answer: {result.stopped}"
            self.notifications.append({"level": "warning", "message": {"text": _literal(text)}})
        elif result.verdict is not Verdict.FAIL:
            self.rows(name, result)

    def rows(self, name: str, result: Result) -> None:
        for row in result.untaken:
            self.rule(UNTAKEN_ROW, "a row that no instance takes in any reachable state", "warning")
            place = f"{row.machine}.{row.trigger} from {row.source}"
            text = f"{name}: never taken: {place}: {row.because}"
            self.add(UNTAKEN_ROW, "warning", text, row.file, row.line, f"{name} {place}")

    def flow(self, result: Result, found: Counterexample) -> dict[str, Any]:
        """The steps as the locations of one thread; the last one is the violation."""
        locations = [
            {"location": location, "executionOrder": order}
            for order, location in enumerate(self.steps(result, found), 1)
        ]
        return {"threadFlows": [{"locations": locations}]}

    def steps(self, result: Result, found: Counterexample) -> Iterator[dict[str, Any]]:
        for step in found.steps:
            rows = (declared(result, row) for row in step.rows if row.instance == step.instance)
            file, line = next((place for place in rows if place), (found.file, found.line))
            yield self.location(file, line, _step(step))
        yield self.location(found.file, found.line, found.message)


def sarif_json(results: Mapping[str, Result], root: Path | None = None) -> str:
    """The results by the names of their systems; URIs are relative to `root`, by default the
    current folder, which should be the one that the code host knows as its root.
    """
    from epochgate import __version__

    run = _Run(root or Path.cwd())
    for name, result in results.items():
        run.system(name, result)
    driver = {"name": "epochgate", "version": __version__, "rules": list(run.rules.values())}
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "automationDetails": {"id": "epochgate-check/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": run.notifications,
                    }
                ],
                "results": run.results,
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _literal(text: str) -> str:
    """Double the braces, which would stand for arguments."""
    return text.replace("{", "{{").replace("}", "}}")


def _text(name: str, result: Result, found: Counterexample) -> str:
    constants = " ".join(f"{n}={value}" for n, value in result.constants.items())
    lines = counterexample(found)
    # The second line is the place, absolute, and stands in the location.
    return "\n".join([f"{name} {constants}: {lines[0]}", *lines[2:]])


def _step(step: TraceStep) -> str:
    changes = ", ".join(
        f"{place}: {shown(before)} -> {shown(after)}"
        for place, (before, after) in step.changed.items()
    )
    return f"{step.number}. {step.label}: {step.because}" + (f" ({changes})" if changes else "")
