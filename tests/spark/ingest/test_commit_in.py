"""A job may commit in its tasks at one start and on the driver at the next."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.parquet_sink.gathered import CommitIn
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

    def _open(self) -> None:
        where: CommitIn = self.chance.choice(get_args(CommitIn))
        self.options = replace(self.options, commit_in=where)
        super()._open()


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.extended) for n in range(6, 20))]
)
def test_rows_arrive_once_although_each_start_commits_elsewhere(tmp_path: Path, seed: int) -> None:
    chance = ChangingIngest.chance = random.Random(seed)
    rows = write_source(tmp_path, files=6, rows=20)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(200), when=chance.choice(whens)) for _ in range(8)]
    simulated = ChangingIngest(options_for(tmp_path), faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert visible(tmp_path / "out") == rows
    assert simulated.starts > 1
