"""The machines that run, explored on every interleaving in small bounds, and broken on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochgate.fsm import Ignore, Opaque, Row, machines
from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.checker.result import RowCoverage
from epochgate.models import Checkpoint, CoordinatorSnapshot, Gateway, Holder, JobLifecycle
from epochgate.models.checkpoint import PENDING
from epochgate.models.closed import untaken
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.commits import CommitJob, CommitsInDoubt
from epochgate.models.closed.committing import CommittingAgain
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.holder import RESTORING, STARTING

SMALL = "python"
"""The engine for spaces that are searched before machine code would be made;
`test_machine_code_deep` shows that machine code comes to the same.
"""


FOUND: dict[tuple[object, ...], Result] = {}


def searched(system: type[ClosedJob], engine: str | None, **constants: int) -> Result:
    """Return what a search comes to; two tests look at some of them."""
    which = (system.__name__, engine, *sorted(constants.items()))
    if which not in FOUND:
        FOUND[which] = check(system(**constants), engine=engine)
    return FOUND[which]


class OpenGateway(Gateway):
    """Passes events on although it is closed."""

    ROWS = tuple(
        Row("send", row.source, row.dest, row.when, "put_on_wire", row.because)
        if row.actions == ("hold",)
        else row
        for row in Gateway.ROWS
    )


class ForgetfulCheckpoint(Checkpoint):
    """Takes an acknowledgement for whichever checkpoint is under way."""

    ROWS = (
        *(row for row in Checkpoint.ROWS if row.trigger != "acknowledge" or row.when is None),
        *(
            replace(row, when=row.when.replace("is_current and ", ""))
            for row in Checkpoint.ROWS
            if row.trigger == "acknowledge" and row.when and not row.is_ignored
        ),
        Ignore("acknowledge", PENDING, "not is_due", "a repeated acknowledgement"),
    )


class InattentiveStore(Store):
    """Keeps what it is given without a look, so that it is seen what comes of a wrong part."""

    def keep(self, checkpoint: int, subtask: int, snapshot: int) -> None:
        self.has_part[subtask] = True


class HastySnapshot(CoordinatorSnapshot):
    """Does not wait for sends that are on their way."""

    def has_in_flight(self) -> bool:
        return False


class DirectReceipts(Holder):
    """Sends receipts past the gateway."""

    WRITES_OTHERS = True

    def send_receipt(self, subtask: int, attempt: int, receipt: Opaque) -> None:
        self.system.gateway[self.coordinator, subtask].put_on_wire(attempt, receipt)


class HeedlessHolder(Holder):
    """Starts a coordinator whose restore has failed."""

    ROWS = tuple(
        replace(row, source=RESTORING, dest=STARTING, after="call_start")
        if row.trigger == "restore_failed" and row.after == "fail_globally"
        else row
        for row in Holder.ROWS
    )


class AbandoningLifecycle(JobLifecycle):
    """Forgets the subtasks that had to wait for the store before they restart."""

    def resume_restarts(self) -> None:
        pass


class WithOpenGateway(ClosedJob):
    gateway: dict[tuple[int, int], Gateway] = machines(OpenGateway)


class WithForgetfulCheckpoint(ClosedJob):
    # What is stale may change something, so that it is seen what comes of it.
    STEPS = tuple(replace(step, is_stuttering=False) for step in ClosedJob.STEPS)

    checkpoint: Checkpoint = machines(ForgetfulCheckpoint)
    store: Store = machines(InattentiveStore)


class WithGullibleCheckpoint(ClosedJob):
    checkpoint: Checkpoint = machines(ForgetfulCheckpoint)
    store: Store = machines(InattentiveStore)


class WithMisledStore(ClosedJob):
    checkpoint: Checkpoint = machines(ForgetfulCheckpoint)


class WithHastySnapshot(ClosedJob):
    snapshot: list[CoordinatorSnapshot] = machines(HastySnapshot)


class WithDirectReceipts(TalkingJob):
    holder: list[Holder] = machines(DirectReceipts)


class WithHeedlessHolder(ResumingJob):
    holder: list[Holder] = machines(HeedlessHolder)


class WithAbandoningLifecycle(LiveJob):
    lifecycle: JobLifecycle = machines(AbandoningLifecycle)


@pytest.mark.parametrize(
    ("constants", "engine", "states", "transitions"),
    [
        ({"subtasks": 1}, SMALL, 1_562, 7_172),
        ({"subtasks": 1, "F": 2}, SMALL, 9_233, 46_616),
        ({"subtasks": 1, "F": 3}, None, 37_122, 199_781),
        ({"subtasks": 3, "wanted": 1, "F": 0}, SMALL, 3_245, 21_902),
        ({"subtasks": 1, "coordinators": 2, "wanted": 1}, SMALL, 2_015, 9_961),
        ({"coordinators": 2, "wanted": 1}, None, 86_858, 618_498),
        ({"F": 2}, None, 271_512, 1_995_404),
    ],
)
def test_the_invariants_hold_on_every_interleaving(
    constants: dict[str, int], engine: str | None, states: int, transitions: int
) -> None:
    result = searched(ClosedJob, engine, **constants)
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)


@pytest.mark.parametrize(
    ("system", "states", "transitions"),
    [
        (ClosedJob, 26_828, 181_335),
        (EndingJob, 37_078, 204_321),
        (ResumingJob, 10_852, 53_351),
        (TalkingJob, 35_640, 206_317),
        (LiveJob, 11_052, 66_956),
        (AskedJob, 30_230, 115_141),
        (PressedJob, 202_848, 1_162_480),
    ],
)
def test_at_its_own_bounds_everything_that_can_happen_does(
    system: type[ClosedJob], states: int, transitions: int
) -> None:
    result = searched(system, None)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (states, transitions)


def test_a_job_without_work_after_its_commits_ends_alike() -> None:
    result = searched(EndingJob, None, after_commit=0)
    assert result.counterexample is None
    assert (result.states, result.transitions) == (22_877, 120_949)


def test_every_row_of_the_machines_that_run_is_taken_somewhere_or_excused() -> None:
    found = [
        searched(ClosedJob, None, coordinators=2, wanted=1),
        searched(EndingJob, None),
        searched(EndingJob, None, slow_commits=0),
        searched(TalkingJob, None),
        searched(LiveJob, SMALL, subtasks=1),
        searched(ResumingJob, None),
        searched(ResumingJob, None, coordinators=2, F=0),
    ]
    known = {_named(row) for result in found for row in result.coverage}
    found.append(searched(EndingJob, None, subtasks=2, F=0))
    found += [searched(AskedJob, None), searched(AskedJob, None, periodic=1)]
    # This has other machines beside the one that runs, under the same names.
    of_commits = [
        check(system, engine=SMALL)
        for system in (
            CommitJob(subtasks=1, wanted=2),
            CommitsInDoubt(F=1, wanted=1, after_commit=0),
        )
    ]
    rows = [row for result in found for row in result.coverage]
    rows += [
        row
        for result in of_commits
        for row in result.coverage
        if row.machine in ("committer", "post_commit")
    ]
    of_steps = check(CommittingAgain(F=1), engine=SMALL)
    rows += [row for row in of_steps.coverage if row.machine == "task"]
    assert known - {_named(row) for row in rows if row.is_taken} == set(untaken.NOWHERE)
    # A search that ends with a counterexample may have left the bounds of its system.
    assert [
        result.counterexample for result in (*found, *of_commits, of_steps) if result.counterexample
    ] == []


def _named(row: RowCoverage) -> str:
    return f"{row.machine}.{row.trigger}: {row.because}"


BROKEN: tuple[tuple[type[ClosedJob], dict[str, int], str, int], ...] = (
    (WithOpenGateway, {"subtasks": 1, "coordinators": 2, "wanted": 1, "F": 0}, "I2", 12),
    (WithForgetfulCheckpoint, {"subtasks": 1}, "I1", 12),
    (WithGullibleCheckpoint, {"subtasks": 1}, "hear_again has to change nothing", 9),
    (WithMisledStore, {"subtasks": 1}, "told of the checkpoint that has begun", 9),
    (WithHastySnapshot, {"subtasks": 1}, "refuses 'confirm'", 8),
    (WithDirectReceipts, {"F": 0}, "I7", 14),
    (WithHeedlessHolder, {}, "begins with its state in the last completed checkpoint", 2),
    (WithAbandoningLifecycle, {"subtasks": 1}, "I6", 12),
)


@pytest.mark.parametrize(("broken", "constants", "claim", "steps"), BROKEN)
def test_a_broken_variant_is_found_by_its_shortest_trace(
    broken: type[ClosedJob], constants: dict[str, int], claim: str, steps: int
) -> None:
    result = searched(broken, SMALL, **constants)
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert claim in result.counterexample.message
    assert len(result.counterexample.steps) == steps
