"""Golden traces: schedules, and what Flink's global committer printed for them, as text.

    python -m tests.conformance.committing.traces

writes golden/ again from the real operator, which `make conformance` installs, for a review.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.committing.account import NAMES, Account
from tests.conformance.committing.schedules import schedule
from tests.conformance.comparison import Comparison, Lines, explanation
from tests.conformance.oracle.oracle import FlinkOracle
from tests.conformance.traces import written

FOLDER = Path(__file__).parent / "golden"
COUNTS = {"wild": 120, "orderly": 40}
"""How many schedules of each kind are kept, in a file of its name."""
PROGRAM = "CommitterOracle"


def explained(commands: Sequence[str], flink: Lines, ours: Lines) -> frozenset[str] | None:
    """The names of what the two committers differ by."""
    return explanation(commands, flink, ours, Account, NAMES)


def comparison() -> Comparison:
    """Of committers, still empty."""
    return Comparison(explain=explained)


def recorded(kind: str, oracle: FlinkOracle) -> str:
    """The text of one file, as the real operator prints it now."""
    made = [(f"{kind} {seed}", schedule(seed, kind)) for seed in range(COUNTS[kind])]
    return "\n".join(written(title, made_of, oracle.run(made_of)) for title, made_of in made)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with FlinkOracle(PROGRAM) as flink:
        for name in COUNTS:
            (FOLDER / f"{name}.txt").write_text(recorded(name, flink), encoding="utf-8")
