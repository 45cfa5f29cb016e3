"""The rows that were taken, as `epochgate draw --taken-by` reads them: traces of jobs, counts that
tests have written, and results of checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochgate.errors import UsageError

if TYPE_CHECKING:
    from epochgate.diagrams.description import Description
    from epochgate.diagrams.taken import Taken

JOURNALS, TESTS, CHECKS = "journals", "tests", "checks"


class NotTaken(UsageError):
    """A file does not tell which rows were taken."""


def taken_by(paths: Sequence[Path], machines: Iterable[Description]) -> dict[str, Taken]:
    """Read what all these files and folders tell about these machines, by its kind.

    Raises NotTaken, NoTally or NoTraces.
    """
    from epochgate.diagrams.taken import Taken
    from epochgate.fsm.tally import Tally
    from epochgate.runtime.tracing.segments import chains, found

    kinds = {JOURNALS: Taken(), TESTS: Taken(), CHECKS: Taken(is_counted=False)}
    states = {key: one.states for one in machines for key in (one.name, one.title)}
    met = set[str]()
    traces = list[Path]()
    for path in (file for given in paths for file in _files(given)):
        if path.suffix != ".json":
            traces.append(path)
            continue
        values = _read(path)
        if isinstance(values, dict) and "rows" in values:
            kinds[TESTS].tally.counts.update(Tally.of(values, path).counts)
            met.add(TESTS)
        else:
            kinds[CHECKS].tally.counts.update(_of_checks(values, path, states).counts)
            met.add(CHECKS)
    if traces:
        met.add(JOURNALS)
        for files in chains(found(traces)):
            _replay(files, kinds[JOURNALS].tally)
    return {name: taken for name, taken in kinds.items() if name in met}


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise NotTaken(f"there is no file or folder {path} (--taken-by)")
    if path.is_file():
        yield path
        return
    files = [file for suffix in ("json", "jsonl") for file in sorted(path.rglob(f"*.{suffix}"))]
    if not files:
        raise NotTaken(
            f"there is nothing to read in {path} (--taken-by): no traces (.jsonl), and no results "
            f"of `epochgate check --json` or of `pytest --epochgate-rows` (.json)"
        )
    yield from files


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotTaken(f"{path} cannot be read as JSON (--taken-by): {error}") from error


def _replay(files: list[str], tally: Any) -> None:
    """Count the rows that a trace takes when it is replayed."""
    from epochgate.runtime.tracing.validation import checked_alone

    verdict = checked_alone(files, observer=tally).verdict
    if verdict.refusal is not None:
        raise NotTaken(
            f"{verdict.path}:{verdict.line}: the trace is refused: {verdict.refusal}; "
            f"`epochgate validate` says more. Leave it out, or use the epochgate that wrote it"
        )


def _of_checks(values: Any, path: Path, states: Mapping[str, Sequence[str]]) -> Any:
    from epochgate.fsm.tally import Place, Tally

    tally = Tally()
    try:
        for result in values if isinstance(values, list) else [values]:
            for row in result["coverage"]:
                if not row["is_taken"]:
                    continue
                name, title = row["machine"], row["origin"]
                sources = row["source"].split(" or ")
                if sources == ["*"]:
                    sources = states.get(name) or states.get(title) or ()
                for state in {*sources} - {*row["untaken_from"]}:
                    tally.counts[Place(name, title, row["trigger"], state, row["because"])] += 1
    except (KeyError, TypeError) as error:
        raise NotTaken(
            f"{path} is neither a result of `epochgate check --json` nor counts of rows "
            f"(--taken-by): {error!r}"
        ) from error
    return tally
