"""`epochgate fuzz`: explores failures and late messages of the real runtime in simulated tests, of
epochgate itself or of the user's, outside pytest and for as long as one likes, in several processes
or in tasks of Spark.

Parts of seeds are handed out in rounds; the first failure of a test is shrunk here. Decides when it
is enough: after the runs that a test says (dev), after three minutes or four times that (ci), or
not before it is told (nightly).
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.commands.named_class import named_class
from epochgate.console import progress
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.runtime.testing.worlds.searching import Found
    from epochgate.runtime.testing.worlds.simulate import Simulation
    from epochgate.runtime.testing.worlds.spreading import Part, Scanned

PROFILES = ("dev", "ci", "nightly")
OWN = "epochgate.runtime.testing.worlds.own"

HELP = "interleave failures and late messages, and check what must hold"
DESCRIPTION = (
    "Drive whole simulated jobs through random failures at every moment: events "
    "and records count exactly once, and nothing gets stuck."
)
EPILOG = f"""\
examples:
  epochgate fuzz                          epochgate itself, in 500 runs and the same each time
  epochgate fuzz --profile nightly        with new seeds, until it is interrupted
  epochgate fuzz --minutes 30             from seed 0 on for half an hour
  epochgate fuzz tests.test_rules         the simulated tests of a module of yours

With MODULE[:TEST] your own coordinators, operators and sources are fuzzed, in simulated tests
(docs/testing.md); without it epochgate itself, with user code that is made up. Sinks of your own
are certified by `epochgate certify-sink` (docs/certifying.md).

