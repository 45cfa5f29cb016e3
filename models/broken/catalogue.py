"""The list of all variants that must fail, with what a check says of each."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.fsm.closed import ClosedSystem
from epochgate.models import valve, waiting_valve
from epochgate.models.broken import acknowledged, commit, replay
from epochgate.models.flink import hazards

I1 = "I1: what was sent before the coordinator's snapshot is in the subtask's"
I2 = "I2: what was sent after the coordinator's snapshot is not in the subtask's"


@dataclass(frozen=True)
class Broken:
    """A system that fails: `says` is part of the message, `steps` the length of a shortest
    counterexample.
    """

    system: type[ClosedSystem]
    says: str
    steps: int


BROKEN: dict[str, Broken] = {
    "valve.none": Broken(valve.NoValve, I2, 7),
    "valve.other_receiver": Broken(waiting_valve.OtherReceiver, I2, 7),
    "valve.lost_event": Broken(waiting_valve.LostEvent, I1, 7),
    "valve.queued_failure": Broken(waiting_valve.QueuedFailure, I1, 7),
    "acknowledged.not_waiting": Broken(acknowledged.NotWaiting, I1, 8),
    "acknowledged.reopened_at_injection": Broken(acknowledged.ReopenedAtInjection, I2, 9),
    "acknowledged.past_the_marker": Broken(
        acknowledged.PastTheMarker, "what was acknowledged before the operator's snapshot", 9
    ),
    "flink.d1": Broken(hazards.EarlyReopening, I2, 13),
    "flink.d2": Broken(hazards.SkippedReopening, "a gateway that nobody will reopen is open", 14),
    "flink.d3": Broken(hazards.MixedClose, "which ends the process", 10),
    "flink.d4": Broken(hazards.ForgottenSends, I1, 17),
    "flink.d4_with_a_loss": Broken(hazards.ForgottenLoss, I1, 18),
    "flink.d5": Broken(hazards.AbandonedFuture, "a gateway that was replaced holds nothing", 12),
    "flink.d6": Broken(hazards.UnreachedReopening, "deadlock", 18),
    "flink.d7": Broken(
        hazards.IntolerantCheckpoint, "no checkpoint fails while nothing has failed", 9
    ),
    "flink.d8": Broken(
        hazards.UntoldCoordinator, "the coordinator is told how a checkpoint ends", 3
    ),
    "commit.missing_summaries": Broken(commit.MissingSummaries, "what is completed is visible", 8),
    "commit.late": Broken(commit.LateCommit, "what is completed is visible", 7),
    "commit.partial": Broken(commit.PartialCommit, "a checkpoint becomes visible as a whole", 8),
    "commit.early": Broken(
        commit.EarlyCommit, "nothing is visible before its checkpoint is completed", 4
    ),
    "commit.second_summary": Broken(
        commit.SecondSummary, "a committer sends one summary of a checkpoint", 15
    ),
    "replay.appending": Broken(replay.Appending, "no batch is in the sink twice", 9),
    "replay.keyed_by_run": Broken(replay.KeyedByRun, "no batch is in the sink twice", 9),
    "replay.unfenced": Broken(replay.Unfenced, "no batch is in the sink twice", 8),
    "replay.taking_replays_for_done": Broken(
        replay.TakingReplaysForDone, "what the query has committed is in the sink", 8
    ),
}
