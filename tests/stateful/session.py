"""`make fuzz`: sessions of the Hypothesis suite, for as long as one likes, and the shortest
schedule that breaks an invariant.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from epochgate.console import progress
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from tests.stateful.coverage import Coverage
from tests.stateful.profiles import PROFILES, explore
from tests.stateful.stateful import JobUnderFuzzing


def main(argv: Sequence[str] | None = None) -> int:
    """Explore as the command line says, `sys.argv` when `argv` is None; 1 when something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.stateful.session", description=__doc__)
    add = parser.add_argument
    add("--profile", choices=PROFILES, default="dev", help="how many examples (default: dev)")
    add("--seed", type=int, metavar="N", help="the same schedules as a session with this seed")
    add("--minutes", type=float, default=0.0, metavar="M", help="further sessions for so long")
    add("--rows", action="store_true", help="list the rows that no example took")
    arguments = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
    coverage, began_s, code = Coverage(), time.monotonic(), 0
    print(f"profile {arguments.profile}, seed {seed}", flush=True)
    try:
        _session(arguments.profile, seed, coverage)
        while (time.monotonic() - began_s) / 60 < arguments.minutes:
            seed += 1
            _session(arguments.profile, seed, coverage)
    except InvariantViolated as violated:
        _print_found(violated, coverage, arguments.profile, seed)
        code = 1
    _print_summary(coverage, began_s, arguments.rows)
    if not code:
        print("nothing found: every invariant held in every example")
    return code


def _session(profile: str, seed: int, coverage: Coverage) -> None:
    observed = type("JobUnderFuzzing", (JobUnderFuzzing,), {"coverage": coverage})
    chosen = PROFILES[profile]
    with progress("examples") as bars:
        task = bars.add_task(f"seed {seed}", total=chosen.examples)
        coverage.progress = lambda: bars.advance(task)
        explore(observed, chosen, seed)


def _print_found(violated: InvariantViolated, coverage: Coverage, profile: str, seed: int) -> None:
    print(f"\n{violated}\n\nthe shortest schedule found:")
    for number, line in enumerate(coverage.schedule, 1):
        print(f"  {number:3}. {line}")
    print(f"\nto replay: python -m tests.stateful.session --profile {profile} --seed {seed}\n")


def _print_summary(coverage: Coverage, began_s: float, shows_all: bool) -> None:
    minutes, seconds = divmod(int(time.monotonic() - began_s), 60)
    print(f"{coverage.examples} examples, {coverage.steps} steps in {minutes} min {seconds} s")
    print(
        f"checkpoints: {coverage.taken('checkpoint', 'stored', 'completed')} completed, "
        f"{coverage.taken_into('checkpoint', 'aborted')} aborted"
    )
    print(
        f"failures: {coverage.taken_into('attempt', 'failed')} attempts, "
        f"{coverage.taken_into('lifecycle', 'restarting')} of whole jobs, "
        f"{coverage.starts - coverage.examples} drivers"
    )
    never, known = coverage.never_taken(), coverage.rows_known()
    hint = "" if shows_all or not never else "; --rows lists the others, longer sessions take more"
    print(f"rows of the machines taken: {known - len(never)} of {known}, by state{hint}")
    for line in never if shows_all else ():
        print(f"  not in this session: {line}")


if __name__ == "__main__":
    sys.exit(main())
