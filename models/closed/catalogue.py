"""The closed systems that check what runs, by the names that the command line uses.

They are data until one is asked for: a system is imported, and its machines declared, by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from epochgate.fsm.closed import ClosedSystem


class Catalogue(Mapping[str, type[ClosedSystem]]):
    """Closed systems that are imported when they are first looked up.

    `listed`: name -> the class, as module:Class, and the first line of its docstring.
    """

    def __init__(self, listed: Mapping[str, tuple[str, str]]) -> None:
        self._listed = listed

    def __getitem__(self, name: str) -> type[ClosedSystem]:
        module, _, found = self._listed[name][0].partition(":")
        system: type[ClosedSystem] = getattr(import_module(module), found)
        return system

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def summaries(self) -> Mapping[str, str]:
        """The summary of each system, in a line; none is imported."""
        return {name: summary for name, (_, summary) in self._listed.items()}


SYSTEMS = Catalogue(
    {
        "commit": (
            "epochgate.models.closed.commits:CommitJob",
            "The global committer: a completed checkpoint takes effect exactly once.",
        ),
        "hanging": (
            "epochgate.models.closed.commits:HangingWork",
            "The global committer beside work that never ends: checkpoints and commits go on.",
        ),
        "in_doubt": (
            "epochgate.models.closed.commits:CommitsInDoubt",
            "The global committer beside a person who gives up a commit while no driver runs.",
        ),
        "committing": (
            "epochgate.models.closed.committing:CommittingInSteps",
            "The job whose tasks commit, with operators between, and a driver that dies.",
        ),
        "recommitting": (
            "epochgate.models.closed.committing:CommittingAgain",
            "The job with one subtask, two failures, and commits that are tried again.",
        ),
        "batch": (
            "epochgate.models.closed.batch:BatchJob",
            "Snapshots without checkpoints: no send is lost between the snapshot and its answer.",
        ),
        "compacting": (
            "epochgate.models.closed.compacting:CompactingJob",
            "A compaction beside the job and a reader: each row is visible once, in one tree.",
        ),
        "placing": (
            "epochgate.models.closed.placing:PlacedTask",
            "A task among hosts that may be cut off: it ends up where it can reach the driver.",
        ),
        "residing": (
            "epochgate.models.closed.residing:ResidentTask",
            "A subtask whose attempts share processes: one speaks, and none inherits leftovers.",
        ),
        "pipelining": (
            "epochgate.models.closed.pipelining:PipelineTasks",
            "The tasks of a pipeline between source and sink: no record is lost or doubled.",
        ),
        "setting": (
            "epochgate.models.closed.setting:ChangedSetting",
            "A setting whose job fails: what was acknowledged survives.",
        ),
        "filing": (
            "epochgate.models.closed.filing:FiledSource",
            "A file of several splits in a job that fails is not removed too early.",
        ),
        "flooding": (
            "epochgate.models.closed.flooding:FloodedTask",
            "One task and its coordinator, each faster than the other: what waits is bounded.",
        ),
        "streaming": (
            "epochgate.models.closed.streaming:StreamingQuery",
            "A streaming query whose batches take effect with their numbers: each of them once.",
        ),
        "recording": (
            "epochgate.models.closed.streaming:RecordedAfterwards",
            "A function whose batches are recorded afterwards: each takes effect at least once.",
        ),
        "steering": (
            "epochgate.models.closed.steering:SteeredQuery",
            "Two drivers of one query, its logs, the store of a control, and its user.",
        ),
        "choosing": (
            "epochgate.models.closed.choosing:ChosenQuery",
            "Two drivers of one query with a coordinator each, its logs, the store, and its user.",
        ),
        "planning": (
            "epochgate.models.closed.planning:PlannedQuery",
            "Two drivers of one query, its logs, and the plans of its source.",
        ),
        "updating": (
            "epochgate.models.closed.updating:UpdatedControl",
            "Two processes that update one control: each update that is done counts once.",
        ),
        "owning": (
            "epochgate.models.closed.owning:OwnedTable",
            "Two drivers and another writer: a table is made once, and is the last driver's.",
        ),
        "recreation": (
            "epochgate.models.closed.recreation:RecreatedJob",
            "`RecreateOnReset`: each call reaches the coordinator that it was meant for.",
        ),
        "sources": (
            "epochgate.models.closed.sources:Sources",
            "The splits of a source: each split is read by exactly one surviving history.",
        ),
        "readers": (
            "epochgate.models.closed.readers:ConcurrentSources",
            "The splits of a subtask with concurrent attempts: each attempt is sent all of them.",
        ),
        "discovering": (
            "epochgate.models.closed.discovering:FoundFiles",
            "A source with a queue of hints: each file is found, and taken once.",
        ),
        "concurrent": (
            "epochgate.models.closed.concurrent:ConcurrentAttempts",
            "The job with concurrent attempts of a subtask: the first that ends gives the result.",
        ),
        "epochgate": (
            "epochgate.models.closed.job:ClosedJob",
            "The job: sends, checkpoints, commits, failures and late messages, in every order.",
        ),
        "endings": (
            "epochgate.models.closed.endings:EndingJob",
            "The job and its ways to end: the end of input, a stop, a cancellation, a fault.",
        ),
        "talking": (
            "epochgate.models.closed.talking:TalkingJob",
            "The job and its messages: operators' events, receipts, failure reports, slow starts.",
        ),
        "asked": (
            "epochgate.models.closed.asked:AskedJob",
            "The job and its clients: requests to coordinators, snapshots without checkpoints.",
        ),
        "resuming": (
            "epochgate.models.closed.resuming:ResumingJob",
            "The job after a restart of its driver: what was announced agrees with the store.",
        ),
        "pressed": (
            "epochgate.models.closed.pressed:PressedJob",
            "The job with windows at its gateways: what is refused is sent later.",
        ),
        "live": (
            "epochgate.models.closed.live:LiveJob",
            "The job for ever: with few failures, checkpoints complete and gateways open again.",
        ),
    }
)
"""In the order in which `epochgate check` explores them."""

CONSTANTS: dict[str, str] = {
    "subtasks": "subtasks of the job",
    "vertices": "subtasks of the job",
    "concurrent": "attempts of a subtask that may run at the same time",
    "coordinators": "coordinators of the job",
    "tolerable_failures": "checkpoints that may fail one after the other",
    "task_committers": "1: each task has a committer",
    "operators_before": "1: there are operators in front of the tasks' committers",
    "operators_behind": "1: there are operators in front of the global committer",
    "commit_retries": "how often a commit, and work after one, is tried again",
    "hangs": "1: the work after a commit may hang for ever",
    "given_up": "commits that a person gives up while no driver runs",
    "after_commit": "1: there is work after each commit",
    "periodic": "1: checkpoints are also taken by the interval",
    "wanted": "checkpoints that are taken",
    "events": "events from each coordinator to each subtask",
    "items": "committables of each subtask",
    "large": "the event that is larger than the bound",
    "bytes_large": "bytes of that event",
    "network": "messages of a task that the network holds",
    "unconfirmed_bytes_max": "bytes of events to one attempt that may be unconfirmed",
    "waiting_bytes_max": "bytes from one task that may wait for the driver",
    "waiting_messages_max": "messages from one task that may wait for the driver",
    "said": "events from each operator to its coordinator",
    "asks": "requests of clients to each coordinator",
    "attempts": "attempts of a subtask over all, or of a process",
    "starts": "processes of each subtask over all",
    "places": "attempts of a subtask that may be there at the same time",
    "phases": "how far the job goes: 4 is to its end",
    "overtaking": "1: processes connect in any order",
    "repeats": "1: an acknowledgement may arrive twice",
    "timeouts_cost": "1: a checkpoint that expires counts as a failure",
    "renumbered": "1: used numbers are given again, so that the job goes on for ever",
    "slow_starts": "1: the start of a coordinator may take long, or fail",
    "broken_restores": "restores of each coordinator that raise",
    "slow_commits": "1: a commit may take long",
    "up_length": "messages from a reader that may be under way",
    "F": "failures that may happen",
    "K": "checkpoints that are taken, or committed",
    "E": "events or calls",
    "R": "requests, resets, or runs",
    "S": "splits",
    "files": "files of a source",
    "losses": "hints that are lost",
    "doubles": "hints that come twice, early, or name other files",
    "slowest": "failures in a row after which a queue is left alone no longer",
    "records": "batches of records that each source has",
    "G": "resets of the whole source",
    "compaction_retries": "how often a target that has changed is looked at again",
    "drivers": "drivers of a query, at the same time",
    "batches": "batches of a query",
    "versions": "updates of a control",
    "tasks": "tasks of a batch, or of Spark's for a subtask",
    "retained": "the newest decisions, plans, or versions, that count",
    "entry_retries": "how often a decision or a plan without an answer, or an entry into a table, is tried again",
    "updaters": "processes that update a control",
    "updates": "updates of a control",
    "update_retries": "how often an update without an answer is tried again",
    "kept": "the newest checkpoints, which are not merged",
    "W": "checkpoints that the job may withdraw",
    "P": "assignments that no reader has asked for",
    "hosts": "hosts on which a task may run",
    "locations": "checkpoint locations: the query's own, and one that it is copied or moved to",
    "queries": "ids of the query: another one where its checkpoint location is emptied",
    "acts": "1: people copy, move, empty or set back a checkpoint location, or drop a table",
    "carried": "1: a batch takes effect with its number; 0: the number is recorded afterwards",
    "accepts": "what the options accept: 2 an emptied location, 3 a late start",
    "objections": "1: the check of a control refuses values that two updates make together",
    "batch_retries": "how often a commit of a batch looks at its target again",
}
"""What each constant of these systems means."""
