"""Makes docs/zoo.md of what the finders have found.

    python -m tests.zoo.page [NAME...]           let the finders look again, and print
    python -m tests.zoo.page --write [NAME...]   also keep it, in found.json and docs/zoo.md
    python -m tests.zoo.page --table             make docs/zoo.md of what is kept

All of it takes about half an hour. Seconds are those of the machine; everything else is the same
each time, and `test_zoo` holds it to that.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.zoo.bugs import BUGS, Bug
from tests.zoo.finding import CI_RUNS, measured
from tests.zoo.plants import Plant

KEPT = Path(__file__).parent / "found.json"
PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
START, END = "<!-- zoo:start -->", "<!-- zoo:end -->"
HEADER = ("bug of", "there", "planted here", "checker", "fuzzer", "systematic mode")


def found() -> dict[str, Any]:
    """Return what is kept of the last measurement, by the names of bugs."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


def table(kept: dict[str, Any]) -> str:
    """The table, and the sums above it."""
    rows = [_row(bug, kept[name]) for name, bug in BUGS.items()]
    lines = [HEADER, ("---",) * len(HEADER), *rows]
    told = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_sums(kept)}\n\n{told}"


def _sums(kept: dict[str, Any]) -> str:
    planted = [name for name, bug in BUGS.items() if bug.plant is not None]
    by_checker = sum(bool(one["checked"] or one["design"]) for one in kept.values())
    by_fuzzer = sum(kept[name]["fuzzed"] is not None for name in planted)
    by_all = sum(bool(kept[name]["explored"]["token"]) for name in planted)
    by_any = sum(map(is_found, kept.values()))
    return (
        f"{len(BUGS)} bugs; {by_any} are found by at least one of the three. The checker finds "
        f"{by_checker}, {sum(bool(one['checked']) for one in kept.values())} of them in the "
        f"machines that run. {len(planted)} run in the production runtime: the fuzzer's ci profile "
        f"finds {by_fuzzer} of these, the systematic mode {by_all}."
    )


def is_found(one: dict[str, Any]) -> bool:
    """Return whether any finder sees the bug."""
    explored = one["explored"]
    return bool(
        one["checked"] or one["design"] or one["fuzzed"] or (explored and explored["token"])
    )


def _row(bug: Bug, one: dict[str, Any]) -> tuple[str, ...]:
    note = f". **Harmless here:** {bug.note}" if bug.note else ""
    return (
        bug.public,
        bug.about,
        _planted(bug) + note,
        "; ".join(filter(None, (_checked(one["checked"]), _checked(one["design"])))) or "–",
        "–" if bug.plant is None else _fuzzed(one["fuzzed"]),
        "–" if bug.plant is None else _explored(bug, one["explored"]),
    )


def _planted(bug: Bug) -> str:
    if bug.plant is None:
        return "in a design alone"
    if isinstance(bug.plant, Plant):
        about = (bug.plant.broken.__doc__ or "").strip().rstrip(".")
        return f"machine `{bug.plant.machine}`: {_small(about)}"
    about = " ".join((bug.plant.__doc__ or "").split()).rstrip(".")
    return f"{'sink' if about.startswith('A sink') else 'shell'}: {_small(about)}"


def _small(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].lower() + text[1:]


def _checked(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    return f"`{one['where']}`: {one['steps']} steps, {one['states']:,} states, {_s(one)}"


def _fuzzed(one: dict[str, Any] | None) -> str:
    if one is None:
        return f"not in {CI_RUNS:,} runs"
    return f"run {one['run']:,}, {_s(one)}"


def _explored(bug: Bug, one: dict[str, Any]) -> str:
    bound = f"F={bug.bound[0]}, delays={bug.bound[1]}"
    if bug.faults != Bug.faults:
        bound += f" ({', '.join(bug.faults) or 'no faults'})"
    if one["token"] is not None:
        return f"run {one['runs']:,}, {one['states']:,} states, {_s(one)}; {bound}"
    how = "none" if one["is_complete"] else "not in the time"
    return f"{how}: {one['runs']:,} runs, {one['states']:,} states, {_s(one)}; {bound}"


def _s(one: dict[str, Any]) -> str:
    return f"{one['seconds']:.1f} s"


def page(text: str, kept: dict[str, Any]) -> str:
    """The page with this table in it."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table(kept)}\n{END}{after}"


def main() -> None:
    """Let the finders look."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.page")
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs; all if none is named")
    parser.add_argument("--write", action="store_true", help="keep what is found")
    parser.add_argument("--table", action="store_true", help="make the page of what is kept alone")
    arguments = parser.parse_args()
    kept = found() if KEPT.exists() else {}
    for name in [] if arguments.table else arguments.names or BUGS:
        kept[name] = measured(BUGS[name])
        print(name, json.dumps(kept[name], indent=1), flush=True)
        if arguments.write:
            ordered = {name: kept[name] for name in BUGS if name in kept}
            KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    if (arguments.write or arguments.table) and all(name in kept for name in BUGS):
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


if __name__ == "__main__":
    main()
