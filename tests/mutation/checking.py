"""The checker's side: whether a mutant is found on all interleavings of the closed systems that are
made of the machines that run, in small bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from epochgate.fsm import System, machines
from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.result import Counterexample
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.batch import BatchJob
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt
from epochgate.models.closed.committing import CommittingAgain, CommittingInSteps
from epochgate.models.closed.compacting import CompactingJob
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.closed.discovering import FoundFiles
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.filing import FiledSource
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.owning import OwnedTable
from epochgate.models.closed.pipelining import PipelineTasks
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.readers import ConcurrentSources
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.streaming import RecordedAfterwards, StreamingQuery
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.closed.updating import UpdatedControl
from epochgate.models.committing_job import CommittingJob
from epochgate.models.compaction import Compactions
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.control_update import ControlUpdates
from epochgate.models.discovery import Discoveries
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.placement import Placements
from epochgate.models.query_batch import QueryBatches
from epochgate.models.read_splits import SplitsRead
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.recreation import Recreations
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.table_owner import TableOwners
from tests.mutation.explored import Explored
from tests.mutation.homes import Home
from tests.mutation.mutants import AnyMutant
from tests.mutation.unbroken import Unbroken, kept, never

PYTHON_STATES_MAX = 1000
"""Smaller searches take longer to translate to machine code than to run in Python."""
EXPLORED_STATES_MAX = 60_000
"""A larger system is searched for each mutant in less time than its steps are gone through."""
STATES_TIMES_MAX = 2
"""With more states than these times those of the right system, a mutant differs from it."""


@dataclass(frozen=True)
class Bounds:
    """One closed system in small bounds."""

    system: type[ClosedSystem]
    constants: tuple[tuple[str, int], ...] = ()

    def of(self, mutant: AnyMutant | None) -> ClosedSystem:
        """The system, with one of its machines broken."""
        system = self.system if mutant is None else mutant.in_system(self.system)
        assert issubclass(system, ClosedSystem)
        return system(**dict(self.constants))

    def __str__(self) -> str:
        constants = ", ".join(f"{name}={value}" for name, value in self.constants)
        return f"{self.system.__name__}({constants})"


def bounds(system: type[ClosedSystem], **constants: int) -> Bounds:
    return Bounds(system, tuple(constants.items()))


SYSTEMS = (
    bounds(ClosedJob, subtasks=1),
    bounds(LiveJob, subtasks=1),
    bounds(ClosedJob, subtasks=1, coordinators=2, wanted=1),
    bounds(TalkingJob, wanted=1),
    bounds(AskedJob),
    bounds(AskedJob, periodic=1),
    bounds(ResumingJob),
    bounds(EndingJob, slow_commits=0),
    bounds(EndingJob),
    bounds(EndingJob, after_commit=0),
    bounds(LiveJob),
)
"""Tried in this order."""
LARGER = (
    bounds(ClosedJob, subtasks=3, wanted=1, F=0),
    bounds(EndingJob, subtasks=2, F=0, after_commit=0),
    bounds(ClosedJob, subtasks=1, coordinators=2, F=0),
    bounds(ClosedJob, subtasks=1, F=2),
    bounds(TalkingJob),
    bounds(ResumingJob, coordinators=2, F=0),
)
"""For what none of these comes to, or shows."""
COMMITS = (
    bounds(CommitJob, subtasks=1, wanted=2),
    bounds(CommitJob, subtasks=1, after_commit=0),
    bounds(CommitJob, subtasks=1),
    bounds(CommitsInDoubt, F=1, after_commit=0),
)
PARTS = {"committer": COMMITS, "post_commit": COMMITS}
"""Systems around some of the job's machines; other names mean other machines in them."""
FEW = {"subtasks": 1, "operators_before": 0, "operators_behind": 0}
OWN: dict[type[System], tuple[Bounds, ...]] = {
    BatchSnapshots: (bounds(BatchJob, R=2, E=2, F=1), bounds(BatchJob)),
    Recreations: (bounds(RecreatedJob, R=2, E=2), bounds(RecreatedJob)),
    ConcurrentJob: (
        bounds(ConcurrentAttempts, starts=2),
        bounds(ConcurrentAttempts, vertices=2, starts=2, events=0, said=0, F=0),
        bounds(ConcurrentAttempts, starts=4, events=0, said=0, F=0),
        bounds(ConcurrentAttempts, F=0),
        bounds(ConcurrentAttempts, events=0, said=0, F=2),
        bounds(ConcurrentAttempts),
    ),
    CommittingJob: (
        bounds(CommittingInSteps, **FEW, F=0),
        bounds(CommittingInSteps, subtasks=1, F=0),
        bounds(CommittingInSteps, task_committers=0, subtasks=1, F=0),
        bounds(CommittingInSteps, operators_before=0, operators_behind=0, F=0),
        bounds(CommittingInSteps, **FEW),
        bounds(CommittingAgain, task_committers=0, operators_behind=0),
        bounds(CommittingInSteps, subtasks=1, operators_behind=0),
        bounds(CommittingInSteps, subtasks=1),
        bounds(CommittingAgain, operators_before=0, operators_behind=0),
        bounds(CommittingInSteps, operators_before=0, operators_behind=0),
    ),
    SplitAssignments: (
        bounds(ConcurrentSources),
        bounds(Sources, K=0, G=0),
        bounds(Sources, subtasks=1, S=2),
    ),
    Discoveries: (bounds(FoundFiles),),
    SplitsRead: (bounds(FiledSource, F=1), bounds(FiledSource)),
    Compactions: (bounds(CompactingJob, K=2), bounds(CompactingJob, K=2, F=2)),
    Placements: (bounds(PlacedTask, hosts=2, F=2), bounds(PlacedTask, hosts=2)),
    Residents: (bounds(ResidentTask),),
    RecordsInFlight: (bounds(PipelineTasks, subtasks=1), bounds(PipelineTasks)),
    SettingChanges: (bounds(ChangedSetting),),
    TableOwners: (bounds(OwnedTable, K=2, F=1), bounds(OwnedTable)),
    SendWindows: (
        bounds(FloodedTask, events=5, large=5, said=0, K=0, F=0),
        bounds(FloodedTask, events=3, large=3, unconfirmed_bytes_max=4, said=0, K=0, F=0),
        bounds(FloodedTask, said=0, F=0),
    ),
    ReceiveWindows: (
        bounds(FloodedTask, events=2, said=3, K=0, F=0),
        bounds(FloodedTask, events=2, said=3, K=0, F=0, waiting_messages_max=2),
        bounds(FloodedTask, events=2, said=3, K=0, F=0, waiting_messages_max=4),
        bounds(FloodedTask, said=1, K=0, F=0),
    ),
    QueryBatches: (
        bounds(StreamingQuery),
        bounds(RecordedAfterwards),
        bounds(StreamingQuery, accepts=3),
    ),
    BatchDecisions: (
        bounds(SteeredQuery, batches=2, F=1),
        bounds(ChosenQuery, batches=2, F=1),
        bounds(ChosenQuery, F=1),
        bounds(SteeredQuery),
    ),
    BatchPlans: (bounds(PlannedQuery, F=1), bounds(PlannedQuery)),
    ControlUpdates: (bounds(UpdatedControl, updates=3, retained=1), bounds(UpdatedControl)),
}
"""Around the machines of other systems than the job and its task."""


