"""Which rows of the machines that run are taken in none of the closed systems made of them, and
why; and which are left to another of these systems.

The key is the machine and the trigger, or these and the reason of a row. A test holds that the
first list has nothing that is taken, and that all else is.
"""

from __future__ import annotations

NO_OVERLAP = "a job has one checkpoint under way at a time"
COMMITS = "commits that fail or take long are explored by the system `commit`"
NEVER_LATE = "all calls come through one queue and nothing overtakes; the row guards against that"
FIFO = "no message is lost among others on a wire that lives"

NOWHERE: dict[str, str] = {
    "lifecycle.reconsider: the sink has not committed the last checkpoint": COMMITS,
    "committer.due: the next commit covers it too": COMMITS,
    "committer.due: the job goes down": COMMITS,
    "committer.committed: a newer checkpoint was completed meanwhile": COMMITS,
    "committer.retry_later: the sink could not do it now": COMMITS,
    "committer.retry_later: it could not do it in any of the tries allowed": COMMITS,
    "committer.refused: trying again would not help": COMMITS,
    "gateway.mark: a second checkpoint was triggered before the first has passed": NO_OVERLAP,
    "gateway.close: the snapshot of a second checkpoint is complete too": NO_OVERLAP,
    "gateway.reopen: another checkpoint is still marked": NO_OVERLAP,
    "gateway.reopen: another checkpoint still keeps it closed": NO_OVERLAP,
    "gateway.reopen: the barrier has passed, and another checkpoint is marked": NO_OVERLAP,
    "gateway.renew: a new attempt starts without marks; what was held was meant for the old": (
        NEVER_LATE
    ),
    "snapshot.succeed: a gateway is not marked any more, so it cannot be closed": NEVER_LATE,
    "snapshot.lose: an event from before the snapshot is in no state": NEVER_LATE,
    "attempt.fault: it is going or gone already": NEVER_LATE,
    "holder.attempt_ready: it has to be built anew first": "nothing runs while it is built",
    "holder.subtask_reset: it has to be built anew first": "nothing runs while it is built",
    "holder.reset: the job begins from a checkpoint": (
        "the driver's own restart is explored by the fuzzer"
    ),
    "checkpoint.restore: "
    "the store holds a completed checkpoint; ids go on after the newest it ever held": (
        "the driver's own restart is explored by the fuzzer"
    ),
    "checkpoint.trigger_next: a request was chosen, and nobody has to be asked first": (
        "there is a coordinator"
    ),
    "task.event: one before it is missing": FIFO,
    "task.finish: there was nothing to do": "a process that restores nothing is told nothing",
}


def left_to(system: str, *triggers: str) -> dict[str, str]:
    """Excuse the rows of these triggers, because another system explores them.

    >>> left_to("endings", "holder.close")
    {'holder.close': 'explored by the system `endings`'}
    """
    return dict.fromkeys(triggers, f"explored by the system `{system}`")


LEFT_TO_TALKING = left_to(
    "talking",
    "attempt.decline",
    "attempt.expire_start",
    "attempt.fail",
    "attempt.fault",
    "attempt.operator_event",
    "attempt.restart",
    "checkpoint.decline",
    "gateway.lose",
    "gateway.send",
    "holder.attempt_failed",
    "holder.checkpoint_aborted",
    "holder.checkpoint_complete",
    "holder.event",
    "holder.fail_job",
    "holder.handled",
    "holder.reset",
    "holder.start_failed",
    "holder.started",
    "process.decline",
    "process.expire_start",
    "process.fail",
    "process.fail_to_restore",
    "process.lose_event",
    "process.speak",
    "request.settle",
    "request.submit",
    "requester.ask",
    "user.fail_to_start",
    "user.get_ready",
)
LEFT_TO_ENDINGS = left_to(
    "endings",
    "attempt.cancel",
    "attempt.connect",
    "attempt.end_of_input",
    "attempt.finish",
    "attempt.lost",
    "holder.close",
    "holder.fail_job",
    "lifecycle.attempt_failed",
    "lifecycle.backed_off",
    "lifecycle.cancel",
    "lifecycle.checkpoint_completed",
    "lifecycle.checkpoint_over",
    "lifecycle.give_up",
    "lifecycle.reconsider",
    "lifecycle.start",
    "lifecycle.stop",
    "process.end_input",
    "task.finish",
)
LEFT_TO_LIVE = left_to("live", "names.wrap")
LEFT_TO_TWO = {
    **dict.fromkeys(("checkpoint.acknowledge", "snapshot.confirm"), "there is one subtask"),
    "checkpoint.coordinator_ready": "there is one coordinator",
}
