"""A job may be told to commit in its tasks, or on the driver again: no row is lost or doubled, and
a start that cannot go on with what the other has under way says so.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import pytest

from epochgate.runtime.shell.fitting import StepMissing
from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    visible,
    write_source,
)

When = Literal["before", "during", "after"]


class ChangingIngest(SimulatedIngest):
    """Each start commits in the tasks or on the driver, by chance."""

    chance: random.Random
    refused = 0

    def _open(self) -> None:
        where = self.chance.choice(("driver", "tasks"))
        self.options = replace(self.options, commit_in=where)
        try:
            super()._open()
        except StepMissing:
            self.refused += 1
            self.plan.release()
            self.options = replace(self.options, commit_in="tasks")
            super()._open()


@pytest.mark.parametrize("seed", range(20))
def test_rows_arrive_once_although_each_start_commits_elsewhere(tmp_path: Path, seed: int) -> None:
    chance = ChangingIngest.chance = random.Random(seed)
    rows = write_source(tmp_path, files=4, rows=8)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(8)]
    simulated = ChangingIngest(options_for(tmp_path), faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert visible(tmp_path / "out") == rows
    assert simulated.starts > 1