@dataclass(frozen=True)
class Found:
    """The checker's findings against a mutant."""

    where: Bounds
    claim: str
    counterexample: Counterexample | None
    """None where something does not happen any more that should sometimes happen."""
    is_count: bool = False
    """Whether no claim fails, and only the states are others."""

    @property
    def what(self) -> str:
        """The claim without what is particular to the counterexample."""
        example = self.counterexample
        return self.claim if example is None else example.property or example.kind

    def __str__(self) -> str:
        if self.counterexample is None:
            return f"{self.where}: {self.claim}"
        return f"{self.where}, {len(self.counterexample.steps)} steps: {self.claim}"


def first_findings(mutant: AnyMutant) -> Iterator[Found]:
    """Return what each system has against a mutant, as soon as a claim fails or its states are
    others, which the tests of the systems hold too. Nothing if the mutant makes no difference to
    them.
    """
    for where in exercising(mutant):
        if not _differs(where, mutant):
            continue
        result = searched(where.of(mutant), STATES_TIMES_MAX * _unbroken(where).states)
        if found := _claim_broken(where, result) or _counted(where, result):
            yield found


def claimed_soon(mutant: AnyMutant) -> Found | None:
    """The first claim that fails within the first states of a system, where most of what is found
    is found; None if all hold there.
    """
    for where in differing(mutant):
        result = check(where.of(mutant), engine="python", max_states=PYTHON_STATES_MAX)
        if found := _claim_broken(where, result):
            return found
    return None


