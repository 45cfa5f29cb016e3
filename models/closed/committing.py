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
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.surroundings.committing import (
    CommittingOperators,
    CommittingProcess,
    CommittingWire,
    DeadTasks,
)
from epochgate.models.closed.surroundings.committing_driver import (
    Driver,
    Hearer,
    Interval,
    StoreOfSteps,
    User,
)
from epochgate.models.closed.surroundings.committing_parts import TASKS, Parts, PartsOfAll
from epochgate.models.closed.surroundings.committing_steps import Before, Behind, GlobalSink, Way
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
from epochgate.models.closed.untaken import left_to
from epochgate.models.job import Job
from epochgate.models.lifecycle import FINISHED, RUNNING
from epochgate.models.subtask_committer import AWAY, COMMITTING, GIVEN_UP, PAUSING

OF_THE_JOB: dict[str, str] = {
    **{
        f"{name}.{row.trigger}": "the machines of `Job` are explored by the systems made of it"
        for name, machine in Job.MACHINES.items()
        for row in machine.ROWS
        if row.trigger != "checkpoint_completed"
    },
    **dict.fromkeys(
        (
            "process.die",
            "process.fail_fatally",
            "restarter.expire_end",
            "sink.fail_work",
            "sink.finish_work",
            "sink.hang_in_work",
            "sink.refuse",
            "store.answer_late",
            "store.lose_answer",
            "store.expire_save",
            "store.lose_save",
            "store.refuse",
            "task.aborted: no operator is open",
            "task.complete: no operator is open",
            "task.barrier: this attempt is over",
            "task.end_input: the end was reported before, or this attempt is over",
            "task.finish: this attempt is over",
            "task.restore: this attempt is over",
        ),
        "explored by the system `endings`",
    ),
    **dict.fromkeys(
        (
            "process.decline",
            "process.expire_start",
            "process.fail_to_restore",
            "process.lose_event",
            "process.speak",
            "requester.ask",
            "task.event",
            "task.fail: this attempt is over",
        ),
        "explored by the system `talking`",
    ),
    **{
        f"{name}.{row.trigger}": "there is no coordinator"
        for name in ("sender", "user", "names")
        for row in EndingJob.MACHINES[name].ROWS
    },
}
"""Why this system need not take what a job does without these steps."""
DIRECT = {
    **dict.fromkeys(
        (
            "lifecycle.checkpoint_completed: the checkpoint holds the end of all input",
            "lifecycle.checkpoint_completed: the last checkpoint of the stopping job is completed",
            "stage_behind.take: the job goes down",
        ),
        "explored with task_committers=0",
    ),
    "stage_before.take: there is nothing between": "explored with operators_before=0",
    "stage_behind.take: there is nothing between": "explored with operators_behind=0",
}
"""Rows of jobs that lack one of the steps."""


