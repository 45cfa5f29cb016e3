"""Files that were there when a job began are passed over, wherever its first driver crashes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source
from tests.spark.ingest.test_simulated import When


def run(tmp_path: Path, *faults: Fault, name: str = "run") -> SimulatedIngest:
    simulated = SimulatedIngest(options_for(tmp_path, new_only=True), faults, name=name)
    simulated.run()
    assert simulated.leave().state == "finished"
    return simulated


def test_only_what_comes_later_is_taken(tmp_path: Path) -> None:
    write_source(tmp_path)
    run(tmp_path)
    assert visible(tmp_path / "out") == []
    new = write_source(tmp_path, files=1, first=100)
    run(tmp_path, name="again")
    assert visible(tmp_path / "out") == new
    newer = write_source(tmp_path, files=1, first=200)
    run(tmp_path, name="more")
    assert visible(tmp_path / "out") == [*new, *newer]


class Landing(SimulatedIngest):
    """A job into whose source a file comes after each crash of its driver."""

    new: list[int]

    def _planned(self):  # type: ignore[no-untyped-def]  # as the one that it replaces
        if self.starts > 1 and self.begun():
            self.new += write_source(self.base, files=1, first=100 * self.starts)
        return super()._planned()

    @property
    def base(self) -> Path:
        return Path(self.options.source).parent

    def begun(self) -> bool:
        return any(self.base.rglob("known-files/begin"))


@pytest.mark.parametrize("when", get_args(When))
def test_what_comes_after_the_first_start_is_never_passed_over(tmp_path: Path, when: When) -> None:
    write_source(tmp_path / "whole")
    operations = run(tmp_path / "whole").files.operations
    for at in range(when == "after", len(operations)):
        place = tmp_path / f"at-{at}"
        write_source(place)
        Landing.new = []
        simulated = Landing(options_for(place, new_only=True), [Fault(at, when=when)])
        simulated.run()
        assert simulated.leave().state == "finished", operations[at]
        assert visible(place / "out") == simulated.new, operations[at]
