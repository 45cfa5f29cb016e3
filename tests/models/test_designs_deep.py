"""The designs at larger bounds, for `make check-deep`."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt, HangingWork
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import StreamingQuery
from epochgate.models.closed.updating import UpdatedControl
from epochgate.models.studies.acknowledged import Acknowledged
from epochgate.models.studies.flink.hazards import TimedFlink
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.valve import Valve

pytestmark = pytest.mark.deep

LARGE: dict[str, tuple[ClosedSystem, int, int]] = {
    "valve": (Valve(N=3, sources=3), 277_541, 1_122_643),
    "acknowledged_twice": (Acknowledged(K=2, E=2), 2_498_334, 10_414_387),
    "acknowledged_by_three": (Acknowledged(N=3), 1_406_342, 6_310_625),
    "flink_with_two_events": (Flink(E=2), 7_331_400, 14_350_766),
    "flink_with_timeouts": (TimedFlink(), 3_606_194, 7_483_375),
    "commit_as_checked": (CommitJob(), 876_695, 3_685_222),
    "hanging_work_as_checked": (HangingWork(), 1_577_524, 7_119_414),
    "commits_in_doubt_as_checked": (CommitsInDoubt(), 249_936, 919_767),
    "compacting_as_checked": (CompactingJob(), 574_367, 1_476_591),
    "flooding_as_checked": (FloodedTask(), 2_897_258, 11_055_559),
    "placing_as_checked": (PlacedTask(), 6_948_414, 48_146_683),
    "steering_as_checked": (SteeredQuery(), 2_103_194, 7_305_737),
    "choosing_as_checked": (ChosenQuery(), 2_208_866, 6_097_506),
    "commit": (CommitJob(items=2, F=3), 21_185_520, 99_976_249),
    "planning": (PlannedQuery(S=3), 11_822_665, 43_964_434),
    "steering": (SteeredQuery(batches=2, versions=2, tasks=2), 3_605_940, 13_341_036),
    "choosing": (ChosenQuery(batches=2, versions=1), 6_185_776, 20_969_533),
    "updating": (UpdatedControl(updates=5), 1_411_411, 4_036_728),
    "compacting": (CompactingJob(K=4, F=2), 3_565_119, 9_809_302),
    "streaming": (StreamingQuery(K=3, F=3), 2_544_863, 10_221_321),
}


@pytest.mark.parametrize(("system", "states", "transitions"), LARGE.values(), ids=LARGE)
def test_a_design_holds_at_larger_bounds(
    system: ClosedSystem, states: int, transitions: int
) -> None:
    result = check(system)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)
