"""The zoo: bugs that others had in public, and the same decision planted in epochgate.

Which finder sees which bug is measured (`tests.zoo.finding`) and stands in docs/zoo.md, which
`python -m tests.zoo.page --write` makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.commits import CommitJob
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.studies.broken import sources
from epochgate.runtime.testing.worlds.running import Body
from tests.mutation.checking import Bounds, bounds
from tests.worlds.planted import replaced_and_silent
from tests.zoo import bodies, broken_job as job, jobs, shells
from tests.zoo.plants import Plant, Shell


@dataclass(frozen=True)
class Bug:
    """One bug: who had it, what it did there, what is planted here, and who looks for it."""

    public: str
    about: str
    plant: Plant | Shell | None = None
    where: Bounds | None = None
    """The closed system that the checker searches with the plant in it."""
    design: str = ""
    """A variant of `models/studies` with the bug, for the checker to search as well."""
    body: Body = bodies.numbers
    """The test that the fuzzer runs."""
    short: Body | None = None
    """The test that the systematic mode runs; one of a single checkpoint if `body` has more, and
    else the same.
    """
    bound: tuple[int, int] = (1, 0)
    """Faults and delays of the systematic mode."""
    faults: tuple[str, ...] = ("die", "fail-everything", "fail-snapshot", "lose-answer")
    """The faults of the systematic mode."""
    note: str = ""
    """Why a finder does not see it."""


ONE = bounds(ClosedJob, subtasks=1)
LIVE = bounds(LiveJob, subtasks=1)
TWO = bounds(ClosedJob, subtasks=1, coordinators=2, wanted=1)
ASKED = bounds(AskedJob)
RESUMING = bounds(ResumingJob)
TALKING = bounds(TalkingJob, wanted=1)
ENDING = bounds(EndingJob, slow_commits=0)
SLOW = bounds(EndingJob)
COMMITS = bounds(CommitJob, subtasks=1, wanted=2)
SPLITS = bounds(Sources, subtasks=1, S=2, K=2, P=1)
ENDLESS = bounds(Sources, subtasks=1, S=2, K=0)


def at(machine: str, broken: type) -> Plant:
    return Plant(machine, broken)


BUGS: dict[str, Bug] = {
    # events and gateways
    "never held": Bug(
        "FLINK-16986",
        "an event that is sent after the coordinator's snapshot overtakes a slow peer's, and is in "
        "the subtask's part",
        at("gateway", job.NeverHeld),
        TWO,
        "valve.none",
    ),
    "reopened at injection": Bug(
        "FLINK-28606",
        "the valve opens when the sources have their barriers; an event reaches another receiver "
        "before its barrier does",
        at("checkpoint", job.ReopenedAtInjection),
        ONE,
        "acknowledged.reopened_at_injection",
        note="events and barriers share a connection that keeps their order: an event behind the "
        "coordinator's snapshot is behind the barrier as well",
    ),
    "never awaited": Bug(
        "FLINK-21996",
        "a split is sent, the snapshot is taken, the message is lost, and the checkpoint completes",
        at("gateway", job.NeverAwaited),
        TALKING,
        "valve.lost_event",
        note="an event that is lost fails its attempt in the same step, which aborts the "
        "checkpoint; and the barrier follows the event on one connection",
    ),
    "loss is confirmation": Bug(
        "FLINK-23233",
        "a send has failed and its handling waits; the checkpoint completes before the failover",
        at("gateway", job.LossIsConfirmation),
        ONE,
        faults=("die", "usurp"),
    ),
    "any attempt": Bug(
        "FLINK-18071",
        "a stalled coordinator's event reaches the next attempt before it hears that the last has "
        "failed",
        at("gateway", job.AnyAttempt),
        ONE,
        "concurrent.crossing_events",
        body=jobs.stalled,
    ),
    # failures
    "told at restart": Bug(
        "FLINK-17672",
        "a coordinator learns of a failure when the task is restarted",
        at("attempt", job.ToldAtRestart),
        ONE,
    ),
    "untold of cancels": Bug(
        "FLINK-17702",
        "a coordinator is not told of the peers that are canceled with a failed task",
        at("attempt", job.UntoldOfCancels),
        ONE,
    ),
    "leaky fence": Bug(
        "FLINK-18039",
        "the threads of an enumerator that was replaced go on, and race its successor",
        shells.leaky_fence,
        design="hudi.two_coordinators",
        body=replaced_and_silent,
    ),
    "every failure counts": Bug(
        "FLINK-19535",
        "a coordinator that fails the job repeatedly makes it restart in a cascade",
        at("holder", job.EveryFailureCounts),
        ONE,
        body=jobs.failing,
    ),
    "restarted twice": Bug(
        "FLINK-31041",
        "two failures of everything in quick succession lead to two resets",
        at("lifecycle", job.RestartedTwice),
        ASKED,
        body=jobs.failing,
        note="all attempts go down once, and everything is restored when the last has left, "
        "however often that was asked for",
    ),
    "not reset before the first": Bug(
        "FLINK-20222",
        "a failure before the first checkpoint does not reset the coordinator",
        at("lifecycle", job.NotResetBeforeTheFirst),
        ONE,
        body=jobs.failing,
    ),
    "restarted while going down": Bug(
        "FLINK-22345",
        "failures overlap, and a restore targets attempts that are dead",
        at("attempt", job.RestartedWhileGoingDown),
        ONE,
        body=jobs.hasty,
        faults=("die", "usurp"),
    ),
    "swallowed error": Bug(
        "FLINK-24303, FLINK-23843",
        "what an enumerator raises vanishes, and the job goes on with half of its state",
        shells.swallowed_error,
        body=jobs.raising,
    ),
    "failure forgotten": Bug(
        "Paimon 8401",
        "a future stays incomplete when a snapshot fails, and the checkpoint waits for its timeout",
        at("attempt", job.FailureForgotten),
        LIVE,
    ),
    "zombie": Bug(
        "Iceberg 17551, 17637, 16016",
        "a task that was replaced is believed: it rewinds what its successor has done",
        at("attempt", job.SpokenForByZombies),
        ONE,
        "commit.unfenced",
        faults=("lose-connection", "usurp"),
    ),
    # checkpoints
    "nothing after an abort": Bug(
        "FLINK-18137",
        "a checkpoint is discarded while it is triggered, and the queue of triggers is stuck",
        at("checkpoint", job.NothingAfterAnAbort),
        LIVE,
        faults=("die",),
    ),
    "nothing after a failure": Bug(
        "FLINK-26394",
        "a checkpoint expires while the coordinator is asked, and no other is triggered any more",
        at("checkpoint", job.NothingAfterAFailure),
        LIVE,
    ),
    "stale mark": Bug(
        "FLINK-27148",
        "an abort comes before the trigger, the gateway stays marked, and the next mark throws",
        at("checkpoint", job.StaleMark),
        ONE,
    ),
    "overlapping checkpoints": Bug(
        "FLINK-28941",
        "a savepoint overlaps a checkpoint, and finds the gateways marked",
        at("request", job.OverlappingCheckpoints),
        ENDING,
        bound=(0, 1),
        faults=(),
    ),
    "first coordinator is enough": Bug(
        "FLINK-18641",
        "tasks acknowledge before all coordinators have their parts",
        at("checkpoint", job.FirstCoordinatorIsEnough),
        TWO,
        body=jobs.pairs,
    ),
    "abort not forwarded": Bug(
        "FLINK-32655",
        "a wrapper does not pass on to its coordinator that a checkpoint was aborted",
        at("holder", job.AbortNotForwarded),
        ONE,
    ),
    "unknown is failed": Bug(
        "SeaTunnel 11569",
        "a transaction of which nothing is found is taken for one that failed",
        at("checkpoint", job.UnknownIsFailed),
        RESUMING,
        "resuming.announced_abort",
    ),
    "ids go back": Bug(
        "Iceberg 17340",
        "a watermark is set where the greater one should win, and goes back: files are in the "
        "table twice",
        at("checkpoint", job.IdsGoBack),
        RESUMING,
        "iceberg.last_offset",
        short=bodies.numbers,
        faults=("torn-write", "crash"),
    ),
    "empty is not stored": Bug(
        "RisingWave 26492",
        "an empty pre-commit is acknowledged and not stored; the sink waits for ever",
        shells.empty_not_stored,
        design="risingwave.empty_pre_commit",
        faults=("crash",),
    ),
    # splits
    "returned at failure": Bug(
        "FLINK-20290, FLINK-20396",
        "splits return when a reader fails, and the checkpoint that is restored holds them as well",
        at("assignment", sources.HastyAssignment),
        SPLITS,
        body=jobs.reads,
        faults=("die",),
    ),
    "successor not told": Bug(
        "FLINK-35522",
        "an attempt that comes later is never told that there are no more splits",
        at("assignment", sources.SilentAssignment),
        ENDLESS,
        body=jobs.ends,
        faults=("die",),
    ),
    # the end, and commits
    "end remembered": Bug(
        "FLINK-25920, FLINK-37605",
        "the end of the input is reported again after a restart, and collides with the first "
        "report",
        at("attempt", job.EndRemembered),
        ENDING,
        body=jobs.ends,
        faults=("die",),
    ),
    "no last checkpoint": Bug(
        "FLINK-38614, FLINK-38370",
        "the end of the data goes before the last committables, which are lost",
        at("lifecycle", job.NoLastCheckpoint),
        ENDING,
        "sinkv2.early_end",
        body=jobs.bounded,
    ),
    "finished before the commit": Bug(
        "FLINK-36455",
        "a commit is tried again after the notice has returned, and the job ends meanwhile",
        at("lifecycle", job.FinishedBeforeTheCommit),
        SLOW,
        "commit.finished_too_early",
        body=jobs.bounded,
        faults=("put-off",),
    ),
    "answer covers all": Bug(
        "FLINK-24530, FLINK-36379",
        "the global committer is told of a checkpoint before its committables are there",
        at("committer", job.AnswerCoversAll),
        SLOW,
        "commit.removed_too_much",
        faults=("put-off", "crash"),
    ),
    "one committable": Bug(
        "FLINK-29627, Iceberg 14090",
        "two committables have one key, and the second is dropped",
        shells.one_committable,
    ),
    "ledger in memory": Bug(
        "Paimon 5648",
        "a failover precedes the notice of a checkpoint, and what it would have committed is "
        "forgotten",
        at("committer", job.LedgerInMemory),
        SLOW,
        "commit.unstored_ledger",
        body=jobs.outage,
        faults=("crash",),
    ),
    "not committed at the start": Bug(
        "Arroyo 218, Hudi 19237",
        "what was completed and not committed when the job died stays so when it comes back",
        at("lifecycle", job.NotCommittedAtStart),
        RESUMING,
        faults=("crash",),
    ),
    "ledger not stored": Bug(
        "Hudi 13543",
        "the buffer of committables is not in the coordinator's state",
        shells.ledger_not_stored,
        design="commit.forgotten_ledger",
        body=jobs.outage,
        faults=("crash",),
    ),
    "cleaned at a failure": Bug(
        "Hudi 10312",
        "a task fails, and what it has handed over is removed from the coordinator's buffer",
        shells.cleaned_at_failure,
        faults=("die",),
    ),
    "newest only": Bug(
        "Delta 467",
        "a notice comes late, and its checkpoint is skipped because a newer one is committed",
        at("committer", job.NewestOnly),
        COMMITS,
        body=jobs.outage,
    ),
    # the user's sink
    "key of a run": Bug(
        "Iceberg 16008",
        "the key by which a sink knows its commits contains the job's id, which a restore changes",
        shells.key_of_a_run,
        design="commit.key_of_a_run",
        faults=("lose-commit-answer", "crash"),
    ),
    "appending": Bug(
        "Redpanda 4591, Beam 34264",
        "the answer to an append is lost, and the append is repeated",
        shells.appending_sink,
        design="commit.appending",
        faults=("lose-commit-answer", "crash"),
    ),
    # of designs alone
    "two messages": Bug(
        "Paimon 8671, 9236",
        "the end of the input and the notice of a checkpoint travel in messages without an order",
        design="paimon.two_messages",
    ),
    "silently back": Bug(
        "Iceberg 10892",
        "a job goes back to an older savepoint, and the sink skips its commits without a word",
        design="commit.silently_back",
    ),
    "two coordinators": Bug(
        "Hudi 19357",
        "the close of a coordinator takes ten minutes, and two of them commit",
        design="commit.unfenced",
    ),
}
