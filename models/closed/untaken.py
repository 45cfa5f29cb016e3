"""The rows of the machines that run which are taken in none of the closed systems made of them, and
why; and which are left to another of these systems.

The key is the machine and the trigger, or these and the reason of a row. A test holds that the
first list has nothing that is taken, and that all else is. The last list, of rows that are taken,
has the source states from which none of these systems takes them; a test holds that too.
"""

from __future__ import annotations

NOWHERE: dict[str, str] = {
    "lifecycle.checkpoint_over: the job has ended with this checkpoint": (
        "what a checkpoint holds up goes on once it is over, and ends the job then"
    ),
    "lifecycle.attempt_left: the process has left, but the job goes on": (
        "a process leaves when it is told to"
    ),
    "holder.fail_job: the error is fatal: rebuilding would not help": "that takes two failures",
    "holder.attempt_ready: the coordinator must be rebuilt first": "nothing runs while it is built",
    "holder.subtask_reset: the coordinator must be rebuilt first": "nothing runs while it is built",
    "checkpoint.trigger_next: a request was chosen; there is no coordinator to ask": (
        "there is a coordinator"
    ),
    "gateway.renew: a new attempt starts unmarked; held events were for the old": (
        "the failure of the old attempt has aborted the checkpoint, which reopened the gateway"
    ),
    "snapshot.succeed: a gateway is not marked any more, so it cannot be closed": (
        "what reopens the gateway of a checkpoint without a snapshot cancels the snapshot first"
    ),
    "task.event: an event before this one is missing": "no message is lost among others on a wire that lives",
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
    "holder.event_malformed",
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
    "snapshot.lose: an event from before the snapshot is in no state",
    "requester.ask",
    "task.barrier",
    "task.event",
    "task.fail",
    "task.finish",
    "task.restore",
    "sender.refuse_event",
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
    "checkpoint.expire_save",
    "checkpoint.give_save_up",
    "checkpoint.refused",
    "checkpoint.store_failed: the store has answered after its limit; the next start reads it",
    "checkpoint.store_unknown",
    "checkpoint.stored: the store has answered after its limit; the next start reads it",
    "holder.close",
    "holder.fail_job",
    "lifecycle.attempt_failed",
    "lifecycle.backed_off",
    "lifecycle.cancel",
    "lifecycle.checkpoint_completed",
    "lifecycle.checkpoint_over",
    "lifecycle.give_up",
    "lifecycle.reconsider",
    "lifecycle.attempt_ended",
    "lifecycle.closed",
    "lifecycle.expire_end",
    "lifecycle.start",
    "lifecycle.stop",
    "attempt.fail: the process reports that no attempt could go on",
    "process.end_input",
    "process.fail_fatally",
    "task.barrier",
    "task.end_input",
    "store.lose_save",
    "store.refuse",
    "store.expire_save",
    "store.answer_late",
    "restarter.expire_end",
    "task.finish",
)
LEFT_TO_ASKED = left_to(
    "asked",
    "holder.adopt_batch_snapshot",
    "holder.fail_job: the error is fatal: no coordinator could start",
    "holder.fail_job: the error is fatal: a restore would not help",
    "holder.start_failed: the error is fatal: no coordinator could start",
    "user.fail_for_good",
    "user.fail_to_start_for_good",
    "holder.batch_snapshot",
    "holder.client_request",
    "holder.reset: the job goes back to the batch snapshot it began from",
    "holder.reset: rebuilt from the batch snapshot",
    "holder.start: the job begins from a snapshot without a checkpoint",
    "request.submit: the job has ended",
    "request.submit_periodic: the job has ended",
)
LEFT_TO_LIVE = left_to("live", "names.wrap")
LEFT_TO_TWO = {
    **dict.fromkeys(
        (
            "checkpoint.acknowledge",
            "lifecycle.attempt_ended",
            "lifecycle.attempt_left: other attempts have a process",
            "lifecycle.attempt_running: other attempts have not restored their state",
            "snapshot.confirm",
        ),
        "there is one subtask",
    ),
    "checkpoint.coordinator_ready": "there is one coordinator",
    "holder.attempt_failed: the coordinator has not heard of the attempt": (
        "no other coordinator is restored meanwhile: there is one"
    ),
}
LEFT_TO_COMMITTING = left_to("committing", "task.commit")
LEFT_TO_IN_DOUBT = left_to("in_doubt", "committer.forgo")
LEFT_TO_OTHERS = {
    **LEFT_TO_IN_DOUBT,
    **LEFT_TO_COMMITTING,
    **left_to(
        "commit",
        "committer.adopt",
        "committer.expire: no commit is under way",
        "committer.expire: the limit was for an earlier commit",
        "post_commit.expire: no work is under way",
        "post_commit.expire: the limit was for earlier work",
        "committer.committed: a newer checkpoint was completed meanwhile",
        "committer.committed: the answer is to an earlier commit",
        "committer.committed: no commit is under way",
        "post_commit.failed: it may succeed later",
        "committer.already_committed",
        "committer.impossible",
        "committer.left_out",
        "committer.due: the next commit covers this checkpoint too",
        "committer.due: the job goes down",
        "committer.refused: the answer is to an earlier commit",
        "committer.refused: no commit is under way",
        "committer.retry_later: the answer is to an earlier commit",
        "committer.retry_later: no commit is under way",
        "committer.retry_later: the sink could not commit now",
    ),
    **left_to(
        "endings",
        "committer.carry: a driver may die before it knows what was committed",
        "committer.expire: the sink has not answered within its limit; the next start commits again",
        "committer.refused: the sink refuses: a retry would not help",
        "committer.retry_later: the sink could not commit in any allowed try",
        "lifecycle.reconsider: the sink has not committed the last checkpoint",
        "lifecycle.reconsider: the work after the last commit is under way",
        "post_commit.carry: a driver may die before the work is done",
        "post_commit.done",
        "post_commit.expire: it has not ended within its limit, and waits for the next commit",
        "post_commit.failed",
        "post_commit.owe: the checkpoint is visible",
        "post_commit.owe: the work of an earlier commit is under way",
        "post_commit.owe: the work that was put off is tried again, oldest first",
    ),
    **left_to(
        "resuming",
        "checkpoint.restore: the store holds a completed checkpoint",
        "holder.reset: the job begins from a checkpoint",
        "holder.restore_failed",
        "holder.restored: the coordinator failed the job before its start",
        "user.break_restore",
        "user.break_restore_for_good",
        "store.lose_answer",
    ),
}
EXCUSED = {**LEFT_TO_ASKED, **LEFT_TO_LIVE, **LEFT_TO_TWO, **LEFT_TO_OTHERS, **NOWHERE}
"""What none of the closed jobs has to take at its own bounds."""

