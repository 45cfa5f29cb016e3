"""Identities grow from attempt to attempt, whichever process comes next."""

from __future__ import annotations

import pytest

from epochgate.errors import InvariantBroken
from epochgate.spark.identities import ATTEMPTS_PER_PROCESS_MAX, identity_of, task_attempt_of


def test_every_attempt_of_a_newer_task_of_spark_is_newer_than_all_of_an_older_one() -> None:
    numbers = range(1, ATTEMPTS_PER_PROCESS_MAX + 1)
    identities = [identity_of(task, number) for task in (0, 1, 2, 10**6) for number in numbers]
    assert identities == sorted(set(identities))
    assert identities[0] > 0


@pytest.mark.parametrize("task", [0, 1, 4711, 9 * 10**14])
def test_an_identity_tells_the_task_that_spark_can_kill(task: int) -> None:
    for number in (1, 2, ATTEMPTS_PER_PROCESS_MAX):
        assert task_attempt_of(identity_of(task, number)) == task


@pytest.mark.parametrize(("task", "number"), [(0, 0), (0, 1000), (-1, 1), (10**16, 1)])
def test_what_would_not_be_unique_or_not_fit_is_no_identity(task: int, number: int) -> None:
    with pytest.raises(InvariantBroken, match="has no identity"):
        identity_of(task, number)
