"""Schedules of the closed job, played on the production runtime step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from epochgate.fsm import Ignore, Opaque, Row, machines
from epochgate.fsm.checker.schedule import ClaimBroken, StepUnknown
from epochgate.fsm.closed import Step
from epochgate.models import Attempt, Checkpoint, Gateway
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.surroundings.process import ProcessTask
from epochgate.models.closed.surroundings.store import Store
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.studies.reference import Reference
from epochgate.runtime.testing.playing import Diverged, NotPlayable, ProductionStage, play, playable
from epochgate.runtime.testing.playing.actors import PlayedProgram

UP = ("launch.launch", "process[0].arrive", "process[0].hear", "process[0].hear")
"""One subtask comes up."""
TRIGGERED = (*UP, "requester.want")
TO_THE_STORE = ("user[0].take_snapshot", "process[0].tell", "process[0].hear")


class Doubting(ClosedJob):
    """The store cannot tell whether a checkpoint exists."""

    CONSTANTS: ClassVar[dict[str, int]] = {**ClosedJob.CONSTANTS, "subtasks": 1}
    STEPS = (*ClosedJob.STEPS, Step("store", "lose_save"), Step("store", "lose_answer"))


def stage_after(system: ClosedJob, *schedule: str) -> ProductionStage:
    stage = ProductionStage(system)
    for step in schedule:
        assert step in stage.possible()
        stage.take(step)
    return stage


def test_a_checkpoint_goes_all_the_way_and_holds_what_was_sent_before_it() -> None:
    stage = stage_after(ClosedJob(subtasks=1), *UP, "sender[0][0].send", "requester.want")
    for step in ("process[0].tell", *TO_THE_STORE, "store.finish_save"):
        stage.take(step)
    stored = stage.job.simulated.store.load(1)
    assert stage.job.record.sent(stored, 0)[0] == 1
    assert stage.job.record.seen(stored, 0, 0) == [1]
    assert stage.job.job.checkpoint.completed == 1


def test_a_step_of_the_schedule_is_a_real_message_and_a_real_death() -> None:
    stage = stage_after(ClosedJob(subtasks=1), *UP)
    first = stage.job.living(0)
    assert first is not None
    stage.take("process[0].die")
    assert (first.is_alive, stage.job.job.attempt[0].state) == (False, "running")
    stage.take("process[0].hear")
    assert stage.job.job.attempt[0].state == "failed"
    assert [failure.subtask for failure in stage.job.master.report.failures] == [0]
    stage.take("backoff[0].elapse")
    stage.take("process[0].arrive")
    second = stage.job.living(0)
    assert second is not None
    assert second.identity > first.identity


def test_a_job_is_played_to_its_end() -> None:
    stage = stage_after(EndingJob(), *UP, "person.stop", *TO_THE_STORE, "store.finish_save")
    for step in ("process[0].tell", "process[0].hear", "process[0].hear"):
        stage.take(step)
    assert not stage.job.master.is_over
    stage.take("sink.finish")
    assert not stage.job.master.is_over, "the work after the last commit is under way"
    stage.take("sink.finish_work")
    assert stage.job.simulated.result.state == "finished"


def test_work_after_the_last_commit_that_fails_in_every_try_lets_the_job_finish() -> None:
    stage = stage_after(EndingJob(), *UP, "person.stop", *TO_THE_STORE, "store.finish_save")
    for step in ("process[0].tell", "process[0].hear", "process[0].hear", "sink.finish"):
        stage.take(step)
    stage.take("sink.fail_work")
    assert stage.job.simulated.result.state == "finished"
    assert "is tried no more" in stage.job.master.report.warnings[-1]


@pytest.mark.parametrize("step", ["store.lose_save", "store.lose_answer"])
def test_a_save_of_unknown_outcome_is_played_to_the_end_of_the_job(step: str) -> None:
    stage = stage_after(Doubting(), *TRIGGERED, *TO_THE_STORE, step)
    assert stage.job.job.checkpoint.state == "unknown"
    stage.take("process[0].hear")
    assert stage.job.simulated.result.state == "failed"
    assert stage.job.simulated.store.ids() == ([1] if step == "store.lose_answer" else [])


@pytest.mark.parametrize(
    ("retries", "ends", "state"),
    [
        (0, ["sink.put_off"], "failed"),
        (1, ["sink.put_off", "sink.finish", "sink.finish_work"], "finished"),
        (1, ["sink.refuse"], "failed"),
    ],
)
def test_a_commit_that_fails_is_tried_again_or_ends_the_job(
    retries: int, ends: list[str], state: str
) -> None:
    system = EndingJob(commit_retries=retries)
    stage = stage_after(system, *UP, "person.stop", *TO_THE_STORE, "store.finish_save", *ends)
    while words := {"process[0].tell", "process[0].hear"}.intersection(stage.possible()):
        stage.take(words.pop())
    assert stage.job.simulated.result.state == state


def test_an_operator_speaks_and_its_receipt_is_held_behind_the_snapshot() -> None:
    stage = stage_after(TalkingJob(), "launch.launch", "user[0].get_ready", *UP[1:])
    for step in ("requester.want", "process[0].speak", "user[0].take_snapshot", "process[0].hear"):
        stage.take(step)
    gateway = stage.job.job.gateway[0, 0]
    assert [gateway.state, gateway.held.size(), gateway.sent] == ["closed", 1, 0]
    assert stage.job.coordinator(0).heard == [[1]]
    for step in (*TO_THE_STORE[1:], "process[0].tell", "store.finish_save"):
        stage.take(step)
    process = stage.job.restored(0)
    assert process is not None
    assert isinstance(process.worker.program, PlayedProgram)
    assert [speaker.receipts for speaker in process.worker.program.speakers.values()] == [1]


def test_a_coordinator_that_could_not_start_is_rebuilt() -> None:
    stage = stage_after(TalkingJob(), "launch.launch")
    first = stage.job.coordinator(0)
    for step in ("user[0].fail_to_start", "restarter.back_off", "user[0].get_ready"):
        stage.take(step)
    assert stage.job.coordinator(0) is not first
    assert stage.job.job.holder[0].state == "started"


def test_the_future_of_a_coordinator_that_was_recreated_completes_late() -> None:
    starting = ("launch.launch", "process[0].arrive", "process[0].hear", "process[0].hear")
    again = ("user[0].fail_everything", "process[0].hear", "restarter.back_off")
    stage = stage_after(TalkingJob(), *starting, "requester.want", *again)
    stage.take("user[0].take_snapshot")
    snapshot = stage.job.job.snapshot[0]
    assert (snapshot.checkpoint, snapshot.state) == (1, "idle")
    assert not stage.job.coordinator(0).is_asked()


def test_steps_that_are_not_possible_are_left_out() -> None:
    assert play(ClosedJob(subtasks=1), "process[0].hear", *UP, "store.finish_save") == [
        "process[0].hear",
        "store.finish_save",
    ]


def test_a_step_that_the_system_does_not_have_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(StepUnknown, match=r"no step 'process\[1\].hear'; its steps are launch"):
        play(ClosedJob(subtasks=1), "launch.launch", "process[1].hear")


class DeafGateway(Gateway):
    """Reopens for no barrier."""

    ROWS = (
        *(row for row in Gateway.ROWS if row.trigger != "reopen"),
        Row("reopen", ("marked", "closed"), "open", "never", None, "it does not come to that"),
        Ignore("reopen", ("open", "marked", "closed"), "not never", "it hears of nothing"),
    )

    def never(self, checkpoint: int) -> bool:
        return False


class WithDeafGateway(ClosedJob):
    UNTAKEN: ClassVar[dict[str, str]] = {}
    gateway: dict[tuple[int, int], Gateway] = machines(DeafGateway)


def test_the_machines_that_run_are_those_of_the_variant() -> None:
    stage = stage_after(WithDeafGateway(subtasks=1), *TRIGGERED, *TO_THE_STORE)
    gateway = stage.job.job.gateway[0, 0]
    assert isinstance(gateway, DeafGateway)
    assert gateway.state == "closed"


class HalfStore(Store):
    """Says that it has stored a checkpoint, but for the model only."""

    def report_failed(self) -> None:
        self.system.checkpoint.stored(self.system.checkpoint.number)


class WithHalfStore(ClosedJob):
    store: Store = machines(HalfStore)


def test_a_runtime_that_goes_another_way_than_the_model_is_told_by_the_first_difference() -> None:
    stage = stage_after(WithHalfStore(subtasks=1), *TRIGGERED, *TO_THE_STORE)
    told = r"after store.fail_save: .* is 'completed' in the model, and really 'aborted'"
    with pytest.raises(Diverged, match=told):
        stage.take("store.fail_save")


class EagerStore(Store):
    """May be done before it has begun."""

    def is_saving(self) -> bool:
        return True

    def report_stored(self) -> None:
        """It forgets to say so."""


class WithEagerStore(ClosedJob):
    store: Store = machines(EagerStore)


def test_a_step_that_only_the_model_has_is_told_with_what_the_runtime_lacks() -> None:
    stage = ProductionStage(WithEagerStore(subtasks=1))
    told = r"store.finish_save is possible in the model, and in the runtime not: nothing is being"
    with pytest.raises(Diverged, match=told):
        stage.possible()


class SelfishTask(ProcessTask):
    """Another task machine than the one in worker processes."""


class WithSelfishTask(ClosedJob):
    task: list[ProcessTask] = machines(SelfishTask)


def test_what_means_nothing_to_the_runtime_is_not_played_on_it() -> None:
    assert not playable(ClosedJob)
    assert "not made of the runtime's machines" in playable(Reference)
    assert "task machine of its own" in playable(WithSelfishTask)
    with pytest.raises(NotPlayable, match="play its schedules with"):
        play(WithSelfishTask())


class AttemptOfAnyProcess(Attempt):
    """Whatever process speaks is believed."""

    def speaks(self, identity: int) -> bool:
        return True


class WithAnyProcess(ClosedJob):
    attempt: list[Attempt] = machines(AttemptOfAnyProcess)


class CheckpointThatCountsTwice(Checkpoint):
    """A repeated acknowledgement counts for a subtask that has not acknowledged."""

    def is_due(self, checkpoint: int, subtask: int) -> bool:
        return True


class WithDoubleCount(ClosedJob):
    # What comes again may change something, so that it is seen what comes of it.
    STEPS = tuple(replace(step, is_stuttering=False) for step in ClosedJob.STEPS)

    checkpoint: Checkpoint = machines(CheckpointThatCountsTwice)


class GatewayThatDoesNotClose(Gateway):
    """It sends on what it should hold."""

    def hold(self, attempt: int, event: Opaque) -> None:
        self.pass_on(event)


class WithoutValve(ClosedJob):
    gateway: dict[tuple[int, int], Gateway] = machines(GatewayThatDoesNotClose)


def test_a_repeated_acknowledgement_that_counts_completes_a_checkpoint_without_a_subtask() -> None:
    up = [f"process[{s}].{step}" for s in (0, 1) for step in ("arrive", "hear", "hear")]
    way = ("launch.launch", *up, "requester.want", "user[0].take_snapshot")
    repeated = ("process[0].tell", "process[0].hear", "process[0].hear_again", "store.finish_save")
    with pytest.raises(ClaimBroken, match="checkpoint 1 was completed without subtask 1"):
        play(WithDoubleCount(), *way, *repeated)
    assert play(ClosedJob(), *way, *repeated) == ["store.finish_save"]


def test_what_was_sent_after_a_snapshot_shows_in_the_stored_checkpoint() -> None:
    system = WithoutValve(subtasks=1, coordinators=2)
    way = (*TRIGGERED, "user[0].take_snapshot", "sender[0][0].send", "process[0].tell")
    with pytest.raises(ClaimBroken, match=r"store.finish_save: I2: .* holds \[1\] too"):
        play(system, *way, "user[1].take_snapshot", *TO_THE_STORE[1:], "store.finish_save")