class CommittingInSteps(EndingJob):
    """The job whose tasks commit, with operators between, and a driver that dies."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks", "coordinator": "places"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        **EndingJob.CONSTANTS,
        "subtasks": 2,
        "coordinators": 0,
        "places": 1,
        "commit_retries": 1,
        "after_commit": 0,
        "task_committers": 1,
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
    UNTAKEN: ClassVar[dict[str, str]] = {
        **OF_THE_JOB,
        **DIRECT,
        **left_to(
            "recommitting",
            "stage_before.retry_later: it could not be processed in any allowed try",
            "stage_behind.retry_later: it could not be processed in any allowed try",
            "subtask_committer.due: the job goes down",
            "subtask_committer.retry_later: it could not be committed in any allowed try",
            "subtask_committer.stopped: the attempt has not come to commit anything",
            "subtask_committer.stopped: the job goes down",
            "restarter.back_off",
        ),
    }
    UNREAD: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            (
                "keeper.has_state",
                "process.completed_handled",
                "process.completed_receipts",
                "process.snapshot_handled",
                "process.snapshot_receipts",
                "sender.snapshot_heard",
                "sender.snapshot_sent",
            ),
            "there is no coordinator",
        ),
        **dict.fromkeys(("store.has_debts", "store.has_ledger"), "`way` has each checkpoint"),
        **dict.fromkeys(
            ("requester.is_late", "requester.is_waiting"), "a claim of `AskedJob` is about it"
        ),
    }
    WIRING: ClassVar[dict[str, str]] = {
        **EndingJob.WIRING,
        "stage_before.operators": "before_it",
        "stage_behind.operators": "behind_it",
        "subtask_committer.task": "parts",
        "committable_collector.parts": "parts_of_all",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("launch", "launch"),
        Step("launch", "end"),
        Step("process", "tell"),
        Step("process", "hear"),
        Step("process", "hear_again", is_fair=False, is_stuttering=True),
        Step("process", "hear_zombie", is_fair=False, is_stuttering=True),
        Step("parts", "late", is_fair=False, is_stuttering=True),
        Step("before_it", "late", is_fair=False, is_stuttering=True),
        Step("behind_it", "late", is_fair=False, is_stuttering=True),
        Step("stale", "arrive", is_fair=False, is_stuttering=True),
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
        Step("process", "fail", is_fair=False),
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
    attempt: list[Attempts] = machines(Attempts)  # type: ignore[assignment]  # of the same kind
    checkpoint: CheckpointUnderWay = machines(CheckpointUnderWay)
    request: Requests = machines(Requests)
    committer: Committer = machines(Committer)
    stage_before: OperatorsBefore = machines(OperatorsBefore)
    subtask_committer: list[TaskCommitter] = machines(TaskCommitter)
    committable_collector: Collector = machines(Collector)
    stage_behind: OperatorsBehind = machines(OperatorsBehind)

    process: list[CommittingProcess] = machines(CommittingProcess)  # type: ignore[assignment]  # of the same kind
    wire: list[CommittingWire] = machines(CommittingWire)  # type: ignore[assignment]  # of the same kind
    operators: list[CommittingOperators] = machines(CommittingOperators)  # type: ignore[assignment]  # of the same kind
    parts: list[Parts] = machines(Parts)
    parts_of_all: PartsOfAll = machines(PartsOfAll)
    stale: DeadTasks = machines(DeadTasks)
    way: Way = machines(Way)
    before_it: Before = machines(Before)
    behind_it: Behind = machines(Behind)
    sink: GlobalSink = machines(GlobalSink)
    store: StoreOfSteps = machines(StoreOfSteps)
    restarter: Hearer = machines(Hearer)
    requester: Interval = machines(Interval)
    person: User = machines(User)
    launch: Driver = machines(Driver)

    # There is no coordinator, no work after a commit, no save of unknown outcome, and one failure.
    holds_an_event = None  # type: ignore[assignment]
    waits_for_work = None  # type: ignore[assignment]
    is_in_doubt = None  # type: ignore[assignment]
    completes_after_global_failover = None  # type: ignore[assignment]

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

    @always("a committer is away while its attempt does not run, and only then")
    def follows_its_attempt(self) -> bool:
        return all(
            self.subtask_committer[s].state == GIVEN_UP
            or (self.subtask_committer[s].state == AWAY) != self.attempt[s].is_running()
            for s in range(self.subtasks)
        )

    @always("no commit is under way in a task whose snapshot is taken and not the others'")
    def asks_for_nothing_amid(self) -> bool:
        return not self.checkpoint.is_pending() or all(
            not self.checkpoint.has_acknowledged[s] or self.subtask_committer[s].state != COMMITTING
            for s in range(self.subtasks)
        )

    @always(
        "a job that goes on waits for the tasks' commits alone once its last checkpoint is stored"
    )
    def takes_no_more_checkpoints(self) -> bool:
        return not self.lifecycle.is_last_stored or self.checkpoint.is_over()

    @sometimes("a checkpoint is completed while an earlier one is in the tasks")
    def trails(self) -> bool:
        return any(
            self.way.place[k] == TASKS and self.way.place[k + 1] > 0
            for k in range(self.checkpoints - 1)
        )

    @sometimes("a task commits again what has taken effect")
    def commits_again(self) -> bool:
        return any(
            self.subtask_committer[s].state == COMMITTING
            and self.parts[s].has_effect[k]
            and not self.parts[s].has_seen[k]
            for s in range(self.subtasks)
            for k in range(self.checkpoints)
        )

    @sometimes("the operators hand a checkpoint over in the midst of a barrier")
    def waits_for_a_barrier(self) -> bool:
        return self.checkpoint.is_pending() and any(
            self.subtask_committer[s].state == PAUSING
            and self.subtask_committer[s].head_tries() == 0
            for s in range(self.subtasks)
        )

    @sometimes("tasks wait for their commits at the end of their input")
    def commits_before_it_leaves(self) -> bool:
        return self.lifecycle.state == RUNNING and self.lifecycle.is_last_stored

    @sometimes(
        "a checkpoint is stored of whose earlier one a task has passed on its part, and not all"
    )
    def stores_a_part(self) -> bool:
        return any(
            self.way.stored[k] == TASKS
            and any(self.parts[s].stored_seen[k] for s in range(self.subtasks))
            for k in range(self.checkpoints)
        )

    @sometimes("a driver commits globally what the one before has committed")
    def commits_globally_again(self) -> bool:
        return any(
            self.sink.is_visible[k] and self.sink.is_covered[k] for k in range(self.checkpoints)
        )


class CommittingAgain(CommittingInSteps):
    """The job with one subtask, two failures, and commits that are tried again."""

    CONSTANTS: ClassVar[dict[str, int]] = {**CommittingInSteps.CONSTANTS, "subtasks": 1, "F": 2}
    UNTAKEN: ClassVar[dict[str, str]] = {
        **OF_THE_JOB,
        **DIRECT,
        "committable_collector.receive: another subtask has not passed on its part": "there is one subtask",
    }

    stores_a_part = None  # type: ignore[assignment]  # there is one subtask

    @sometimes("an attempt goes on with the tries of the one before")
    def counts_on(self) -> bool:
        return any(
            self.subtask_committer[s].state == COMMITTING
            and self.subtask_committer[s].head_tries() > 0
            and self.attempt[s].number > 0
            for s in range(self.subtasks)
        )

    @sometimes("a driver goes on with the tries of the one before")
    def counts_on_after_a_start(self) -> bool:
        return self.launch.state == "before" and any(
            self.parts[s].stored_tries[k] > 0
            for s in range(self.subtasks)
            for k in range(self.checkpoints)
        )
