"""The whole job with nothing outside: the very machines that run, among surroundings that may fail.

Every interleaving of sends, snapshots, barriers, confirmations, acknowledgements, timeouts, failures of
processes, coordinators and the store, evictions and restarts is explored, within bounds: `subtasks`,
`coordinators`, `checkpoints`, `events` for each coordinator and subtask, `F` failures, and with `repeats` acknowledgements that arrive twice.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, sometimes
from epochgate.models.job import Job
from epochgate.models.surroundings.driver import (
    BackOff,
    Budget,
    Launch,
    Requester,
    Restarter,
    Sink,
    Store,
)
from epochgate.models.surroundings.process import Operators, Process, ProcessTask, Wire
from epochgate.models.surroundings.user import Keeper, Sender, User


class ClosedJob(Job, ClosedSystem):
    """The job and its surroundings."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 2,
        "coordinators": 1,
        "overlap": 1,
        "tolerable_failures": 1,
        "commit_retries": 0,
        "checkpoints": 2,
        "events": 1,
        "F": 1,
        "repeats": 1,
        **dict.fromkeys(
            (
                "attempts",
                "identities",
                "restarts",
                "failures",
                "event",
                "in_flight",
                "posted",
                "late_length",
                "down",
                "down_length",
                "up",
                "up_length",
            ),
            1,
        ),
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "attempts": "F + checkpoints",
        "identities": "F + F + 1 + checkpoints",
        "restarts": "F + checkpoints",
        "failures": "checkpoints",
        "event": "events",
        "in_flight": "subtasks * events",
        "posted": "events * 2",
        "down": "checkpoints + coordinators * events * events",
        "down_length": "coordinators * events + 2",
        "up": "2 + checkpoints + coordinators * events",
        "up_length": "coordinators * events + checkpoints + 3",
        "late_length": "coordinators * events + checkpoints + 3 + F",
    }
    STEPS = (
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

    @sometimes("a checkpoint completes after a subtask has failed and come back")
    def completes_after_regional_failover(self) -> bool:
        return self.checkpoint.completed > 0 and self.attempt[0].number > 0

    @sometimes("a checkpoint completes after everything was restarted")
    def completes_after_global_failover(self) -> bool:
        return self.checkpoint.completed > 0 and self.lifecycle.restarts > 0

    @sometimes("an event is held by a closed gateway")
    def holds_an_event(self) -> bool:
        return self.gateway[0, 0].held[0].size() > 0
