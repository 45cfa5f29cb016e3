"""Random schedules on the closed systems of commits in several steps: the production job, with
committers in its tasks and operators of the user's between, does the same step by step, while its
tasks fail and its drivers die.
"""

from __future__ import annotations

import pytest

from tests.playing.job_committing_walks import STEPS, SYSTEMS, walked

WALKS, DEEP_WALKS = 12, 400
DEEP = (pytest.mark.deep, pytest.mark.timeout(1200))


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_in_steps_as_the_closed_systems_do(walks: int) -> None:
    taken = set[str]()
    for seed in range(walks):
        for system in SYSTEMS:
            walked(system, seed, taken)
    assert taken == STEPS
