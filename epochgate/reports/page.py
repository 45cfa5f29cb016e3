"""Results as one HTML page that needs no other file and no network.

For each system a table of its claims, and for a counterexample a space-time diagram with the state
of every machine at each step, and what each step changes. How it looks is in `epochgate/pages`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochgate.fsm.checker.result import Counterexample, Result, TraceStep, Verdict
from epochgate.fsm.naming import worded
from epochgate.pages import page
from epochgate.reports.messages import changes, messages, shown
from epochgate.reports.places import relative, trace
from epochgate.reports.spacetime import hues, space_time

MEANING = {
    Verdict.PASS: "every claim holds",
    Verdict.FAIL: "a claim fails",
    Verdict.VACUOUS: "something never happens",
    Verdict.BOUNDED: "stopped before an answer",
}


@dataclass(frozen=True)
class Own:
    """The words of a command about one result, in place of those of a check."""

    figures: Mapping[str, str]
    text: str
    """Shown as text: for a simulated run the report, with the word that replays it."""
    keep: str = ""
    """For a person to copy from the page; shown open."""


def html_page(
    results: Mapping[str, Result],
    root: Path | None = None,
    command: str = "check",
    own: Mapping[str, Own] | None = None,
) -> str:
    """The results by the names of their systems; file names are relative to `root`, by default
    the current folder; `command` is the one that found them, and `own` what it says of each.
    """
    told_of = own or {}
    verdicts = [result.verdict for result in results.values()]
    told = ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)
    systems = [
        _system(name, result, root or Path.cwd(), told_of.get(name))
        for name, result in results.items()
    ]
    return page("results.html", command=command, told=told, systems=systems)


def _system(name: str, result: Result, root: Path, own: Own | None) -> dict[str, Any]:
    found = result.counterexample
    stopped = [f"stopped early: {result.stopped}"] if result.stopped else []
    shown: dict[str, Any] = {
        "name": name,
        "verdict": result.verdict.value,
        "meaning": MEANING[result.verdict],
        "constants": list(result.constants.items()),
        "figures": list((_of_check(result) if own is None else own.figures).items()),
        "notes": stopped + result.notes,
        "claims": list(_claims(result, root)),
        "untaken": [
            {
                "machine": row.machine,
                "trigger": row.trigger,
                "source": row.source,
                "because": row.because,
                "place": f"{relative(row.file, root)}:{row.line}",
            }
            for row in result.untaken
        ],
        "keep": "" if own is None else own.keep,
        "found": None,
    }
    if found is not None:
        text = trace(found, root) if own is None else own.text
        shown["found"] = {
            "message": found.message,
            "count": len(found.steps),
            "place": f"{relative(found.file, root)}:{found.line}",
            "drawing": space_time(found),
            "end": _end(found),
            "text": text,
            "data": worded(_data(found)),
            "differences": list(_differences(found)),
        }
    return shown


def _of_check(result: Result) -> dict[str, str]:
    taken = sum(row.is_taken for row in result.coverage)
    figures = {
        "states": f"{result.states:,}",
        "transitions": f"{result.transitions:,}",
        "depth": f"{result.depth:,}",
        "rows taken": f"{taken} of {len(result.coverage)}",
        "compiled in": f"{result.compile_seconds:.2f} s",
        "searched in": f"{result.search_seconds:.2f} s",
        "engine": result.engine + (f", {result.workers} workers" if result.workers > 1 else ""),
    }
    if result.symmetry:
        figures["symmetry of"] = result.symmetry
    if result.partial_order:
        figures["partial order"] = f"{result.left_out:,} possible steps left out"
    return figures


def _claims(result: Result, root: Path) -> Iterator[dict[str, str]]:
    rows = [
        (c.verdict, c.kind, c.claim, f"{relative(c.file, root)}:{c.line}", c.detail)
        for c in result.properties
    ]
    found = result.counterexample
    if found is not None and not found.property:
        place = f"{relative(found.file, root)}:{found.line}"
        rows.append((Verdict.FAIL, found.kind, found.message, place, ""))
    for verdict, kind, claim, place, detail in rows:
        yield {
            "verdict": verdict.value,
            "kind": kind,
            "text": claim,
            "place": place,
            "detail": detail,
        }


def _differences(found: Counterexample) -> Iterator[tuple[str, str, str, str]]:
    """Each step as a row of a table, for those who cannot step through it, as on paper."""
    for step in found.steps:
        told = [f"{place}: {shown(was)} → {shown(now)}" for place, was, now in changes(step)]
        told += [f"effect {effect}" for effect in step.effects]
        yield str(step.number), step.label, step.because, "; ".join(told)


def _end(found: Counterexample) -> str:
    """The fault, told below the last step."""
    if found.cycle is None:
        return f"✕ {found.message}"
    if found.cycle < len(found.steps):
        return f"↻ steps {found.cycle + 1} to {len(found.steps)} repeat for ever: {found.message}"
    return f"↻ here it stays for ever: {found.message}"


def _data(found: Counterexample) -> dict[str, Any]:
    """The data of the script: the state of everything after each step, and what changed."""
    start = {
        "label": "",
        "instance": "",
        "because": "",
        "state": found.initial,
        "changed": {},
        "effects": [],
    }
    return {
        "hues": hues(found),
        "violation": found.message,
        "cycle": found.cycle,
        "steps": [
            start,
            *(
                {
                    "label": step.label,
                    "instance": step.instance,
                    "because": step.because,
                    "state": step.after,
                    "effects": step.effects,
                    "changed": _changed(step),
                }
                for step in found.steps
            ),
        ],
        "messages": [
            {"channel": m.channel, "value": m.value, "from": m.pushed_at, "to": m.taken_at}
            for m in messages(found)
        ],
    }


def _changed(step: TraceStep) -> dict[str, list[tuple[str, Any, Any]]]:
    """`instance.field` -> each part of it that differs: where it is in it, what it was and is."""
    told: dict[str, list[tuple[str, Any, Any]]] = {place: [] for place in step.changed}
    for place, was, now in changes(step):
        field = next(one for one in told if place == one or place.startswith(f"{one}["))
        told[field].append((place.removeprefix(field), was, now))
    return told
