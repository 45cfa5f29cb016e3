"""Whatever the steps of a commit raise, at their first call or a later one, the job goes on or
ends, with type, file and line; and over the next starts no row is lost or doubled.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit
from epochgate.runtime.api.raised import described
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime import doors
from tests.runtime.at_door import Door
from tests.runtime.committing.parts import StepsAtDoors
from tests.runtime.committing.sinks import Target
from tests.runtime.committing.test_committing import ROWS, committed_globally, look, read

PLACE = re.compile(r'at_door\.py", line \d+')
STARTS_MAX = 4
EXTENDED = pytest.mark.extended
NO_FAULT = ["crashed", "finished"]
SOME_RAISED = [
    kind if kind in (ValueError, KeyboardInterrupt) else pytest.param(kind, marks=EXTENDED)
    for kind in doors.RAISED
]
"""Each run of the tests goes through the doors with these that have no mark."""
ON_DRIVER = ("first_on_driver.", "then_on_driver.", "combining.")


class Run:
    """One job over as many starts as it takes. told: to a person; ends: how each start ended."""

    def __init__(self, door: Door) -> None:
        self.door, self.target = door, Target()
        self.told: list[str] = []
        self.ends: list[str] = []
        self.job: SimulatedJob
        self._open()
        self._go_through()

    def _open(self) -> None:
        while not hasattr(self, "job"):
            try:
                self.job = SimulatedJob.of(
                    Pipeline(
                        source=FunctionSource(look, read),
                        sink=self.door.of(StepsAtDoors, "sink")(self.door, self.target),
                        coordinators=[RateLimit(8)],
                    ),
                    parallelism=2,
                    checkpoint_interval_s=None,
                    restart_strategy=FixedDelay(20, 0.1),
                )
            except BaseException as error:  # noqa: BLE001  # it is what the door raises
                self._not_started(error)

    def _go_through(self) -> None:
        """Take checkpoints amid the input, lose a process, go back as a whole, lose the driver."""
        for turn in range(5):
            self._take_checkpoint()
            if turn == 1 and self.job.transport.processes:
                self.job.transport.kill(max(self.job.transport.processes))
            elif turn == 2 and not self.job.is_over:
                self.job.master.job.lifecycle.fail_globally("everything goes back")
            elif turn == 3:
                self._start_again()
        self.job.rest(until=lambda: self.job.is_over)
        while self.job.result.state != "finished":
            self._start_again()
            self.job.rest(until=lambda: self.job.is_over)
        self.job.master.close()
        self._end()

    def _take_checkpoint(self) -> None:
        self.job.rest()
        self.job.wait(0.4)
        if not self.job.is_over:
            self.job.master.request_checkpoint()
        self.job.flow()
        self.job.wait(0.1)

    def _start_again(self) -> None:
        self._end()
        for _ in range(STARTS_MAX):
            try:
                self.job.crash_driver()
            except BaseException as error:  # noqa: BLE001  # it is what the door raises
                self._not_started(error)
            else:
                return

    def _end(self) -> None:
        report = self.job.master.report
        self.told += [f.reason for f in report.failures]
        self.told += [c.reason or "" for c in report.checkpoints]
        self.told += [*report.warnings, report.failure_reason or ""]
        self.ends.append(self.job.result.state if self.job.is_over else "crashed")

    def _not_started(self, error: BaseException) -> None:
        """Note what the caller is told, who starts it again."""
        if len(self.ends) > STARTS_MAX or not isinstance(error, self.door.raised):
            raise error
        self.ends.append("refused")
        self.told.append(described(error))

    def has_all(self) -> bool:
        """True if the job has finished, with each row once in the tasks and once globally."""
        return (
            self.ends[-1] == "finished"
            and sorted(self.target.in_tasks) == ROWS
            and sorted(committed_globally(self.target)) == ROWS
        )


def test_without_a_fault_all_is_committed_once_in_one_start() -> None:
    run = Run(Door("", ValueError))
    assert run.has_all(), run.told
    assert run.ends == NO_FAULT
    assert len(run.target.globally) >= 3


def check(run: Run, door: str, raised: type[BaseException]) -> None:
    assert run.door.has_raised
    assert run.has_all(), (run.ends, run.told)
    assert any(raised.__name__ in text and PLACE.search(text) for text in run.told), run.told


@pytest.mark.parametrize("raised", SOME_RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.COMMITTING)
def test_what_a_step_raises_is_told_with_type_file_and_line_and_no_row_is_lost(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    check(run, door, raised)
    is_on_driver = door.startswith(ON_DRIVER)
    if not door.startswith("sink."):
        assert run.ends.count("failed") == is_on_driver


LATER: list[Any] = [
    (door, before)
    for door in doors.COMMITTING
    for before in (1, 3)
    if before == 1 or not door.endswith("_on_driver.open")
]


@pytest.mark.parametrize(("door", "before"), LATER)
def test_a_later_call_that_raises_is_told_as_the_first_and_no_row_is_lost(
    door: str, before: int
) -> None:
    check(Run(Door(door, doors.OwnBase, before)), door, doors.OwnBase)


@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.COMMITTING_CLOSING)
def test_what_a_step_raises_when_it_is_closed_changes_nothing(
    door: str, raised: type[BaseException]
) -> None:
    run = Run(Door(door, raised))
    assert run.door.has_raised
    assert run.has_all(), (run.ends, run.told)
    assert run.ends == NO_FAULT
    if door.startswith(ON_DRIVER):
        assert any(raised.__name__ in text for text in run.told), run.told
