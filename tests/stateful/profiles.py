"""The length of fuzzing, and the session that runs it; the one place where profiles are set.

`dev` is what `make test` runs, `ci` what `make check` runs, also on broken jobs, and `nightly`
explores.

The draws are bytes of one generator, seeded with the session's number. Hypothesis' own generator
begins with small examples, makes most of the others from parts of earlier ones, and takes constants
from whatever modules are imported, so that a session differs with the tests beside it. From bytes
each value of a range has the same chance, which finds broken variants of the machines in fewer
examples, and the same number explores the same schedules in every process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import InMemoryExampleDatabase

from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from tests.stateful.stateful import JobUnderFuzzing, Schedule, schedules


@dataclass(frozen=True)
class Profile:
    """The number of examples, and of steps of each."""

    examples: int
    steps: int


PROFILES = {
    "dev": Profile(examples=500, steps=40),
    "ci": Profile(examples=2000, steps=40),
    "nightly": Profile(examples=100_000, steps=60),
}
BYTES = 4096
"""More than what a schedule of any profile takes; without them its example would be discarded."""


def explore(
    machine: type[JobUnderFuzzing],
    profile: Profile,
    number: int | None = None,
    shrinks: bool = True,
) -> None:
    """Run a machine; raises what it found, for its shrunk schedule if `shrinks`.

    `number` seeds the session, 0 if it is None; the same number explores the same schedules.
    Hypothesis takes each schedule from bytes, and saves the one that fails, from which its own run
    begins.
    """

    @settings(
        database=InMemoryExampleDatabase(),
        derandomize=False,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.reuse, Phase.shrink),
    )
    @seed(number or 0)  # of shrinking; below the settings, whose database it would take away
    @given(schedules(profile.steps))
    def example(schedule: Schedule) -> None:
        machine().follow(schedule)

    fuzzed: Any = example  # its type says nothing of `hypothesis`
    chances = random.Random(number or 0)
    try:
        for _ in range(profile.examples):
            fuzzed.hypothesis.fuzz_one_input(chances.randbytes(BYTES))
    except InvariantViolated:
        if shrinks:
            example()
        raise
