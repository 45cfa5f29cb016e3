"""The length of fuzzing, and the session that runs it; the one place where profiles are set.

`dev` is what `make test` runs, `ci` what `make check` runs, also on broken jobs, and `nightly`
explores.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.chances import BACKEND, EqualChances
from tests.stateful.stateful import JobUnderFuzzing


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


def settings_of(profile: Profile) -> settings:
    """Without a database, and derandomised, which concerns shrinking: the draws have a seed of
    their own.
    """
    return settings(
        max_examples=profile.examples,
        stateful_step_count=profile.steps,
        backend=BACKEND,
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.normal,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )


def explore(
    machine: type[JobUnderFuzzing],
    profile: Profile,
    number: int | None = None,
    shrinks: bool = True,
) -> None:
    """Run a machine; raises what it found, for its shrunk schedule if `shrinks`.

    `number` seeds the session, 0 if it is None; the same number explores the same schedules.
    """
    chosen = settings_of(profile)
    if not shrinks:
        chosen = settings(chosen, phases=(Phase.generate,))
    EqualChances.session = number or 0
    run_state_machine_as_test(machine, settings=chosen)
