"""Runs that were written to a file: results of `epochgate check --json`, or names of steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epochgate.errors import UsageError
from epochgate.exploring.links import View
from epochgate.fsm.checker.exploring import Explorer, Run


class CannotLoad(UsageError):
    """A file that has no run of the system that is explored."""


def loaded(path: Path, explorer: Explorer) -> View:
    """The run in a file, seen at its beginning: the counterexample of a result for this system, or
    steps as lines of a text. Raises CannotLoad, and PlaceUnknown for a run of another system.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotLoad(f"cannot read {path}: {error}") from error
    if not text.lstrip().startswith(("{", "[")):
        run = Run(0, tuple(text.split()))
        explorer.check(run)
        return View(run, 0, note=f"{path.name}: {len(run.steps)} steps")
    try:
        read = json.loads(text)
    except ValueError as error:
        raise CannotLoad(
            f"{path} is no JSON ({error}); `epochgate check --json` writes it"
        ) from None
    name = type(explorer.system).__name__
    for result in read if isinstance(read, list) else [read]:
        found = result.get("counterexample") if isinstance(result, dict) else None
        if found and result.get("system") == name:
            return _view(found, explorer, path)
    raise CannotLoad(
        f"{path} has no counterexample of {name}: `epochgate check SYSTEM --json {path.name}` "
        "writes one where a claim breaks"
    )


def _view(found: dict[str, Any], explorer: Explorer, path: Path) -> View:
    try:
        start = explorer.start_of(found["initial"])
        run = Run(start, tuple(str(step["label"]) for step in found["steps"]))
        cycle, message = found["cycle"], str(found["message"])
    except (KeyError, TypeError) as error:
        raise CannotLoad(f"{path} lacks {error}; let `epochgate check --json` write it") from None
    explorer.check(run)
    return View(run, 0, cycle if isinstance(cycle, int) else None, message)
