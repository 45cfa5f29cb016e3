"""Whatever the parts of a pipeline raise on Spark, the job goes on, with type, file and line, and
no row is lost or doubled. `make test` goes through a sample; `make kills` through the whole table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from epochgate.pipeline import Pipeline, RateLimit
from epochgate.runtime import Committables
from epochgate.runtime.api.restart_strategies import FixedDelay
from tests.runtime import at_door, doors
from tests.runtime.at_door import Door
from tests.runtime.pipeline import parts
from tests.runtime.pipeline.parts import Doubling, Ranges, Table, ToTable

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(120)]
ENDS_WITHIN_S = 30.0
FILE = 'at_door.py", line '
BEHIND = {
    "enumerator.add_splits_back": "reader.open_split",
    "reader.restore_state": "reader.notify_checkpoint_complete",
}
"""Doors to which a job comes when another has raised."""


@dataclass
class SharedDoor(Door):
    """One door for all processes of a job: the first that comes to it makes the file `once`."""

    once: str = ""
    first: Door | None = None

    def come(self, name: str) -> None:
        """Raise if `name` is the door, or that of `first`, for the first time."""
        if self.first is not None:
            self.first.come(name)
        super().come(name)

    def _is_due(self) -> bool:
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


SAMPLE = [("reader.open_split", StopIteration), ("writer.write", doors.OwnBase)]


@pytest.mark.parametrize(
    ("door", "raised"),
    [
        pytest.param(
            door,
            raised,
            id=f"{door}-{raised.__name__}",
            marks=() if (door, raised) in SAMPLE else pytest.mark.kills,
        )
        for door in (*doors.PIPELINE, *doors.PIPELINE_CLOSING)
        for raised in doors.RAISED
    ],
)
def test_what_a_part_raises_is_told_with_type_file_and_line_and_no_row_is_lost(
    door: str, raised: type[BaseException], spark: Any, tmp_path: Path
) -> None:
    first = None
    if door in BEHIND:
        first = SharedDoor(BEHIND[door], RuntimeError, once=str(tmp_path / "first"))
    at, table = SharedDoor(door, raised, once=str(tmp_path / "once"), first=first), Table()

    def work(checkpoint_id: int, committables: Committables) -> None: ...

    pipeline = Pipeline(
        source=at.of(Ranges, "source")(at),
        map=at.of(Doubling, "map"),
        sink=at.of(ToTable, "sink")(at, table),
        coordinators=[RateLimit(60)],
        after_commit=at.function(work, "after_commit"),
    )
    with pipeline.start(
        spark,
        tmp_path / "checkpoints",
        parallelism=1,
        checkpoint_interval_s=0.1,
        restart_strategy=FixedDelay(20, 0.0),
        tolerable_checkpoint_failures=0,
        by_value=[at_door, doors, parts],
    ) as job:
        result = job.wait(ENDS_WITHIN_S)
    assert (tmp_path / "once").exists()
    assert result.state == "finished", result.reason
    assert table.has_all(), table.rows
    report = job.report
    told = [f.reason for f in report.failures] + [c.reason or "" for c in report.checkpoints]
    told += report.warnings
    if door not in doors.PIPELINE_CLOSING:  # what is over is closed, and the log has the error
        assert any(raised.__name__ in text and FILE in text for text in told), told
