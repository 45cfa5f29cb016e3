"""Why a message of a machine, or an argument of one, makes no difference in any closed system.

The key is the machine, the port and the message, and the name of the argument. A test holds that
each of them is unheard, and that all else is heard.
"""

from __future__ import annotations

NOTHING: dict[str, str] = {
    "Attempt.scheduler.starting": "a status shows it, and the process is told by `task.restore`",
}
"""Messages whose handlers are all empty."""

REASONS: dict[str, str] = {}
"""Arguments that nothing has to look at."""

NOT_YET: frozenset[str] = frozenset(
    {
        "Attempt.scheduler.deploy: attempt",
        "Attempt.scheduler.starting: attempt",
        "Attempt.task.restore: checkpoint",
        "BatchDecision.store.miss: batch",
        "BatchDecision.store.run: batch",
        "BatchPlan.store.tell_none: batch",
        "BatchPlan.store.withhold: batch",
        "BatchSnapshot.requester.keep: state",
        "Checkpoint.driver.aborted: checkpoint",
        "Checkpoint.driver.aborted: reason",
        "Checkpoint.driver.completed: checkpoint",
        "Checkpoint.driver.keep: checkpoint",
        "Checkpoint.driver.keep: snapshot",
        "Checkpoint.driver.save: checkpoint",
        "Checkpoint.driver.started: checkpoint",
        "Checkpoint.driver.unknown: checkpoint",
        "Checkpoint.driver.unknown: reason",
        "Checkpoint.tasks.aborted: subtask",
        "Checkpoint.tasks.barrier: subtask",
        "Checkpoint.tasks.complete: subtask",
        "ConcurrentCheckpoint.tasks.barrier: subtask",
        "ConcurrentCheckpoint.tasks.barrier: checkpoint",
        "ControlUpdate.log.in_doubt: version",
        "CoordinatorSnapshot.results.keep: checkpoint",
        "CoordinatorSnapshot.results.keep: state",
        "CreatedOnce.store.fail: batch",
        "CreatedOnce.store.refuse: batch",
        "ExecutionVertex.record.outlived: place",
        "ExecutionVertex.record.outlived: attempt",
        "ExecutionVertex.record.outlived: reason",
        "Gateway.sender.held: event",
        "Gateway.sender.lost: reason",
        "Gateway.sender.turned_away: event",
        "GlobalCommitter.sink.carry: checkpoint",
        "Holder.user.batch_snapshot: request",
        "Holder.user.failed: reason",
        "Holder.user.subtask_reset: checkpoint",
        "JobLifecycle.driver.decided: outcome",
        "JobLifecycle.driver.ending: reason",
        "JobLifecycle.driver.finish: subtask",
        "JobLifecycle.driver.restart_all: reason",
        "JobLifecycle.driver.restart_one: reason",
        "Placement.spark.ask_strategy: subtask",
        "Placement.spark.ask_strategy: reason",
        "Placement.spark.give_up: reason",
        "Placement.spark.remove_executor: host",
        "Placement.spark.remove_executor: attempt",
        "Placement.spark.strand: host",
        "Placement.spark.turn_away: attempt",
        "PostCommit.worker.record: checkpoint",
        "PostCommit.worker.stalled: checkpoint",
        "PostCommit.worker.stalled: reason",
        "Recreation.inner.drop: call",
        "Recreation.inner.fail_job: generation",
        "Recreation.inner.make: generation",
        "Recreation.inner.pass_on: call",
        "Resident.process.replace: reason",
        "SendWindow.room.allow: size",
        "SendWindow.room.refuse: size",
        "SplitAssignment.enumerator.said: attempt",
        "Task.operators.aborted: checkpoint",
        "Task.operators.complete: checkpoint",
        "Task.operators.failed: reason",
        "Task.operators.gap: coordinator",
        "Task.operators.restore: attempt",
        "Task.operators.restore: checkpoint",
        "Task.operators.restore: state",
    }
)
"""Arguments that no closed system looks at yet, although a wrong one would do harm: a list that is
to become empty.
"""
