"""`epochgate fuzz`: explores failures and late messages of the real runtime in simulated tests, of
epochgate itself or of the user's, for as long as one likes (`fuzz_tests`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

PROFILES = ("dev", "ci", "nightly")
OWN = "epochgate.runtime.testing.worlds.own"

EPILOG = """\
examples:
  epochgate fuzz                          epochgate itself, in 500 runs and the same each time
  epochgate fuzz --profile nightly        with new seeds, until it is interrupted
  epochgate fuzz --minutes 30             from seed 0 on for half an hour
  epochgate fuzz tests.test_rules         the simulated tests of a module of yours

With MODULE[:TEST] your own coordinators, operators and sources are fuzzed, in simulated tests
(docs/testing.md); without it epochgate itself, with user code that is made up. Sinks of your own
are certified by `epochgate certify-sink` (docs/certifying.md).

Exit codes: 0 nothing found, 1 a test has failed, 2 misuse."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "fuzz",
        help="interleave failures and late messages, and check what must hold",
        description="Drive whole simulated jobs through random failures at every moment: events "
        "and records count exactly once, and nothing gets stuck.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        nargs="?",
        default=OWN,
        metavar="MODULE[:TEST]",
        help="simulated tests of your own (docs/testing.md); without it, those of epochgate",
    )
    parser.add_argument(
        "--profile", choices=PROFILES, default="dev", help="how many runs (default: dev)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the first run (default: 0)")
    parser.add_argument(
        "--minutes",
        type=_minutes,
        metavar="M",
        help="make further runs, with the next seeds, until so much time has passed",
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="list the rows of epochgate's machines that no run took: what this session says "
        "nothing about",
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N", help="run in N processes (default: 1)"
    )
    parser.add_argument("--master", metavar="URL", help="run in tasks of this master of Spark")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the outcomes as JUnit XML"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the failures as a page")


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
    """Explore; returns 1 when a test has failed."""
    from epochgate.commands.fuzz_tests import run_tests

    return run_tests(arguments)
