"""Mutants that nothing finds but a test of the runtime that is named here.

A machine that is broken in these ways makes exactly this test fail: it is run in a process of its
own, as it stands and then with the mutant planted.
"""

from __future__ import annotations

from tests.mutation.by_test import failures
from tests.mutation.mutants import AnyMutant
from tests.mutation.seen import Seen

NOTICES = "tests/runtime/test_job.py::test_an_operator_that_raises_in_a_notice_costs_one_attempt"
WORKER = "tests/runtime/test_worker.py::test_"

GIVEN_UP = "tests/cli/test_commits.py::test_what_is_given_up_is_recorded_and_no_start_commits_it"

KILLED_BY: dict[str, tuple[str, ...]] = {
    GIVEN_UP: (
        "committer: forgo from idle: without drop",
        "committer: carry from idle: without carry_ledger",
        "committer.drop: `held == checkpoint` -> `held != checkpoint`",
        "committer.drop: `self.sink.forgone(checkpoint)` -> `pass`",
        "committer.drop: `self.waiting.push(held)` -> `pass`",
    ),
    f"{NOTICES}[notify_checkpoint_aborted]": (
        "task: aborted from running, ended: without call_aborted",
    ),
    f"{WORKER}an_event_that_comes_once_more_is_handled_once": (
        "task: event from running, ended when not is_next and is_old: refused",
        "task: event from running, ended when not is_next and not is_old: regardless of is_old",
    ),
    f"{WORKER}an_event_after_one_that_is_missing_ends_the_attempt[Work.IDLE]": (
        "task: event from running, ended when not is_next and is_old: regardless of is_old",
    ),
}
"""Test -> the mutants with which it fails."""


def found_by_name(mutant: AnyMutant) -> Seen | None:
    """Run the test that is named for a mutant; None if there is none, or if it does not fail."""
    for test, names in KILLED_BY.items():
        if mutant.name in names and (failure := failure_of(test, mutant)):
            return Seen("test", f"{test}: {failure}")
    return None


def failure_of(test: str, mutant: AnyMutant) -> str:
    """Return how a test that passes as it stands fails with the mutant; empty if it does not."""
    return failures([test], [mutant.name])[mutant.name].get(test, "")
