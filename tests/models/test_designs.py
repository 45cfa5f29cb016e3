from __future__ import annotations

from dataclasses import dataclass

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt, HangingWork
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.owning import OwnedTable
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import RecordedAfterwards, StreamingQuery
from epochgate.models.closed.updating import UpdatedControl
from epochgate.models.studies.acknowledged import Acknowledged
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.broken.commit import Appending, KeyOfARun, Unfenced, UnstoredLedger
from epochgate.models.studies.flink.failover import GlobalFlink, GlobalOnly
from epochgate.models.studies.flink.hazards import (
    AbandonedFuture,
    ForgottenLoss,
    MixedClose,
    SkippedReopening,
    StreamedFlink,
    TimedFlink,
)
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.reference import Reference
from epochgate.models.studies.valve import Valve

pytestmark = pytest.mark.extended

ENGINE = "python"
"""Of small spaces, which are searched before machine code would be made;
`test_machine_code_deep` shows that machine code comes to the same.
"""


@dataclass(frozen=True)
class Size:
    states: int
    transitions: int


SIZES: dict[type[ClosedSystem] | ClosedSystem, Size] = {
    Valve: Size(8139, 24499),
    Acknowledged: Size(22043, 81749),
    Flink: Size(266519, 512786),
    GlobalFlink: Size(367959, 674450),
    CommitJob(wanted=2): Size(39869, 154432),
    HangingWork(wanted=2): Size(60724, 244102),
    CommitsInDoubt(wanted=2): Size(21232, 69032),
    CompactingJob(K=2): Size(99550, 253119),
    PipelineTasks: Size(233103, 845199),
    ChangedSetting: Size(25914, 67849),
    FiledSource: Size(62766, 177997),
    FloodedTask(said=1): Size(1149111, 4310093),
    PlacedTask(hosts=2): Size(672346, 4089954),
    ResidentTask: Size(2390, 3374),
    StreamingQuery: Size(158565, 517004),
    RecordedAfterwards: Size(249183, 768879),
    PlannedQuery: Size(2785378, 10121813),
    SteeredQuery(batches=2): Size(485853, 1704364),
    ChosenQuery(batches=2): Size(335600, 947014),
    UpdatedControl: Size(200638, 592920),
    OwnedTable: Size(96623, 199685),
}
"""`make check-deep` searches those that have bounds here at their usual ones: with these they take
each of their rows too, in a third of the time.
"""


def name_of(system: type[ClosedSystem] | ClosedSystem) -> str:
    return (system if isinstance(system, type) else type(system)).__name__


@pytest.mark.parametrize("system", SIZES, ids=name_of)
def test_a_design_holds_within_its_assumptions_and_uses_each_of_its_rows(
    system: type[ClosedSystem] | ClosedSystem,
) -> None:
    result = check(system)
    assert result.verdict is Verdict.PASS
    assert Size(result.states, result.transitions) == SIZES[system]


MANY_STATES = (
    "flooding.large_events_refused",
    "flooding.sender_blocked",
    "planning.filter_looked_up",
    "planning.forgotten_batch_read",
    "planning.pruned_unrecorded",
    "planning.swept_too_early",
    "steering.loss_unnoticed",
    "streaming.notes_overwritten",
    "streaming.one_note",
)
"""More than 60,000: machine code takes a tenth of the time for them, its making included."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_variant_fails_by_a_shortest_way(name: str) -> None:
    broken = BROKEN[name]
    result = check(broken.system, engine=None if name in MANY_STATES else ENGINE)
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert broken.says in result.counterexample.message
    steps = result.counterexample.steps
    assert len(steps) == broken.steps
    taken = iter([f"{step.instance.partition('[')[0]}.{step.trigger}" for step in steps])
    assert [step for step in broken.via.split() if step not in taken] == []


HOLDING: dict[str, ClosedSystem] = {
    "no_subtask_is_a_source_and_nothing_is_aborted": StreamedFlink(),
    "all_subtasks_are_sources_and_nothing_is_lost": TimedFlink(F=0),
    "a_scheduler_aborts_before_a_restart_D2": SkippedReopening(periodic=1, savepoints=0),
    "a_scheduler_aborts_before_a_restart_D3": MixedClose(periodic=1, savepoints=0),
    "a_scheduler_aborts_before_a_restart_D5": AbandonedFuture(periodic=1, savepoints=0),
    "only_the_job_as_a_whole_restarts": GlobalOnly(),
    "an_event_is_lost_and_no_checkpoint_was_aborted_before": ForgottenLoss(K=1),
    "a_sink_that_appends_needs_a_commit_that_is_repeated": Appending(F=0),
    "a_ledger_is_needed_only_by_a_driver_that_dies": UnstoredLedger(F=0),
    "a_number_of_the_run_is_enough_for_one_driver": KeyOfARun(F=0),
    "a_fence_is_needed_only_against_a_driver_that_was_replaced": Unfenced(F=0),
}


@pytest.mark.parametrize("system", HOLDING.values(), ids=HOLDING)
def test_what_a_failure_needs_is_needed(system: ClosedSystem) -> None:
    assert check(system).counterexample is None


def test_a_barrier_that_comes_with_records_needs_a_wait_for_events_but_no_more() -> None:
    assert check(Acknowledged(sources=1), engine=ENGINE).counterexample is None
    assert check(Acknowledged(sources=2), engine=ENGINE).counterexample is None


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_the_table_grows_between_two_levels_too(engine: str) -> None:
    """At these bounds a level ends with the table all but half full."""
    pytest.importorskip("llvmlite")
    result = check(Reference(N=2, C=1, K=3, E=1, F=2), engine=engine)
    assert result.verdict is Verdict.PASS
    assert Size(result.states, result.transitions) == Size(65676, 303224)


LARGE = (
    "choosing.chosen_twice",
    "choosing.earlier_state",
    "choosing.nothing_restored",
    "commit.work_in_the_way",
    "committing.asked_amid",
    "committing.collected_twice",
    "committing.input_forgotten",
    "committing.said_at_the_barrier",
    "committing.still_sealed",
    "committing.tries_forgotten",
    "flooding.sender_blocked",
    "flooding.sender_never_told",
    "planning.filter_looked_up",
    "planning.filter_of_an_earlier_batch",
    "planning.forgotten_batch_planned",
    "planning.forgotten_batch_read",
    "planning.pruned_unrecorded",
    "planning.swept_too_early",
    "streaming.notes_overwritten",
    "streaming.one_note",
    "streaming.skipping",
    "updating.removed_number",
)
"""More than 5,000 states, which the machines themselves take up to two minutes to search."""


@pytest.mark.mutants
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.deep] if name in LARGE else [])
        for name in BROKEN
        if not name.startswith("flink.")
    ],
)
def test_the_machines_themselves_fail_in_the_same_way(name: str) -> None:
    compiled, interpreted = (
        check(BROKEN[name].system, engine=engine) for engine in ("python", "interpreted")
    )
    assert compiled.counterexample is not None
    assert interpreted.counterexample is not None
    assert compiled.counterexample.message == interpreted.counterexample.message
    assert compiled.states == interpreted.states
