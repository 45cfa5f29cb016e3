"""Golden traces: schedules, and what Flink's committers printed for them, as text.

    python -m tests.conformance.committing.traces

writes golden/ again from the real operators, which `make conformance` installs, for a review.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.committing import upstream
from tests.conformance.committing.account import NAMES, Account
from tests.conformance.committing.schedules import Upstream, schedule
from tests.conformance.committing.upstream import UpstreamAccount
from tests.conformance.comparison import Comparison, Lines, explanation
from tests.conformance.oracle.oracle import FlinkOracle
from tests.conformance.traces import written

FOLDER = Path(__file__).parent / "golden"
COUNTS = {"wild": 120, "orderly": 20, "upstream wild": 75, "upstream orderly": 10}
"""How many schedules of each kind are kept."""
NAMES_OF = {"wild": NAMES, "upstream wild": upstream.NAMES}
"""The differences that each kind of schedule has to meet."""
PROGRAM = "CommitterOracle"


def explained(commands: Sequence[str], flink: Lines, ours: Lines) -> frozenset[str] | None:
    """The names of what the two sides differ by."""
    if commands[0].endswith(Upstream.words):
        return explanation(commands, flink, ours, UpstreamAccount, upstream.NAMES)
    return explanation(commands, flink, ours, Account, NAMES)


def comparison() -> Comparison:
    """Of committers, still empty."""
    return Comparison(explain=explained)


def file_of(kind: str) -> Path:
    """Return where the traces of a kind are."""
    return FOLDER / f"{kind.replace(' ', '_')}.txt"


def recorded(kind: str, oracle: FlinkOracle) -> str:
    """The text of one file, as the real operators print it now."""
    made = [(f"{kind} {seed}", schedule(seed, kind)) for seed in range(COUNTS[kind])]
    return "\n".join(written(title, made_of, oracle.run(made_of)) for title, made_of in made)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with FlinkOracle(PROGRAM) as flink:
        for name in COUNTS:
            file_of(name).write_text(recorded(name, flink), encoding="utf-8")
