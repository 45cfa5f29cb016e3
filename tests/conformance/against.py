"""One of our shells against a real class of Flink, over many random schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.conformance.comparison import Comparison, Explain, Retelling, shrunk, transcript
from tests.conformance.oracle.oracle import FlinkOracle

FIRST_SEED = 1_000_000
"""Other seeds than those of the golden traces."""
BATCH = 200


@dataclass(frozen=True)
class Against:
    """Both sides: `shell` makes ours for one schedule, `schedule` makes the commands of a seed and
    kind, `explain` names what differs.
    """

    flink: FlinkOracle
    shell: Callable[[], Retelling]
    schedule: Callable[[int, str], list[str]]
    explain: Explain

    def compared(self, kind: str, count: int) -> Comparison:
        """Compare that many schedules of a kind."""
        found, end = Comparison(self.explain), FIRST_SEED + count
        for first in range(FIRST_SEED, end, BATCH):
            made = [self.schedule(seed, kind) for seed in range(first, min(first + BATCH, end))]
            answers = iter(self.flink.run([command for commands in made for command in commands]))
            for commands in made:
                found.add(commands, [next(answers) for _ in commands], self.shell().run(commands))
        return found

    def shortest(self, found: Comparison) -> str:
        """The example of a comparison, shrunk while it stays explained, or unexplained."""

        def sign(commands: Sequence[str]) -> object:
            if not commands[0].startswith("new"):
                return None
            names = self.explain(commands, self.flink.run(commands), self.shell().run(commands))
            return "unexplained" if names is None else names or None

        if not found.example:
            return ""
        commands = shrunk(found.example, sign)
        theirs, ours = self.flink.run(commands), self.shell().run(commands)
        return "\n" + transcript(commands, theirs, ours)