NOT_FROM_BECAUSE: dict[str, tuple[str, ...]] = {
    "a source has one file, of which each reader has one split; several are in unit tests": (
        "removal.hold from due: "
        "its last rows are in a complete checkpoint, and not known to be committed",
        "reading.end from owed: the reader has given all rows of the split to the sink",
    ),
    "that takes four changes of three hosts: two are cut off, and two are full": (
        "placement.silenced from stranded: "
        "a process there is silent: it is ended, and its successor goes elsewhere",
    ),
    "a process that updates nothing has nothing to lose": ("control_update.restart from idle",),
    "the enumerator answers an announcement in the step that announces": (
        "assignment.restore from returned",
    ),
    "a job that has not begun cannot have finished": ("lifecycle.start from finished",),
    "an attempt that restores its state, runs or ends is one of a job that runs or stops": (
        "lifecycle.attempt_running "
        "from created restarting finishing failing canceling finished failed canceled",
        "lifecycle.attempt_ended "
        "from created restarting failing canceling finished failed canceled",
        "lifecycle.attempt_stopped "
        "from created restarting failing canceling finished failed canceled",
    ),
    "a driver that dies has begun its job, which has no coordinators, which no person cancels, "
    "whose subtasks restart one by one, and of which each save is known": (
        "lifecycle.replaced from created restarting canceling finished canceled",
        "attempt.replaced from created",
        "checkpoint.replaced from triggering unknown",
    ),
    "a job that a user ends has one subtask": (
        "lifecycle.attempt_left from canceling: other attempts have a process",
        "attempt.recreate from finished",
    ),
    "before a job begins, and once it has ended, no coordinator is there to fail it": (
        "lifecycle.fail_globally from created finished failed canceled",
    ),
    "a job that has not begun does not restart": (
        "lifecycle.backed_off from created",
        "lifecycle.reconsider from created",
    ),
    "a job ends once its checkpoint and its commit are over": (
        "lifecycle.checkpoint_completed from finishing finished failed canceled",
        "lifecycle.reconsider from finished",
    ),
    "a user ends a job once": (
        "lifecycle.stop from stopping canceling canceled",
        "lifecycle.cancel from stopping canceling canceled",
    ),
    "between two steps an attempt is created only before its job begins: no process speaks for it": (
        "attempt.initialize from created",
        "attempt.run from created",
        "attempt.acknowledge from created",
        "attempt.decline from created",
        "attempt.confirm from created",
        "attempt.operator_event from created",
        "attempt.end_of_input from created",
        "attempt.metrics from created",
        "attempt.fail from created",
        "attempt.expire_start from created",
        "attempt.finish from created",
        "attempt.lost from created: an evicted process is gone",
        "attempt.lost from created: the attempt of the process is over already",
    ),
    "processes that come before their job begins come in the order of their identities": (
        "attempt.connect from created: a newer process is known: this process is a zombie",
    ),
    "a process that has left says nothing more": ("attempt.operator_event from finished",),
    "an error that no attempt survives is raised by an operator that runs": (
        "attempt.fail from deploying initializing: the process reports that no attempt could go on",
    ),
    "no process waits where its attempt has one, is to have one, or has finished": (
        "attempt.lost from scheduled deploying initializing running finished: "
        "the waiting process is gone",
    ),
    "while an attempt is canceled, no process but its own connects": (
        "attempt.lost from canceling: the waiting process is gone",
    ),
    "concurrent attempts are those of one subtask: the leading one fails or is canceled": (
        "attempt.take_over from created scheduled deploying initializing running finished canceled",
        "attempt.hand_over from created scheduled deploying initializing running finished canceling",
        "vertex.count from ended",
    ),
    "before a coordinator starts, no attempt speaks to it": (
        "holder.event from created",
        "holder.handled from created",
    ),
    "a gateway waits for confirmations once it is closed, for a snapshot that waits for them": (
        "gateway.stop_waiting from marked",
        "snapshot.lose from asked: the snapshot is over",
    ),
    "a job that begins from a batch snapshot goes back once its coordinators have started": (
        "holder.reset from starting: rebuilt from the batch snapshot",
    ),
    "a job that a user ends restores its coordinators in one step": (
        "holder.close from restoring resetting",
    ),
    "one checkpoint is under way at a time, and a gateway opens before the next": (
        "gateway.reopen from marked closed: the gateway is not marked for this checkpoint",
    ),
    "a request is chosen until its checkpoint has begun or is refused": (
        "request.submit from chosen: the job has ended",
        "request.submit_periodic from chosen: the job has ended",
        "request.reconsider from chosen: no request waits",
    ),
    "before the first checkpoint none is answered": (
        "checkpoint.coordinator_ready from none",
        "checkpoint.coordinator_failed from none",
        "checkpoint.acknowledge from none",
        "checkpoint.decline from none",
        "checkpoint.expire_save from none",
        "checkpoint.expire from none",
    ),
    "a checkpoint is stored once all of its parts are there": (
        "checkpoint.acknowledge from unknown",
        "checkpoint.decline from unknown",
    ),
    "a job that ends aborts a checkpoint that is not being stored": (
        "checkpoint.give_save_up from triggering pending",
    ),
    "a task that has finished has no process": (
        "task.restore from finished",
        "task.event from finished",
        "task.barrier from finished",
        "task.commit from finished",
        "task.complete from finished",
        "task.aborted from finished",
        "task.end_input from finished",
        "task.fail from finished",
        "task.finish from finished",
    ),
    "a process whose attempt has not begun runs no operator, and is ended": (
        "task.fail from created",
        "task.finish from created",
    ),
}
"""Why rows that are taken are not taken from some of their states in any of the closed systems ->
the rows, as `machine.trigger from state state: because`; without `because` all of the trigger's.
"""


def _apart(rows: str) -> list[str]:
    places, _, because = rows.partition(": ")
    trigger, _, states = places.partition(" from ")
    return [f"{trigger} from {state}" + f": {because}" * bool(because) for state in states.split()]


NOT_FROM: dict[str, str] = {
    name: why for why, some in NOT_FROM_BECAUSE.items() for rows in some for name in _apart(rows)
}
"""`machine.trigger from state`, or this with the reason of a row -> why it is not taken there."""
