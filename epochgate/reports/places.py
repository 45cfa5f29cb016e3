"""Places of declarations, as a path that holds on any machine.

Looks through the symbolic links of an editable installation, and touches no file otherwise.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from epochgate.fsm.checker.report import counterexample
from epochgate.fsm.checker.result import Counterexample, Result, TakenRow


def relative(file: str, root: Path) -> str:
    """The path from `root` with forward slashes, or the absolute one of what lies outside."""
    path = Path(file).resolve()
    try:
        return path.relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def uri(file: str, root: Path) -> str:
    """The path as a URI reference: relative within `root`, `file:` elsewhere."""
    path = relative(file, root)
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)


def declared(result: Result, taken: TakenRow) -> tuple[str, int] | None:
    """File and line of the row that an instance took; None when the result does not list it."""
    machine = taken.instance.partition("[")[0]
    for row in result.coverage:
        is_it = (row.machine, row.trigger, row.because) == (machine, taken.trigger, taken.because)
        if is_it and row.source in (taken.source, "*"):
            return row.file, row.line
    return None


def trace(found: Counterexample, root: Path) -> str:
    """The counterexample as text, with its file as `relative` tells it."""
    said, _, *steps = counterexample(found)
    return "\n".join([said, f"  at {relative(found.file, root)}:{found.line}", *steps])
