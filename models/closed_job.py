"""The whole job with nothing outside: the very machines that run, among surroundings that may fail.

Every interleaving of sends, snapshots, barriers, confirmations, acknowledgements, timeouts,
failures of processes, coordinators and the store, evictions and restarts is explored, within
bounds: `subtasks`, `coordinators`, `wanted` checkpoints, `events` for each coordinator and subtask,
`F` failures, and with `repeats` acknowledgements that arrive twice.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes
from epochgate.models.job import Job
from epochgate.models.lifecycle import FINISHED
from epochgate.models.surroundings.driver import (
    BackOff,
    Budget,
    Launch,
    Person,
    Requester,
    Restarter,
    Sink,
    Store,
)
from epochgate.models.surroundings.process import Operators, Process, ProcessTask, Wire
from epochgate.models.surroundings.user import Keeper, Sender, User

NO_OVERLAP = "a job has one checkpoint under way at a time"
NOT_SAID = "processes of this system do not say it; death and silence stand for every failure"
ENDINGS = "endings are explored by the system `endings`"
COMMITS = "commits that fail are explored by the system `commit`"
ONE_QUEUE = "all calls come through one queue, so nothing overtakes; the row guards against others"

UNTAKEN: dict[str, str] = {
    **dict.fromkeys(
        ("gateway.mark", "gateway.close", "gateway.reopen", "gateway.renew"), NO_OVERLAP
    ),
    **dict.fromkeys(("snapshot.cancel", "checkpoint.coordinator_ready"), NO_OVERLAP),
    **dict.fromkeys(
        (
            "attempt.decline",
            "attempt.fail",
            "attempt.fault",
            "attempt.operator_event",
            "checkpoint.decline",
            "gateway.lose",
            "holder.event",
            "task.aborted",
            "task.complete",
            "task.event",
        ),
        NOT_SAID,
    ),
    **dict.fromkeys(
        ("committer.committed", "committer.due", "committer.refused", "committer.retry_later"),
        COMMITS,
    ),
    **dict.fromkeys(
        (
            "attempt.connect",
            "attempt.end_of_input",
            "attempt.finish",
            "attempt.restart",
            "checkpoint.coordinator_failed",
            "checkpoint.expire",
            "gateway.confirm",
            "gateway.send",
            "holder.fail_job",
            "lifecycle.backed_off",
            "request.submit_periodic",
            "snapshot.fail",
            "snapshot.lose",
            "snapshot.succeed",
            "task.finish",
        ),
        ONE_QUEUE,
    ),
    "checkpoint.restore": "the driver's own restart is explored by the fuzzer",
    "checkpoint.trigger_next": "there is a coordinator",
}


class ClosedJob(Job, ClosedSystem):
    """The job and its surroundings."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "coordinators": 1,
        "overlap": 1,
        "tolerable_failures": 1,
        "commit_retries": 0,
        "wanted": 2,
        "events": 1,
        "F": 1,
        "repeats": 1,
        "timeouts_cost": 0,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "checkpoints": "wanted",
        "attempts": "F + checkpoints",
        "identities": "F + F + 1 + checkpoints",
        "restarts": "F + checkpoints",
        "failures": "checkpoints",
        "event": "events",
        "in_flight": "subtasks * events",
        "posted": "events * 2",
        "down": "checkpoints + 1 + coordinators * events * events",
        "down_length": "coordinators * events + 3",
        "up": "4 + checkpoints + checkpoints + coordinators * events",
        "up_length": "coordinators * events + checkpoints + 4",
        "late_length": "coordinators * events + checkpoints + 4 + F",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("launch", "launch"),
        Step("sender", "send"),
        Step("process", "tell"),
        Step("process", "hear"),
        Step("process", "hear_late"),
        Step("process", "hear_again", is_fair=False),
        Step("requester", "want"),
        Step("user", "take_snapshot"),
        Step("store", "finish_save"),
        Step("process", "arrive"),
        Step("backoff", "elapse"),
        Step("restarter", "back_off"),
        Step("process", "die", is_fair=False),
        Step("process", "usurp", is_fair=False),
        Step("user", "fail_snapshot", is_fair=False),
        Step("user", "fail_everything", is_fair=False),
        Step("store", "fail_save", is_fair=False),
        Step("store", "expire", is_fair=False),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        **UNTAKEN,
        **dict.fromkeys(
            (
                "attempt.cancel",
                "attempt.lost",
                "holder.close",
                "lifecycle.attempt_failed",
                "lifecycle.cancel",
                "lifecycle.checkpoint_completed",
                "lifecycle.checkpoint_over",
                "lifecycle.give_up",
                "lifecycle.reconsider",
                "lifecycle.start",
                "lifecycle.stop",
                "person.cancel",
                "person.give_up",
                "person.stop",
                "process.end_input",
                "request.settle",
                "request.submit",
            ),
            ENDINGS,
        ),
    }
    WIRING: ClassVar[dict[str, str]] = {
        "attempt.task": "wire",
        "attempt.scheduler": "process",
        "task.operators": "operators",
        "gateway.sender": "sender",
        "holder.user": "user",
        "snapshot.results": "keeper",
        "checkpoint.driver": "store",
        "request.requester": "requester",
        "committer.sink": "sink",
        "lifecycle.driver": "restarter",
    }

    checkpoints: int
    events: int
    identities: int
    F: int
    repeats: int
    timeouts_cost: int
    wanted: int

    task: list[ProcessTask] = machines(ProcessTask)
    process: list[Process] = machines(Process)
    wire: list[Wire] = machines(Wire)
    operators: list[Operators] = machines(Operators)
    sender: dict[tuple[int, int], Sender] = machines(Sender)
    user: list[User] = machines(User)
    keeper: dict[tuple[int, int], Keeper] = machines(Keeper)
    store: Store = machines(Store)
    requester: Requester = machines(Requester)
    sink: Sink = machines(Sink)
    restarter: Restarter = machines(Restarter)
    backoff: list[BackOff] = machines(BackOff)
    budget: Budget = machines(Budget)
    launch: Launch = machines(Launch)
    person: Person = machines(Person)

    @always("what is committed belongs to a completed checkpoint")
    def commits_completed_only(self) -> bool:
        return self.committer.wanted <= self.checkpoint.completed

    @always("a job that has ended has no process left")
    def leaves_nothing_behind(self) -> bool:
        return self.lifecycle.state != FINISHED or self.lifecycle.connected == 0

    @sometimes("a checkpoint completes after a subtask has failed and come back")
    def completes_after_regional_failover(self) -> bool:
        return self.checkpoint.completed > 0 and any(
            self.attempt[s].number > 0 for s in range(self.subtasks)
        )

    @sometimes("a checkpoint completes after everything was restarted")
    def completes_after_global_failover(self) -> bool:
        return self.checkpoint.completed > 0 and self.lifecycle.restarts > 0

    @sometimes("an event is held by a closed gateway")
    def holds_an_event(self) -> bool:
        return any(
            self.gateway[c, s].held[0].size() > 0
            for c in range(self.coordinators)
            for s in range(self.subtasks)
        )


class EndingJob(ClosedJob):
    """The closed job with its endings: the end of input, a stop, a cancellation, a fault.

    Ending takes checkpoints until one completes, so a timeout counts as a failure here, and each
    failure allows for one checkpoint more.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "wanted": 1,
        "timeouts_cost": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        **ClosedJob.DERIVED,
        "checkpoints": "wanted + F + 2",
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **UNTAKEN,
        "checkpoint.acknowledge": "there is one subtask",
        "lifecycle.reconsider": COMMITS,
        "snapshot.confirm": "there is one subtask",
    }
    STEPS = (
        *ClosedJob.STEPS,
        Step("process", "end_input"),
        Step("person", "stop", is_fair=False),
        Step("person", "cancel", is_fair=False),
        Step("person", "give_up", is_fair=False),
    )

    @sometimes("the job finishes")
    def finishes(self) -> bool:
        return self.lifecycle.state == FINISHED
