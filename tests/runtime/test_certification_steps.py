"""The certification kit strikes committers in tasks and the operators between, and refuses a sink
for each of them that is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.runtime.testing.certification import Guarantee, certify, report
from epochgate.runtime.testing.certification.certifying import schedules_for
from epochgate.runtime.testing.certification.points import Kind
from epochgate.runtime.testing.certification.run import Plan, Run
from epochgate.testing import SinkCase
from tests.runtime import broken_steps

PAGE = Path(__file__).parents[2] / "docs" / "certifying.md"
BROKEN = [
    (broken_steps.AppendsInItsTask, Guarantee.REPLAY, "can be seen more than once"),
    (broken_steps.NamesFromTheStart, Guarantee.REPLAY, "row 3 can be seen more than once"),
    (broken_steps.DropsWhatIsRepeated, Guarantee.REPLAY, "and cannot any more"),
    (broken_steps.NumbersItsManifests, Guarantee.REPLAY, "can be seen more than once"),
    (broken_steps.CombinesOneSubtask, Guarantee.ATOMIC, "rows 1000-1001 cannot"),
    (broken_steps.LeavesThePartInTheRest, Guarantee.COMPLETE, "can be seen more than once"),
    (broken_steps.HandsBackNoRest, Guarantee.ATOMIC, "cannot"),
]


@pytest.mark.parametrize(
    ("case", "guarantee", "finding"), BROKEN, ids=[case.__name__ for case, *_ in BROKEN]
)
def test_a_sink_with_a_broken_step_is_refused_for_its_own_reason(
    case: type[SinkCase], guarantee: Guarantee, finding: str
) -> None:
    found = certify(case(), about=(guarantee,), first_only=True)
    assert list(found.failures) == [guarantee], report(found)
    broken = found.failures[guarantee].broken
    assert finding in broken.finding
    assert f"| {guarantee.title} | {broken.finding} |" in PAGE.read_text()


@pytest.mark.parametrize(
    ("case", "stride"), [(broken_steps.Stepped, 20), (broken_steps.CommitsInParts, 200)]
)
def test_a_sink_whose_steps_are_right_holds_in_a_part_of_the_schedules(
    case: type[SinkCase], stride: int
) -> None:
    found = certify(case(), stride=stride)
    assert found.has_passed, report(found)
    assert not found.unseen


def test_each_call_of_a_step_is_struck_by_a_dying_task_by_a_dying_driver_and_by_a_pause(
    tmp_path: Path,
) -> None:
    points = Run(broken_steps.Stepped(), tmp_path, Plan(Guarantee.COMPLETE)).play().points
    of_steps = {at for at, point in enumerate(points) if point.is_of_step}
    struck = {
        (schedule.fault.at, schedule.fault.kind, schedule.fault.takes_driver)
        for schedule in schedules_for(points, [])
        if schedule.fault is not None
    }
    assert {points[at].call for at in of_steps} >= {"commit(1)", "Names.process(1)", "commit(4)"}
    assert {point.call for point in points if point.is_driver} >= {
        "Naming.process(1)",
        "combine(1)",
    }
    for at in of_steps:
        for way in [(Kind.DIE, False), (Kind.DIE, True), (Kind.FAIL, False), (Kind.PAUSE, True)]:
            assert (at, *way) in struck, points[at]


class CommitsUnseen(broken_steps.Stepped):
    """The commits of its tasks are not seen, while its committer writes files."""

    task_committer = broken_steps.UnseenRowFiles


def test_a_sink_whose_commits_in_the_tasks_are_not_seen_is_not_certified() -> None:
    found = certify(CommitsUnseen(), stride=1000)
    assert not found.has_passed
    assert "no write to a store was seen inside commit" in found.unseen