def claimed(mutant: AnyMutant, told: str = "") -> Found | None:
    """The first claim of a system that fails with a mutant, of all or the one that is told; None if
    all hold.
    """
    for where in differing(mutant, told):
        result = searched(where.of(mutant), STATES_TIMES_MAX * _unbroken(where).states)
        if found := _claim_broken(where, result):
            return found
    return None


def differing(mutant: AnyMutant, told: str = "") -> Iterator[Bounds]:
    """The systems that have other states, steps or claims that hold with the mutant, and those that
    are too large to be asked, or are told: no other has to be searched.
    """
    for where in exercising(mutant, told):
        if told or _differs(where, mutant):
            yield where


def searched(system: ClosedSystem, states_max: int | None = None) -> Result:
    """Search in Python, and with the fastest engine where there are more than a few states."""
    few = PYTHON_STATES_MAX if states_max is None else min(states_max, PYTHON_STATES_MAX)
    result = check(system, engine="python", max_states=few)
    if result.verdict is Verdict.BOUNDED and few != states_max:
        return check(system, max_states=states_max)
    return result


def require_declared(home: Home, machine: str) -> None:
    """Compile the systems around a machine with a copy of it that is not broken.

    Raises DeclarationError for one that cannot be compiled: it would refuse every mutant.
    """
    for where in systems_around(home.system, machine):
        right = where.system.MACHINES.get(home.attribute)
        if right is not None:
            copied = type(f"Copied{right.__name__}", (right,), {"__module__": right.__module__})
            own = {"__module__": where.system.__module__, home.attribute: machines(copied)}
            system = type(f"Copied{where.system.__name__}", (where.system,), own)
            Lowering(system(**dict(where.constants))).program()


def exercising(mutant: AnyMutant, told: str = "") -> Iterator[Bounds]:
    """The systems that come to a state in which the mutant does something else, of all or the one
    that is told.
    """
    for where in systems_around(mutant.home.system, mutant.machine):
        if (
            told in ("", str(where))
            and mutant.home.attribute in where.system.MACHINES
            and mutant.affected & _unbroken(where).taken
        ):
            yield where


def systems_around(system: type[System], machine: str) -> tuple[Bounds, ...]:
    """The closed systems in which a machine is broken, in the order in which they are tried."""
    return OWN.get(system) or (*SYSTEMS, *PARTS.get(machine, ()), *LARGER)


def _claim_broken(where: Bounds, result: Result) -> Found | None:
    if result.counterexample is not None:
        return Found(where, result.counterexample.message, result.counterexample)
    missing = sorted(never(result) - _unbroken(where).never)
    if missing and result.verdict is not Verdict.BOUNDED:
        return Found(where, f"never: {missing[0]}", None)
    return None


def _counted(where: Bounds, result: Result) -> Found | None:
    right = _unbroken(where)
    if (result.states, result.transitions) == (right.states, right.transitions):
        return None
    told = f"{result.states:,} states and {result.transitions:,} transitions"
    return Found(
        where, f"{told}, and not {right.states:,} and {right.transitions:,}", None, is_count=True
    )


@cache
def _unbroken(where: Bounds) -> Unbroken:
    right = where.of(None)
    return kept(right, lambda: searched(right))


@cache
def _differs(where: Bounds, mutant: AnyMutant) -> bool:
    if _unbroken(where).states > EXPLORED_STATES_MAX:
        return True
    return _explored(where).is_changed_by(mutant)


@cache
def _explored(where: Bounds) -> Explored:
    return Explored(where.of(None))
