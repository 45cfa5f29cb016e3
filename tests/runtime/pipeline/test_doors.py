"""Whatever the parts of a pipeline raise, the job goes on or ends, with type, file and line, and no
row is lost or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit
from epochgate.runtime import Committables
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime import doors
from tests.runtime.at_door import Door
from tests.runtime.pipeline.parts import NUMBERS, SPLITS, Doubling, Ranges, Table, ToTable

FILE = 'at_door.py", line '


class Run:
    """A pipeline of all its parts, of which one raises once at a door."""

    def __init__(self, door: Door) -> None:
        self.door, self.table, self.worked = door, Table(), set[int]()
        self.job = SimulatedJob.of(
            Pipeline(
                coordinators=[RateLimit(10)],
                after_commit=door.function(self._work, "after_commit"),
                **self.parts(),
            ),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(20, 0.1),
        )
        self._go_through()

    def parts(self) -> dict[str, Any]:
        """Source, map and sink."""
        return {
            "source": self.door.of(Ranges, "source")(self.door),
            "map": self.door.of(Doubling, "map"),
            "sink": self.door.of(ToTable, "sink")(self.door, self.table),
        }

    def _work(self, checkpoint_id: int, committables: Committables) -> None:
        self.worked.add(checkpoint_id)

    def _go_through(self) -> None:
        """Read a little, take checkpoints, lose a process, go back as a whole, read to the end."""
        job = self.job
        for turn in range(3):
            job.rest()
            job.wait(0.4)
            if turn and not job.is_over:
                job.master.request_checkpoint()
            job.flow()
            job.wait(0.2)
            if turn == 0 and job.transport.processes:
                job.transport.kill(max(job.transport.processes))
            elif turn == 1 and not job.is_over:
                job.master.job.lifecycle.fail_globally("everything goes back")
        job.rest(until=lambda: job.is_over)

    def has_all(self) -> bool:
        """Return whether the job has finished, with each row once, and has worked after each
        commit.
        """
        is_worked = self.worked == set(self.table.rows)
        return self.job.result.state == "finished" and self.table.has_all() and is_worked

    @property
    def told(self) -> list[str]:
        report = self.job.master.report
        told = [f.reason for f in report.failures] + [c.reason or "" for c in report.checkpoints]
        return [*told, *report.warnings, report.failure_reason or ""]


class RunOfFunctions(Run):
    """A pipeline of functions."""

    def parts(self) -> dict[str, Any]:
        """Source, map and sink."""
        at = self.door.function
        return {
            "source": FunctionSource(
                at(first_numbers, "functions.look"), at(read, "functions.read")
            ),
            "map": at(doubled, "functions.map"),
            "sink": at(self._write, "functions.write"),
        }

    def _write(self, checkpoint_id: int, rows: list[Any]) -> None:
        self.table.rows[checkpoint_id] = rows

    def has_all(self) -> bool:
        """Return whether the job has finished, with each row once."""
        self.worked = set(self.table.rows)
        return super().has_all()


def first_numbers() -> list[int]:
    return [n * NUMBERS for n in range(SPLITS)]


def read(first: int, position: int | None) -> Iterator[tuple[list[int], int]]:
    for number in range(first if position is None else position, first + NUMBERS):
        yield [number], number + 1


def doubled(batch: list[int]) -> list[list[int]]:
    return [[2 * number] for number in batch]


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.FUNCTION)
def test_what_a_function_of_a_pipeline_raises_is_told_with_type_file_and_line(
    door: str, raised: type[BaseException]
) -> None:
    run = RunOfFunctions(Door(door, raised))
    assert run.door.has_raised
    assert any(raised.__name__ in text and FILE in text for text in run.told), run.told
    if door == "functions.write":  # a commit that fails ends the job
        assert run.job.result.state == "failed"
    else:
        assert run.has_all(), run.told


def test_without_a_fault_all_is_read_once() -> None:
    run = Run(Door("", ValueError))
    assert run.has_all(), run.told


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.PIPELINE)
def test_what_a_part_raises_is_told_with_type_file_and_line_and_no_row_is_lost(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    assert run.door.has_raised
    assert run.has_all(), run.told
    assert any(raised.__name__ in text and FILE in text for text in run.told), run.told


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.PIPELINE_CLOSING)
def test_what_a_part_raises_when_it_is_closed_changes_nothing(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    assert run.door.has_raised
    assert run.has_all(), run.told
