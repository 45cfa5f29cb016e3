"""Which rows of the machines that run are taken in none of the closed systems made of them, and
why; and which are left to another of these systems.

The key is the machine and the trigger, or these and the reason of a row. A test holds that the
first list has nothing that is taken, and that all else is.
"""

from __future__ import annotations

NOWHERE: dict[str, str] = {
    "holder.attempt_ready: it has to be built anew first": "nothing runs while it is built",
    "holder.subtask_reset: it has to be built anew first": "nothing runs while it is built",
    "checkpoint.trigger_next: a request was chosen, and nobody has to be asked first": (
        "there is a coordinator"
    ),
    "task.event: one before it is missing": "no message is lost among others on a wire that lives",
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
LEFT_TO_OTHERS = {
    **left_to(
        "commit",
        "committer.committed: a newer checkpoint was completed meanwhile",
        "committer.due: the next commit covers it too",
        "committer.due: the job goes down",
        "committer.retry_later: the sink could not do it now",
    ),
    **left_to(
        "endings",
        "committer.refused",
        "committer.retry_later: it could not do it in any of the tries allowed",
        "lifecycle.reconsider: the sink has not committed the last checkpoint",
    ),
    **left_to(
        "overlapping",
        "gateway.close: the snapshot of a second checkpoint is complete too",
        "gateway.mark: a second checkpoint was triggered before the first has passed",
        "gateway.renew: a new attempt starts without marks; what was held was meant for the old",
        "gateway.reopen: another checkpoint is still marked",
        "gateway.reopen: another checkpoint still keeps it closed",
        "gateway.reopen: the barrier has passed, and another checkpoint is marked",
        "snapshot.lose: an event from before the snapshot is in no state",
        "snapshot.succeed: a gateway is not marked any more, so it cannot be closed",
    ),
    **left_to(
        "resuming",
        "checkpoint.restore: "
        "the store holds a completed checkpoint; ids go on after the newest it ever held",
        "holder.reset: the job begins from a checkpoint",
    ),
}
EXCUSED = {**LEFT_TO_LIVE, **LEFT_TO_TWO, **LEFT_TO_OTHERS, **NOWHERE}
"""What none of the closed jobs has to take at its own bounds."""