{codes_of("fuzz")}"""
CI_S = 180.0
FOREVER_S = 10 * 365 * 86400.0


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
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
        "--whole",
        action="store_true",
        help="report every step of a schedule, with the rows that the machines took",
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


class NoSimulatedTest(UsageError):
    """The object that is named is no simulated test."""


@dataclass
class Limit:
    """The end of a search: `effort` times the runs that each test says, or after the seconds."""

    effort: float
    seconds: float
    first_seed: int
    began_s: float = field(default_factory=time.monotonic)

    def taken_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began_s

    def left_s(self) -> float:
        """Seconds that are left."""
        return self.seconds - self.taken_s()

    def is_enough(self, simulation: Simulation, found: Found) -> bool:
        """Return whether a test needs no more runs."""
        from epochgate.runtime.testing.worlds.simulate import Systematic

        if isinstance(simulation, Systematic):
            return True  # it was explored before
        return found.failure is not None or found.runs >= simulation.runs * self.effort

    def cut_short(self, simulation: Simulation, found: Found) -> str:
        """That the seconds have ended a test before its runs were done, in words."""
        wanted = simulation.runs * self.effort
        if self.is_enough(simulation, found) or math.isinf(wanted):
            return ""
        return f"; {self.seconds:,.0f} s were over before the {wanted:,.0f} of the profile"


def run(arguments: argparse.Namespace) -> int:
    """Run the tests; returns 1 when one has failed."""
    from epochgate.runtime.testing.worlds.feedback import feedback

    module, tests = _tests(arguments.target)
    limit = _limit(arguments)
    print(f"profile {arguments.profile}, seeds from {limit.first_seed}: {', '.join(tests)}")
    with ExitStack() as stack:
        found = _search(module, tests, limit, *stack.enter_context(_places(arguments)))
    for name in found:
        found[name].is_part = found[name].seeds < tests[name].runs - 1
        _print_outcome(
            name, found[name], limit.cut_short(tests[name], found[name]), arguments.whole
        )
    print(f"\n{_pace(found, limit)}")
    for line in feedback(found, arguments.rows, "--rows"):
        print(line)
    _write(arguments, module, tests, found)
    return 0 if all(each.has_passed for each in found.values()) else 1


def _tests(target: str) -> tuple[str, dict[str, Simulation]]:
    """The module and its simulated tests."""
    from epochgate.runtime.testing.worlds.spreading import simulations

    module, attribute, _ = named_class(target, NoSimulatedTest)
    sys.path.insert(0, str(Path.cwd()))
    try:
        tests = simulations(module, attribute)
    finally:
        sys.path.pop(0)
    if not tests:
        raise NoSimulatedTest(
            f"{target!r} is no simulated test, and holds none; decorate a function of a world with "
            "@epochgate.testing.simulate, or name a function whose first parameter is `world`"
        )
    return module, tests


def _limit(arguments: argparse.Namespace) -> Limit:
    asked_s = None if arguments.minutes is None else arguments.minutes * 60
    if arguments.profile == "nightly":
        seed = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
        return Limit(float("inf"), FOREVER_S if asked_s is None else asked_s, seed)
    seed = 0 if arguments.seed is None else arguments.seed
    if arguments.profile == "ci":
        return Limit(4.0, CI_S if asked_s is None else asked_s, seed)
    return Limit(1.0 if asked_s is None else float("inf"), asked_s or FOREVER_S, seed)


@contextmanager
def _places(
    arguments: argparse.Namespace,
) -> Iterator[tuple[Callable[[list[Part]], list[Scanned]], int]]:
    """Return what runs a round of parts, and how many of them at once."""
    from epochgate.runtime.testing.worlds.spreading import scan

    if arguments.master is not None:
        from epochgate.spark.session import local_session

        with local_session(arguments.master) as spark:
            context = spark.sparkContext
            slots = context.defaultParallelism
            yield lambda parts: context.parallelize(parts, len(parts)).map(scan).collect(), slots
    elif arguments.jobs > 1:
        with get_context("spawn").Pool(arguments.jobs) as pool:
            yield lambda parts: pool.map(scan, parts, chunksize=1), arguments.jobs
    else:
        yield lambda parts: [scan(part) for part in parts], 1


def _search(
    module: str,
    tests: dict[str, Simulation],
    limit: Limit,
    run_round: Callable[[list[Part]], list[Scanned]],
    slots: int,
) -> dict[str, Found]:
    from epochgate.runtime.testing.worlds.searching import Found
    from epochgate.runtime.testing.worlds.simulate import Systematic
    from epochgate.runtime.testing.worlds.spreading import SEEDS_PER_PART, Part, add, shrunk

    found = {name: Found() for name in tests}
    for name, test in tests.items():
        if isinstance(test, Systematic):
            found[name] = test.explored(limit.left_s())
    next_seed = dict.fromkeys(tests, limit.first_seed)
    with progress("runs") as bars:
        bar = bars.add_task(module, total=None)
        while limit.left_s() > 0:
            due = [name for name, test in tests.items() if not limit.is_enough(test, found[name])]
            if not due:
                break
            parts = []
            for position in range(max(slots, len(due))):
                name = due[position % len(due)]
                seeds = min(SEEDS_PER_PART, tests[name].runs)
                parts.append(
                    Part(module, name, next_seed[name], seeds, limit.left_s(), str(Path.cwd()))
                )
                next_seed[name] += seeds
            for scanned in run_round(parts):
                one = found[scanned.test]
                add(one, scanned)
                if scanned.failing_seed is not None and one.failure is None:
                    failure = shrunk(tests[scanned.test], scanned.failing_seed)
                    failure.runs, failure.seeds, failure.steps = one.runs, one.seeds, one.steps
                    failure.taken |= one.taken
                    failure.struck |= one.struck
                    failure.points |= one.points
                    found[scanned.test] = failure
            bars.update(bar, completed=sum(each.runs for each in found.values()))
    return found


def _pace(found: dict[str, Found], limit: Limit) -> str:
    """Tell how many seeds there were, and how many an hour has."""
    seeds, seconds = sum(each.seeds for each in found.values()), limit.taken_s()
    hourly = f": {3600 * seeds / seconds:,.0f} an hour" if seeds else ""
    return f"{seeds:,} seeds in {seconds:.1f} s{hourly}"


def _print_outcome(name: str, found: Found, cut_short: str, is_whole: bool) -> None:
    from epochgate.runtime.testing.worlds.report import report, vacuous

    print()
    if found.failure is not None:
        print(report(name, found, is_whole=is_whole))
    elif not found.has_passed:
        print(vacuous(name, found))
    else:
        print(f"{name}: nothing found in {found.runs:,} runs, {found.steps:,} steps{cut_short}")


def _write(
    arguments: argparse.Namespace,
    module: str,
    tests: dict[str, Simulation],
    found: dict[str, Found],
) -> None:
    from epochgate.reports.simulated import simulated_junit, simulated_page
    from epochgate.runtime.testing.worlds.searching import token

    if arguments.junit is not None:
        arguments.junit.write_text(simulated_junit(found, module), encoding="utf-8")
    if arguments.html is not None:
        failures = {}
        for name, one in found.items():
            if one.failure is not None:
                again = tests[name].search().replay(token(one.failure), keeps="states")
                again.runs, again.seconds, again.tries = one.runs, one.seconds, one.tries
                again.seed, again.first = one.seed, one.first
                failures[name] = again
        arguments.html.write_text(simulated_page(failures), encoding="utf-8")
