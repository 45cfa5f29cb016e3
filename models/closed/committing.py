"""A job whose commits take several steps: committers in the tasks, and operators of the user's between.

The machines of `CommittingJob` with everything that the closed job has around it but coordinators,
and a driver that dies and is started again from what is stored::

    task 0, 1    part 1 -> commit 1 -> operator          each once in the surviving history
    driver       operators -> | tasks | -> collector -> operators -> global commit 1
    store        2: where 1 is, with what each task has still to commit of it

Claims are made where things happen too: see `surroundings.committing` and `committing_driver`.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import Step, always, eventually, sometimes
from epochgate.models.attempt import Attempt
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.surroundings.committing import (
    CommittingOperators,
    CommittingProcess,
    CommittingWire,
    Parts,
    PartsOfAll,
)
from epochgate.models.closed.surroundings.committing_driver import (
    Before,
    Behind,
    Driver,
    GlobalSink,
    Hearer,
    Interval,
    StoreOfSteps,
    User,
    Way,
)
from epochgate.models.closed.surroundings.renewed import (
    Attempts,
    CheckpointUnderWay,
    Collector,
    Committer,
    Lifecycle,
    OperatorsBefore,
    OperatorsBehind,
    Requests,
    TaskCommitter,
)
from epochgate.models.committing_job import CommittingJob
from epochgate.models.lifecycle import FINISHED


class CommittingInSteps(EndingJob):
    """The job whose tasks commit, with operators between, and a driver that dies."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks", "coordinator": "places"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        **EndingJob.CONSTANTS,
        **{name: CommittingJob.CONSTANTS[name] for name in ("task_committers",)},
        "subtasks": 2,
        "coordinators": 0,
        "places": 1,
        "commit_retries": 1,
        "after_commit": 0,
        "operators_before": 1,
        "operators_behind": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "tries": "commit_retries + 1",
        **EndingJob.DERIVED,
        "checkpoints": "wanted + F + 1",
        "numbers": "1",
        "down": "checkpoints + checkpoints * tries",
        "down_length": "checkpoints + 2",
        "up": "6 + 3 * checkpoints + 2 * checkpoints * tries",
        "up_length": "checkpoints + 5",
    }
    WIRING: ClassVar[dict[str, str]] = {
        **EndingJob.WIRING,
        "before.operators": "before_it",
        "behind.operators": "behind_it",
        "subtask_committer.task": "parts",
        "collector.parts": "parts_of_all",
    }
    STEPS = (
        Step("launch", "launch"),
        Step("launch", "end"),
        Step("process", "tell"),
        Step("process", "hear"),
        Step("process", "hear_again", is_fair=False, is_stuttering=True),
        Step("process", "hear_zombie", is_fair=False, is_stuttering=True),
        Step("parts", "late", is_fair=False, is_stuttering=True),
        Step("before_it", "late", is_fair=False, is_stuttering=True),
        Step("behind_it", "late", is_fair=False, is_stuttering=True),
        Step("requester", "want"),
        Step("store", "finish_save"),
        Step("process", "arrive"),
        Step("process", "come_back", is_fair=False),
        Step("process", "end_input"),
        Step("parts", "end_pause"),
        Step("before_it", "finish"),
        Step("behind_it", "finish"),
        Step("sink", "finish"),
        Step("backoff", "elapse"),
        Step("restarter", "back_off"),
        Step("launch", "die", is_fair=False),
        Step("launch", "die_unheard", is_fair=False),
        Step("process", "die_silently", is_fair=False),
        Step("process", "usurp", is_fair=False),
        Step("process", "put_off", is_fair=False),
        Step("parts", "expire", is_fair=False),
        Step("before_it", "put_off", is_fair=False),
        Step("before_it", "refuse", is_fair=False),
        Step("before_it", "hang", is_fair=False),
        Step("behind_it", "put_off", is_fair=False),
        Step("behind_it", "refuse", is_fair=False),
        Step("behind_it", "hang", is_fair=False),
        Step("sink", "put_off", is_fair=False),
        Step("sink", "hang", is_fair=False),
        Step("store", "fail_save", is_fair=False),
        Step("store", "expire", is_fair=False),
        Step("person", "stop", is_fair=False),
    )

    task_committers: int
    operators_before: int
    operators_behind: int
    tries: int

    lifecycle: Lifecycle = machines(Lifecycle)
    attempt: list[Attempt] = machines(Attempts)
    checkpoint: Checkpoint = machines(CheckpointUnderWay)
    request: Requests = machines(Requests)
    committer: Committer = machines(Committer)
    before: OperatorsBefore = machines(OperatorsBefore)
    subtask_committer: list[TaskCommitter] = machines(TaskCommitter)
    collector: Collector = machines(Collector)
    behind: OperatorsBehind = machines(OperatorsBehind)

    process: list[CommittingProcess] = machines(CommittingProcess)
    wire: list[CommittingWire] = machines(CommittingWire)
    operators: list[CommittingOperators] = machines(CommittingOperators)
    parts: list[Parts] = machines(Parts)
    parts_of_all: PartsOfAll = machines(PartsOfAll)
    way: Way = machines(Way)
    before_it: Before = machines(Before)
    behind_it: Behind = machines(Behind)
    sink: GlobalSink = machines(GlobalSink)
    store: StoreOfSteps = machines(StoreOfSteps)
    restarter: Hearer = machines(Hearer)
    requester: Interval = machines(Interval)
    person: User = machines(User)
    launch: Driver = machines(Driver)

    holds_an_event = None  # type: ignore[assignment]  # there is no coordinator

    @always("each part of each completed checkpoint of a finished job has taken effect")
    def commits_all(self) -> bool:
        return self.lifecycle.state != FINISHED or all(
            not self.way.is_completed(k + 1)
            or (
                self.sink.is_visible[k]
                and all(
                    self.parts[s].has_effect[k] or self.task_committers == 0
                    for s in range(self.subtasks)
                )
            )
            for k in range(self.checkpoints)
        )

    @eventually("once failures stop the job finishes, with everything committed globally")
    def has_finished(self) -> bool:
        return self.lifecycle.state == FINISHED

    @sometimes("a driver goes on with what is in the tasks")
    def goes_on_in_tasks(self) -> bool:
        return any(self.way.stored[k] == 2 for k in range(self.checkpoints))
