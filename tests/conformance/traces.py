"""Golden traces: schedules and what Flink's holder printed for them, as text.

    python -m tests.conformance.traces

writes golden/ again from the real holder, which `make conformance` installs, for a review.
A trace is a line `# kind seed`, then for each command a line `command -> line | line`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.conformance.comparison import Lines, comparable
from tests.conformance.oracle.oracle import FlinkOracle
from tests.conformance.schedules import schedule

FOLDER = Path(__file__).parent / "golden"
COUNTS = {"wild": 250, "orderly": 90}
"""How many schedules of each kind are kept, in a file of its name."""
ARROW, BAR = " ->", " | "


def written(title: str, commands: list[str], answers: Lines) -> str:
    """One trace."""
    pairs = zip(commands, comparable(answers), strict=True)
    lines = [f"{command}{ARROW} {BAR.join(answer)}".rstrip() for command, answer in pairs]
    return "\n".join([f"# {title}", *lines]) + "\n"


def read(text: str) -> Iterator[tuple[str, list[str], Lines]]:
    """Every trace of a file: its title, the commands, and for each the lines."""
    for block in text.split("# ")[1:]:
        title, *lines = block.strip().split("\n")
        pairs = [line.split(ARROW, 1) for line in lines]
        answers = [said.strip().split(BAR) if said else [] for _, said in pairs]
        yield title, [command for command, _ in pairs], answers


def recorded(kind: str, oracle: FlinkOracle) -> str:
    """The text of one file, as the real holder prints it now."""
    made = [(f"{kind} {seed}", schedule(seed, kind)) for seed in range(COUNTS[kind])]
    return "\n".join(written(title, made_of, oracle.run(made_of)) for title, made_of in made)


if __name__ == "__main__":
    with FlinkOracle() as flink:
        for name in COUNTS:
            (FOLDER / f"{name}.txt").write_text(recorded(name, flink), encoding="utf-8")
