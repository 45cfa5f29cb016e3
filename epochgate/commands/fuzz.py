"""`epochgate fuzz`: explores failures and late messages of the real runtime, of epochgate's own job
with Hypothesis, or of simulated tests of the user's (`fuzz_tests`), for as long as one likes, and
shows the shortest schedule that breaks a claim.
"""

from __future__ import annotations

import argparse
import random
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.console import progress
from epochgate.errors import UsageError

if TYPE_CHECKING:
    from epochgate.runtime.testing.fuzzing import InvariantViolated
    from epochgate.runtime.testing.fuzzing.coverage import Coverage

PROFILES = ("dev", "ci", "nightly")

EPILOG = """\
examples:
  epochgate fuzz                          a few hundred examples, with a seed of their own
  epochgate fuzz --profile nightly        a hundred thousand
  epochgate fuzz --minutes 30             sessions of the profile, with one seed after the other
  epochgate fuzz --profile dev --seed 7   the same schedules again
  epochgate fuzz tests.test_rules         the simulated tests of a module of yours

With MODULE[:TEST] your own coordinators, operators and sources are fuzzed, in simulated tests
(docs/testing.md); without it epochgate itself, with user code that is made up. Sinks of your own
are certified by `epochgate certify-sink` (docs/certifying.md).

Exit codes: 0 nothing found, 1 an invariant was broken, 2 misuse."""


class TargetMissing(UsageError):
    """An option that needs a test was given without one."""


class HypothesisMissing(UsageError):
    """The extra that fuzzing needs is not installed."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "fuzz",
        help="interleave failures and late messages, and check the invariants",
        description="Drive a whole simulated job through random failures at every moment, and "
        "compare it with an independent record: events and checkpoints count exactly "
        "once, and nothing gets stuck.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="MODULE[:TEST]",
        help="simulated tests of your own (docs/testing.md); without it, epochgate's own job",
    )
    parser.add_argument(
        "--profile", choices=PROFILES, default="dev", help="how many examples (default: dev)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="explore the same schedules as a session that printed this seed",
    )
    parser.add_argument(
        "--minutes",
        type=_minutes,
        metavar="M",
        help="start further sessions, with the next seeds, until so much time has passed",
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="list the rows of epochgate's machines that no example took: what this session says "
        "nothing about",
    )
    own = parser.add_argument_group("for tests of your own")
    own.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N", help="run in N processes (default: 1)"
    )
    own.add_argument("--master", metavar="URL", help="run in tasks of this master of Spark")
    own.add_argument("--junit", type=Path, metavar="FILE", help="write the outcomes as JUnit XML")
    own.add_argument("--html", type=Path, metavar="FILE", help="write the failures as a page")


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 to 256")
    return int(text)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 7 * 24 * 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return minutes


def run(arguments: argparse.Namespace) -> int:
    """Explore; returns 1 when a claim was broken."""
    if arguments.target is not None:
        from epochgate.commands.fuzz_tests import run_tests

        return run_tests(arguments)
    _refuse_without_target(arguments)
    if find_spec("hypothesis") is None:
        raise HypothesisMissing(
            "fuzzing needs Hypothesis, which is not installed; install epochgate with its extra: "
            "pip install 'epochgate[fuzz]'"
        )
    from epochgate.runtime.testing.fuzzing import InvariantViolated
    from epochgate.runtime.testing.fuzzing.coverage import Coverage

    seed = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
    coverage = Coverage()
    began_s = time.monotonic()
    print(f"profile {arguments.profile}, seed {seed}", flush=True)
    try:
        while True:
            _session(arguments.profile, seed, coverage)
            if arguments.minutes is None or _minutes_since(began_s) >= arguments.minutes:
                break
            seed += 1
    except InvariantViolated as violated:
        _print_found(violated, coverage, arguments.profile, seed)
        _print_summary(coverage, began_s, arguments.rows)
        return 1
    _print_summary(coverage, began_s, arguments.rows)
    print("nothing found: every invariant held in every example")
    return 0


def _refuse_without_target(arguments: argparse.Namespace) -> None:
    given = {
        "--jobs": arguments.jobs > 1,
        "--master": arguments.master is not None,
        "--junit": arguments.junit is not None,
        "--html": arguments.html is not None,
    }
    if any(given.values()):
        names = ", ".join(name for name, is_given in given.items() if is_given)
        raise TargetMissing(
            f"{names} is for simulated tests of your own: name them, as in "
            "`epochgate fuzz tests.test_rules:test_rules`"
        )


def _minutes_since(began_s: float) -> float:
    return (time.monotonic() - began_s) / 60


def _session(profile: str, seed: int, coverage: Coverage) -> None:
    from epochgate.runtime.testing.fuzzing.profiles import PROFILES, explore
    from epochgate.runtime.testing.fuzzing.stateful import JobUnderFuzzing

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
    print(f"\nto replay: epochgate fuzz --profile {profile} --seed {seed}\n")


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
