"""Results as one HTML page that needs no other file and no network.

For each system a table of its claims, and for a counterexample a space-time diagram with the state
of every machine at each step. `page.css` and `page.js` stand beside this file and are put into the
page; a policy in it forbids browsers to fetch anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from epochgate.fsm.checker.result import Counterexample, Result, Verdict
from epochgate.reports.messages import messages
from epochgate.reports.places import relative, trace
from epochgate.reports.spacetime import hues, space_time

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
MEANING = {
    Verdict.PASS: "every claim holds",
    Verdict.FAIL: "a claim fails",
    Verdict.VACUOUS: "something never happens",
    Verdict.BOUNDED: "stopped before an answer",
}


@dataclass(frozen=True)
class Own:
    """What a command has to say of one result in place of what a check says."""

    figures: Mapping[str, str]
    text: str
    """What is shown as text: for a simulated run the report, with the word that replays it."""
    keep: str = ""
    """What a person copies from the page, shown open."""


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
    parts = files("epochgate.reports")
    verdicts = [result.verdict for result in results.values()]
    told = ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)
    sections = "\n".join(
        "\n".join(_system(number, name, result, root or Path.cwd(), told_of.get(name)))
        for number, (name, result) in enumerate(results.items(), 1)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>epochgate {command}: {escape(told)}</title>
<link rel="icon" href="data:,">
<style>
{parts.joinpath("page.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header><h1>epochgate <span>{command}</span></h1><p>{escape(told)}</p></header>
<main>
{_contents(results)}{sections}
</main>
<script>
{parts.joinpath("page.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def _contents(results: Mapping[str, Result]) -> str:
    if len(results) < 2:
        return ""
    items = "".join(
        f'<a href="#system-{number}">{_badge(result.verdict)}{escape(name)}</a>'
        for number, (name, result) in enumerate(results.items(), 1)
    )
    return f"<nav>{items}</nav>\n"


def _badge(verdict: Verdict) -> str:
    return f'<span class="badge {verdict.value.lower()}">{verdict.value}</span>'


def _system(number: int, name: str, result: Result, root: Path, own: Own | None) -> Iterator[str]:
    yield f'<section class="system" id="system-{number}">'
    constants = "".join(
        f'<span class="constant">{escape(key)} = {value}</span>'
        for key, value in result.constants.items()
    )
    title = f"{escape(name)} <small>{MEANING[result.verdict]}</small>"
    yield f"<h2>{_badge(result.verdict)}{title}</h2>"
    if constants:
        yield f'<p class="constants">{constants}</p>'
    yield _figures(_of_check(result) if own is None else own.figures)
    notes = [f"stopped early: {result.stopped}"] if result.stopped else []
    for note in notes + result.notes:
        yield f'<p class="note">{escape(note)}</p>'
    yield from _claims(result, root)
    yield from _untaken(result, root)
    if own is not None and own.keep:
        yield f'<pre class="keep">{escape(own.keep)}</pre>'
    if result.counterexample is not None:
        text = trace(result.counterexample, root) if own is None else own.text
        yield from _counterexample(number, result.counterexample, root, text)
    yield "</section>"


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


def _figures(figures: Mapping[str, str]) -> str:
    items = "".join(
        f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>" for key, value in figures.items()
    )
    return f'<dl class="figures">{items}</dl>'


def _claims(result: Result, root: Path) -> Iterator[str]:
    rows = [
        (c.verdict, c.kind, c.claim, f"{relative(c.file, root)}:{c.line}", c.detail)
        for c in result.properties
    ]
    found = result.counterexample
    if found is not None and not found.property:
        place = f"{relative(found.file, root)}:{found.line}"
        rows.append((Verdict.FAIL, found.kind, found.message, place, ""))
    if not rows:
        return
    yield '<div class="scroll"><table class="claims"><thead><tr><th>verdict</th><th>kind</th>'
    yield "<th>claim</th><th>declared at</th></tr></thead><tbody>"
    for verdict, kind, claim, place, detail in rows:
        more = f"<p>{escape(detail)}</p>" if detail else ""
        yield (
            f"<tr><td>{_badge(verdict)}</td><td>{escape(kind)}</td>"
            f"<td>{escape(claim)}{more}</td><td><code>{escape(place)}</code></td></tr>"
        )
    yield "</tbody></table></div>"


def _untaken(result: Result, root: Path) -> Iterator[str]:
    if not result.untaken:
        return
    count = len(result.untaken)
    rows = "1 row" if count == 1 else f"{count} rows"
    yield f"<details><summary>{rows} never taken</summary><ul>"
    for row in result.untaken:
        place = f"{relative(row.file, root)}:{row.line}"
        yield (
            f"<li><b>{escape(row.machine)}.{escape(row.trigger)}</b> from {escape(row.source)}: "
            f"{escape(row.because)} <code>{escape(place)}</code></li>"
        )
    yield "</ul></details>"


def _counterexample(number: int, found: Counterexample, root: Path, text: str) -> Iterator[str]:
    drawing, count = space_time(found), len(found.steps)
    place = f"{relative(found.file, root)}:{found.line}"
    steps = "1 step" if count == 1 else f"{count} steps"
    yield f'<div class="counterexample" data-number="{number}" tabindex="-1">'
    yield f'<div class="violation"><b>{escape(found.message)}</b>'
    yield f"<span>{steps} from the initial state · <code>{escape(place)}</code></span></div>"
    yield '<div class="controls"><button data-go="first" title="Home">first</button>'
    yield '<button data-go="previous" title="left arrow">← previous</button>'
    yield f'<output>{count} / {count}</output><button data-go="next" title="right arrow">next →'
    yield '</button><button data-go="last" title="End">last</button>'
    yield f'<input type="range" min="0" max="{count}" value="{count}" aria-label="step">'
    yield '<span class="keys"><kbd>←</kbd> <kbd>→</kbd> step through</span></div>'
    yield '<div class="views"><div class="diagram">'
    yield f'<div class="heads" style="min-width:{drawing.width_px}px">{drawing.header}</div>'
    yield drawing.body
    yield f"{_end(found)}</div>"
    yield '<aside class="machines" aria-live="polite"></aside></div>'
    yield f"<details><summary>as text</summary><pre>{escape(text)}</pre></details>"
    yield f'<script type="application/json">{_embedded(_data(found))}</script></div>'


def _end(found: Counterexample) -> str:
    """What is wrong, below the last step."""
    if found.cycle is None:
        said = f"✕ {found.message}"
    elif found.cycle < len(found.steps):
        said = f"↻ steps {found.cycle + 1} to {len(found.steps)} repeat for ever: {found.message}"
    else:
        said = f"↻ here it stays for ever: {found.message}"
    return f'<p class="end">{escape(said)}</p>'


def _data(found: Counterexample) -> dict[str, Any]:
    """What the script needs: the state of everything after each step, and what changed."""
    told = messages(found)
    return {
        "hues": hues(found),
        "violation": found.message,
        "cycle": found.cycle,
        "steps": [
            {
                "label": "",
                "instance": "",
                "because": "",
                "state": found.initial,
                "changed": {},
                "effects": [],
            },
            *(
                {
                    "label": step.label,
                    "instance": step.instance,
                    "because": step.because,
                    "state": step.after,
                    "effects": step.effects,
                    "changed": {place: before for place, (before, _) in step.changed.items()},
                }
                for step in found.steps
            ),
        ],
        "messages": [
            {"channel": m.channel, "value": m.value, "from": m.pushed_at, "to": m.taken_at}
            for m in told
        ],
    }


def _embedded(data: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
