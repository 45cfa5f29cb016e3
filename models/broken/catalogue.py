"""The list of all variants that must fail, with what a check says of each."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.fsm.closed import ClosedSystem
from epochgate.models import valve, waiting_valve
from epochgate.models.broken import acknowledged, commit, concurrent, replay
from epochgate.models.flink import hazards

I1 = "I1: what was sent before the coordinator's snapshot is in the subtask's"
I2 = "I2: what was sent after the coordinator's snapshot is not in the subtask's"


@dataclass(frozen=True)
class Broken:
    """A system that fails: `says` is part of the message, `steps` the length of a shortest
    counterexample, `via` some of its steps in their order, as `machine.trigger`.
    """

    system: type[ClosedSystem]
    says: str
    steps: int
    via: str


BROKEN: dict[str, Broken] = {
    "valve.none": Broken(
        valve.NoValve, I2, 7, "checkpoint.future sender.send subtask.deliver checkpoint.inject"
    ),
    "valve.other_receiver": Broken(
        waiting_valve.OtherReceiver,
        I2,
        7,
        "checkpoint.future sender.send checkpoint.inject subtask.align",
    ),
    "valve.lost_event": Broken(
        waiting_valve.LostEvent,
        I1,
        7,
        "sender.send checkpoint.future checkpoint.inject subtask.lose",
    ),
    "valve.queued_failure": Broken(
        waiting_valve.QueuedFailure,
        I1,
        7,
        "sender.send subtask.lose checkpoint.future checkpoint.inject",
    ),
    "acknowledged.not_waiting": Broken(
        acknowledged.NotWaiting,
        I1,
        8,
        "sender.send checkpoint.future checkpoint.inject subtask.align",
    ),
    "acknowledged.reopened_at_injection": Broken(
        acknowledged.ReopenedAtInjection,
        I2,
        9,
        "checkpoint.future sender.send checkpoint.inject subtask.align",
    ),
    "acknowledged.past_the_marker": Broken(
        acknowledged.PastTheMarker,
        "what was acknowledged before the operator's snapshot",
        9,
        "subtask.report checkpoint.future sender.hear subtask.deliver",
    ),
    "flink.d1": Broken(
        hazards.EarlyReopening,
        I2,
        13,
        "snapshot.future pending.inject refusal.refuse main.run task.deliver task.align",
    ),
    "flink.d2": Broken(
        hazards.SkippedReopening,
        "a gateway that nobody will reopen is open",
        14,
        "snapshot.future pending.inject task.vanish task.back_off main.run task.align",
    ),
    "flink.d3": Broken(
        hazards.MixedClose,
        "which ends the process",
        10,
        "pending.ask_coordinators task.vanish task.back_off snapshot.future main.run main.run",
    ),
    "flink.d4": Broken(
        hazards.ForgottenSends,
        I1,
        17,
        "sender.send snapshot.future timer.expire pending.begin snapshot.future task.align",
    ),
    "flink.d4_at_failover": Broken(
        hazards.ForgottenAtFailover,
        I1,
        24,
        "sender.send snapshot.future task.vanish pending.begin snapshot.future task.align",
    ),
    "flink.d4_with_a_loss": Broken(
        hazards.ForgottenLoss,
        I1,
        18,
        "sender.send snapshot.future timer.expire pending.begin task.lose task.deliver",
    ),
    "flink.d5": Broken(
        hazards.AbandonedFuture,
        "a gateway that was replaced holds nothing",
        12,
        "snapshot.future main.run sender.send main.run task.vanish task.back_off main.run",
    ),
    "flink.d6": Broken(
        hazards.UnreachedReopening,
        "deadlock",
        18,
        "task.finish pending.begin sender.send pending.begin snapshot.future main.run",
    ),
    "flink.d7": Broken(
        hazards.IntolerantCheckpoint,
        "no checkpoint fails while nothing has failed",
        9,
        "task.finish sender.send main.run",
    ),
    "flink.d8": Broken(
        hazards.UntoldCoordinator,
        "the coordinator is told how a checkpoint ends",
        3,
        "pending.begin timer.expire main.run",
    ),
    "commit.missing_summaries": Broken(
        commit.MissingSummaries,
        "what is completed is visible",
        8,
        "checkpoint.complete job.crash subtask.hear_notice subtask.arrive",
    ),
    "commit.late": Broken(
        commit.LateCommit,
        "what is completed is visible",
        7,
        "checkpoint.complete collector.hear_notice subtask.arrive",
    ),
    "commit.partial": Broken(
        commit.PartialCommit,
        "a checkpoint becomes visible as a whole",
        8,
        "checkpoint.complete subtask.hear_notice subtask.arrive sink.accept",
    ),
    "commit.early": Broken(
        commit.EarlyCommit,
        "nothing is visible before its checkpoint is completed",
        4,
        "subtask.pass_barrier subtask.arrive sink.accept",
    ),
    "commit.second_summary": Broken(
        commit.SecondSummary,
        "a committer sends one summary of a checkpoint",
        15,
        "checkpoint.complete subtask.pass_barrier checkpoint.complete job.crash subtask.arrive",
    ),
    "replay.appending": Broken(
        replay.Appending,
        "no batch is in the sink twice",
        9,
        "driver.write driver.die driver.plan driver.write",
    ),
    "replay.keyed_by_run": Broken(
        replay.KeyedByRun,
        "no batch is in the sink twice",
        9,
        "driver.write driver.die driver.plan driver.write",
    ),
    "replay.unfenced": Broken(
        replay.Unfenced,
        "no batch is in the sink twice",
        8,
        "driver.look driver.look driver.write driver.write",
    ),
    "replay.taking_replays_for_done": Broken(
        replay.TakingReplaysForDone,
        "what the query has committed is in the sink",
        8,
        "driver.plan driver.die driver.plan driver.note",
    ),
    "concurrent.hasty_reset": Broken(
        concurrent.HastyReset,
        "no subtask is reset while an attempt of it lives",
        5,
        "starter.arrive starter.arrive starter.die delay.elapse",
    ),
    "concurrent.missing_reset": Broken(
        concurrent.MissingReset,
        "the subtask is reset once, when its last attempt is gone",
        6,
        "starter.arrive starter.die delay.elapse starter.initialize",
    ),
    "concurrent.two_finishers": Broken(
        concurrent.TwoFinishers,
        "an attempt that has reached the end is the only one of its subtask",
        6,
        "starter.arrive starter.arrive starter.end",
    ),
    "concurrent.crossing_events": Broken(
        concurrent.CrossingEvents,
        "an event goes to the attempt of its gateway",
        6,
        "starter.arrive starter.initialize sends.send_late",
    ),
    "concurrent.repeated_numbers": Broken(
        concurrent.RepeatedNumbers,
        "each attempt of a subtask has its own number",
        8,
        "starter.initialize starter.die delay.elapse starter.initialize",
    ),
    "concurrent.overlooked_process": Broken(
        concurrent.OverlookedProcess,
        "no process waits for an attempt while an attempt waits for a process",
        8,
        "starter.end starter.arrive starter.die delay.elapse",
    ),
    "concurrent.forgotten_sends": Broken(
        concurrent.ForgottenSends,
        "no send waits for an attempt that is gone",
        5,
        "starter.initialize sends.send starter.die",
    ),
}
