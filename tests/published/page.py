"""Makes docs/published-counts.md of what is published and what was counted here.

    python -m tests.published.page [NAME...]           count again, and print
    python -m tests.published.page --write [NAME...]   also keep it, in counted.json and the page
    python -m tests.published.page --table             make the page of what is kept

All of it takes about a minute. Seconds are those of the machine; everything else is the same each
time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.published.catalogue import BROKEN, MODELS, Broken, Model
from tests.published.counting import counted

KEPT = Path(__file__).parent / "counted.json"
PAGE = Path(__file__).parents[2] / "docs" / "published-counts.md"
START, END = "<!-- counts:start -->", "<!-- counts:end -->"
HEADER = (
    "model",
    "published: states",
    "transitions",
    "counted: states",
    "transitions",
    "verdict",
    "declared here",
    "seconds",
)
SYMMETRIC_HEADER = ("model", "states, published and counted", "without it", "declared here")
BROKEN_HEADER = ("model", "claim that is published as broken", "counterexample", "declared here")


def kept() -> dict[str, Any]:
    """Return what was counted last, by the names of models."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def measured(model: Model) -> dict[str, Any]:
    """Count a model in compiled code; AssertionError if a published figure is another one."""
    result = counted(model, engine="llvm")
    return {
        "states": result.states,
        "transitions": result.transitions,
        "verdict": result.verdict.value,
        "seconds": round(result.compile_seconds + result.search_seconds, 1),
    }


def table(found: dict[str, Any]) -> str:
    """The sums, and a table for each publisher."""
    parts = [_sums(found)]
    for family in dict.fromkeys(model.family for model in MODELS.values()):
        own = [model for model in MODELS.values() if model.family == family]
        parts.append(f"## {family}")
        parts.append(_table(HEADER, [_row(one, found[one.name]) for one in own]))
    parts.append("## Interchangeable parts taken for each other")
    rows: list[tuple[str, ...]] = [
        (
            f"[{one.name}]({one.source})",
            f"{one.symmetric:,}",
            f"{one.states:,}",
            _link(one.declared),
        )
        for one in MODELS.values()
        if one.symmetric
    ]
    parts.append(_table(SYMMETRIC_HEADER, rows))
    parts.append("## Claims that do not hold")
    parts.append(_table(BROKEN_HEADER, [_broken_row(one) for one in BROKEN]))
    return "\n\n".join(parts)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _broken_row(one: Broken) -> tuple[str, ...]:
    found = "found" if one.steps is None else f"found, of {one.steps} steps as published"
    return f"[{one.name}]({one.source})", one.claim, found, _link(one.declared)


def _link(declared: str) -> str:
    return f"[`{declared}`](../tests/published/{declared.partition('.')[0]}.py)"


def _sums(found: dict[str, Any]) -> str:
    states = sum(one["states"] for one in found.values())
    edges = sum(model.transitions is not None for model in MODELS.values())
    return (
        f"{len(MODELS)} models and instances, {states:,} states in all. The number of states is "
        f"the published one for each, the number of transitions for the {edges} for which it is "
        f"published."
    )


def _row(model: Model, found: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"[{model.name}]({model.source})",
        f"{model.states:,}",
        "–" if model.transitions is None else f"{model.transitions:,}",
        f"{found['states']:,}",
        f"{found['transitions']:,}",
        found["verdict"],
        _link(model.declared),
        f"{found['seconds']:.1f}",
    )


def page(text: str, found: dict[str, Any]) -> str:
    """The page with these tables in it."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table(found)}\n{END}{after}"


def main() -> None:
    """Count."""
    parser = argparse.ArgumentParser(prog="python -m tests.published.page")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models; all if none is named")
    parser.add_argument("--write", action="store_true", help="keep what is counted")
    parser.add_argument("--table", action="store_true", help="make the page of what is kept alone")
    arguments = parser.parse_args()
    found = kept() if KEPT.exists() else {}
    for name in [] if arguments.table else arguments.names or MODELS:
        found[name] = measured(MODELS[name])
        print(name, json.dumps(found[name]), flush=True)
    found = {name: found[name] for name in MODELS if name in found}
    if arguments.write:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if (arguments.write or arguments.table) and len(found) == len(MODELS):
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
