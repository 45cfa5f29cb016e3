"""Every row exactly once, in simulation, committed on the driver or in the tasks: workers die,
drivers crash at each step, disks fill up.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal, get_args

import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    visible,
    write_source,
)

When = Literal["before", "during", "after"]
WHERE = pytest.mark.parametrize("commit_in", ["driver", "tasks"])


def test_all_rows_arrive_and_the_job_ends(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path))
    simulated.run()
    result = simulated.leave()
    assert (result.state, result.rows_committed, result.files_found) == ("finished", 30, 3)
    assert visible(tmp_path / "out") == rows


@WHERE
@pytest.mark.parametrize("seed", range(10))
def test_rows_arrive_once_although_processes_die_or_are_cut_off(
    tmp_path: Path, seed: int, commit_in: str
) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path, commit_in=commit_in))
    simulated.run(random_kills(simulated, seed, share=0.05))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert visible(tmp_path / "out") == rows


@WHERE
@pytest.mark.parametrize("seed", range(10))
def test_rows_of_aborted_checkpoints_are_handed_over_again(
    tmp_path: Path, seed: int, commit_in: str
) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path, commit_in=commit_in))
    chance = random.Random(seed)

    def decline() -> None:
        if not simulated.faults.doomed["acknowledge"] and chance.random() < 0.05:
            simulated.faults.doom("acknowledge", "declined")

    simulated.faults.doom("acknowledge", "declined")
    simulated.run(decline)
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert len(result.report.completed()) < len(result.report.checkpoints)
    assert visible(tmp_path / "out") == rows


@WHERE
@pytest.mark.parametrize("when", get_args(When))
def test_rows_arrive_once_wherever_the_driver_crashes(
    tmp_path: Path, when: When, commit_in: str
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_source(whole, files=2, rows=4)
    undisturbed = SimulatedIngest(options_for(whole, commit_in=commit_in))
    undisturbed.run()
    # While the tasks commit what the last checkpoint holds, none is taken.
    assert len(undisturbed.leave().report.completed()) > (2 if commit_in == "tasks" else 3)
    operations = undisturbed.files.operations
    assert len(operations) > 40
    for at in range(len(operations)):
        place = tmp_path / f"at-{at}"
        place.mkdir()
        rows = write_source(place, files=2, rows=4)
        simulated = SimulatedIngest(options_for(place, commit_in=commit_in), [Fault(at, when=when)])
        simulated.run()
        result = simulated.leave()
        assert result.state == "finished", (operations[at], result.reason)
        assert visible(place / "out") == rows, operations[at]
        assert result.rows_visible == len(rows), operations[at]


@WHERE
@pytest.mark.parametrize("seed", range(10))
def test_rows_arrive_once_over_many_crashes_and_deaths(
    tmp_path: Path, seed: int, commit_in: str
) -> None:
    chance = random.Random(seed)
    rows = write_source(tmp_path, files=4, rows=8)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(60), when=chance.choice(whens)) for _ in range(8)]
    simulated = SimulatedIngest(options_for(tmp_path, commit_in=commit_in), faults)
    simulated.run(random_kills(simulated, seed, share=0.02))
    result = simulated.leave()
    assert result.state == "finished", result.reason
    assert visible(tmp_path / "out") == rows
    assert simulated.starts > 1


@pytest.mark.parametrize("seed", range(6))
def test_rows_arrive_once_while_the_list_of_known_files_is_kept_in_pieces(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.known.RECENT_MAX", 2)
    chance = random.Random(seed)
    whens: tuple[When, ...] = get_args(When)
    faults = [Fault(chance.randrange(80), when=chance.choice(whens)) for _ in range(6)]
    (tmp_path / "in").mkdir()
    options = options_for(tmp_path, follow=True, checkpoint_every_s=0.1)
    simulated = SimulatedIngest(options, faults)
    rows: list[int] = []

    def is_read() -> bool:
        return simulated.plan.committer.rows_visible == len(rows)

    for first in range(0, 1200, 100):
        rows += write_source(tmp_path, files=2, rows=2, first=first)
        kills = random_kills(simulated, seed, share=0.0005)
        simulated.run(kills, until=is_read, rounds_max=400_000)
        assert visible(tmp_path / "out") == rows
    simulated.master.stop()
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished", result.reason
    known = tmp_path / ".out.epochgate" / "checkpoints" / "known-files"
    assert 1 <= len(list(known.iterdir())) < 24, "needless segments are removed"
    again = SimulatedIngest(options_for(tmp_path))
    again.run()
    assert again.leave().rows_committed == 0
    assert len(list(known.iterdir())) < 8, "a start removes what a crash has left"
    assert visible(tmp_path / "out") == rows
