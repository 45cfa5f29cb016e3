"""The mutants of all kinds that survive every claim and every test, and why they may.

`reasons` has those of the kinds that checker and runtime both have to find. A reason for a mutant
that is found fails.
"""

from __future__ import annotations

from tests.mutation.excused_checkpoints import OF_CHECKPOINTS
from tests.mutation.excused_commits import OF_COMMITS

ANSWERED = (
    "committed from committing when is_asked and",
    "already_committed from committing when is_asked and",
    "left_out from committing when is_asked and is_newest and",
)
"""The answers to a commit after which none is under way, or the next."""
LEFT_OUT = ("not is_newest", "is_newest and not has_more", "is_newest and has_more")

SAME_VALUE = "a value that is put into force twice is the same as once"
SHADOWED = "a row without a guard stands before it"
GOES_DOWN_BY = ("give_up", "cancel")
"""Triggers by which a whole job goes down for good."""
SAME_BATCH = "the entry of the batch was kept in the same step, so what it has left is the batch's"
NONE_PENDING = "without a pending change every row does the same: nothing"
IS_OVER = "the first report ends the checkpoint, and the second is of one that is over"
NO_SEND = "no send is awaited before the snapshot is taken, or once it is over"
CANCELLED = "the checkpoint, which fails, cancels the snapshot in the same step"
SAME_STEP = "both come to pass in the same step, and neither looks at what the other changes"
OWN_NUMBER = "the row is for the checkpoint that the snapshot is of"
NOTHING_LEFT = "the first time leaves nothing to do for the second"
SECOND_LOOK = "the second look comes to what the first has left, and finds nothing to do there"
NOT_THERE = "no reader is there in this state, so the row is not for it"
NO_WORK = "a job without work after its commits never owes any"
NONE_STARTS = (
    "no attempt starts to run while a checkpoint is under way: a failure aborts it, and a restart "
    "waits for the store"
)
OVER_BEFORE = "a checkpoint that is under way is over before the job ends"
ONE_STEP = (
    "both are done in one step of one thread, nothing reads one of them before the other is done, "
    "and an error in either ends the attempt"
)
AFTER_THE_ROW = (
    "what a row fires waits until it is done, and neither of the two machines looks at what the "
    "other changes"
)
HEARD_ONCE = "the machine that hears of it ignores what it has heard before"
NOT_UP = "no attempt can be reached before the job begins"
ENDS_AT_ONCE = "the job is given up before it begins, and ends in the same step"
NO_OTHER_WAITS = "no process waits while an attempt has one, wants one or has finished"
STARTS_AT_ONCE = "an attempt that is created is scheduled in the same step, but before the job"
NEWEST_SPEAKS = "the process that speaks is the newest that has come"
PLACE_ASKED = (
    "vertex.place_of: `for i in range(self.system.concurrent): place = self.first() + i if "
    "self.system.attempt[place].speaks(identity): return place if "
    "self.system.attempt[place].is_waiting(identity): return place` -> `for i in "
    "range(self.system.concurrent): place = self.first() + i if "
    "self.system.attempt[place].is_waiting(identity): return place if "
    "self.system.attempt[place].speaks(identity): return place`"
)
WAITING_TAKEN = (
    "vertex.take_waiting: `if self.system.attempt[self.spare()].has_waiting(): waiting = "
    "self.system.attempt[self.spare()].waiting "
    "self.system.attempt[self.leader()].take_over(waiting) "
    "self.system.attempt[self.spare()].hand_over()` -> `if "
    "self.system.attempt[self.spare()].has_waiting(): waiting = "
    "self.system.attempt[self.spare()].waiting self.system.attempt[self.spare()].hand_over() "
    "self.system.attempt[self.leader()].take_over(waiting)`"
)

OF_REASON: dict[str, tuple[str, ...]] = {
    "a split that is told or held twice counts once": (
        "reading: end from any state: remember twice",
    ),
    "the first time leaves nothing that the second would hold or release": (
        "reading: complete from owed when holds_all: hold_covered twice",
        "reading: complete from owed when not holds_all: hold_covered twice",
        "reading: rejoin from owed: forget twice",
        "removal: commit from due when covers_all: release_covered twice",
        "removal: commit from due when not covers_all: release_covered twice",
    ),
    "nothing is kept in this state, so that the row does nothing there": (
        "reading: complete from owed when holds_all: also from held",
        "reading: complete from owed when not holds_all: also from held",
        "reading: rejoin from owed: also from held",
        "removal: commit from due when covers_all: also from kept",
        "removal: commit from due when not covers_all: also from kept",
    ),
    "where nothing is kept, the state makes no difference to what follows": (
        "reading: rejoin from owed: to owed",
        "removal.covers_all: `self.newest_by <= checkpoint` -> `self.newest_by < checkpoint`",
    ),
    "the newest is the same, whichever of two equal ones it is": (
        "removal.remember: `checkpoint > self.newest_by` -> `checkpoint >= self.newest_by`",
    ),
    SAME_VALUE: (
        "changes: resume from any state when goes_on: take_kept twice",
        "changes: resume from any state when not goes_on: take_configured twice",
        "changes: set from any state: apply twice",
        "changes: restored from owed when is_asked and not covers_all: apply_pending twice",
        "changes: restored from owed when not is_asked: apply_pending twice",
    ),
    "what is acknowledged is not pending any more": (
        "changes: completed from owed when is_asked and covers_all: acknowledge_covered twice",
        "changes: completed from owed when is_asked and not covers_all: acknowledge_covered twice",
        "changes: restored from owed when is_asked and covers_all: acknowledge_covered twice",
        "changes: restored from owed when is_asked and not covers_all: acknowledge_covered twice",
    ),
    "in one step the newest value is applied last, whatever is applied before it": (
        "changes: restored from owed when is_asked and not covers_all: apply_pending before "
        "acknowledge_covered",
    ),
    NONE_PENDING: (
        "changes: snapshot from owed: also from durable",
        "changes: completed from owed when is_asked and covers_all: also from durable",
        "changes: completed from owed when is_asked and not covers_all: also from durable",
        "changes: restored from owed when is_asked and covers_all: also from durable",
        "changes: restored from owed when is_asked and not covers_all: also from durable",
        "changes: restored from owed when not is_asked: also from durable",
    ),
    "what the shell is told of an end, told twice, is the same as once": (
        "table_owner: claimed from claiming when not has_one: report_ready twice",
        "table_owner: present from owner when is_mine: report_ready twice",
        "table_owner: present from owner when not is_mine: report_refusal twice",
        "table_owner: absent from fenced: report_refusal twice",
        "table_owner: present from fenced: report_refusal twice",
        "table_owner: last from asking when not has_one and not may_make: report_ready twice",
        "table_owner: overtaken from making: report_failure twice",
        "table_owner: overtaken from entering when not may_retry: report_failure twice",
        "table_owner: named from naming: report_ready twice",
        "table_owner: late from claiming, asking, naming: report_refusal twice",
        "table_owner: broken from claiming: report_failure twice",
        "table_owner: broken from asking, making, entering, naming: report_failure twice",
    ),
    "the change that is applied is the newest by then": (
        "changes.apply: `self.setting.apply(change)` -> `self.setting.apply(self.newest)`",
    ),
    "that a slot is free, told twice, is the same as once": (
        "placement: room from any state but given_up: note_room twice",
    ),
    "a watch that is set again is the same watch": (
        "send_window: want from any state when not has_room: watch twice",
        "send_window: freed from awaited when not has_room: watch twice",
        "receive_window: received from reading when is_over: watch twice",
        "receive_window: handled from paused when not has_room: watch twice",
    ),
    "where no sender waits, what the watch finds is ignored": (
        "send_window: freed from awaited when not has_room: also from quiet",
    ),
    SHADOWED: (
        "table_owner: overtaken from entering when may_retry: also from making",
        "control_update: broken from writing when has_tried: also from reading",
        *(
            f"batch_plan: broken from fetching: also from {state}"
            for state in ("looking", "restoring", "reading", "writing", "confirming")
        ),
    ),
    "what is noted twice is the same as once": (
        "task: event from running, ended when is_next: count twice",
    ),
    SAME_BATCH: tuple(
        f"{machine}.ask_forget: `self.batch {rest}` -> `self.behind {rest}`"
        for machine in ("batch_plan", "batch_decision")
        for rest in ("> self.system.retained", "- self.system.retained")
    ),
    NOTHING_LEFT: (
        "lifecycle: fail_globally from running, stopping: cancel_all twice",
        "lifecycle: checkpoint_over from running, stopping: resume_restarts twice",
        "lifecycle: expire_end from failing, canceling: give_save_up twice",
        *(
            f"lifecycle: {order} from running, stopping, restarting, finishing: cancel_all twice"
            for order in GOES_DOWN_BY
        ),
        "gateway: reopen from closed when is_marked: release twice",
        "gateway: renew from any state but open: drop_held twice",
        "gateway: disconnect from any state: give_up_in_flight twice",
        "gateway: renew from open: give_up_for_new twice",
        "gateway: renew from any state but open: give_up_for_new twice",
        "attempt: finish from running when speaks: finish_sends twice",
        "vertex: attempt_failed from ended when is_leading: take_waiting twice",
        "vertex: abandon from ended: take_waiting twice",
        "holder: started from starting: serve_requests twice",
        "holder: start_failed from starting when not is_fatal: refuse_requests twice",
        "holder: start_failed from starting when is_fatal: refuse_requests twice",
        "holder: reset from starting, broken when not is_to_batch: refuse_requests twice",
        "holder: reset from starting, broken when is_to_batch: refuse_requests twice",
        "holder: fail_job from starting when not is_fatal: refuse_requests twice",
        "holder: fail_job from starting when is_fatal: refuse_requests twice",
        "holder: close from any state but closed: refuse_late_requests twice",
        "recreation: reset from deferred: drop_deferred twice",
        "recreation: unmade from making: drop_deferred twice",
        "recreation: raised from caught_up: drop_deferred twice",
        "recreation: close from any state but making, closed: drop_deferred twice",
        "snapshot: lose from confirming: stop_waiting twice",
        "snapshot: cancel from confirming when is_current: stop_waiting twice",
        "assignment: lost from reading when is_only_one: leave twice",
        "assignment: lost from told when is_only_one: leave twice",
        "assignment: lost from reading, told when not is_only_one and has_place: leave twice",
        "assignment: lost from absent, owed when has_place: leave twice",
        "assignment: reset from absent: take_back twice",
        "assignment: reset from owed when has_newer: take_back twice",
        "assignment: take from any state but returned when not is_waiting: "
        "move_under_checkpoint twice",
        "assignment: complete from any state but returned: forget_completed twice",
        "assignment: restore from any state: leave_all twice",
        "assignment: restore from any state: forget_all twice",
        "committer: forgo from idle: drop twice",
        *(
            f"committer: {answer} from committing when is_asked and {more}: settle twice"
            for answer in ("committed", "already_committed")
            for more in ("not has_more", "has_more")
        ),
        *(
            f"committer: left_out from committing when is_asked and {which}: leave_out twice"
            for which in LEFT_OUT
        ),
    ),
    SECOND_LOOK: (
        "lifecycle: attempt_running from any state when is_last_running: resume_request twice",
        "lifecycle: attempt_left from restarting, finishing, failing, canceling when "
        "is_last_leaving: settle_down twice",
        "lifecycle: backed_off from restarting when is_current: settle_down twice",
        "lifecycle: checkpoint_over from restarting, finishing, failing, canceling: "
        "settle_down twice",
        *(
            f"lifecycle: {order} from running, stopping, restarting, finishing: settle_down twice"
            for order in GOES_DOWN_BY
        ),
        "request: submit from idle when not has_ended: consider twice",
        "request: submit_periodic from idle when not has_ended: consider twice",
        "request: settle from chosen when is_wanted: consider twice",
        "post_commit: done from working when is_asked and is_last: reconsider twice",
        "post_commit: failed from working when is_asked and not may_retry: reconsider twice",
        "post_commit: expire from working when is_asked: reconsider twice",
        *(f"committer: {answer} not has_more: reconsider twice" for answer in ANSWERED),
    ),
    IS_OVER: (
        "gateway: lose from any state when is_bound: fail_waiting twice",
        "snapshot: succeed from asked when is_current and not may_close: report_unmarked twice",
        "snapshot: fail from asked when is_current: report_failed twice",
    ),
    CANCELLED: (
        "snapshot: fail from asked when is_current: to asked",
        "snapshot: fail from asked when is_current: to confirming",
    ),
    SAME_STEP: (
        "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
        "report_ready before close_gateways",
        "snapshot: lose from confirming: report_failed before stop_waiting",
        "snapshot.close_gateways: `for s in range(self.system.subtasks): "
        "self.awaited += self.system.gateway[self.coordinator, s].in_flight() "
        "self.system.gateway[self.coordinator, s].close(checkpoint)` -> "
        "`for s in range(self.system.subtasks): "
        "self.system.gateway[self.coordinator, s].close(checkpoint) "
        "self.awaited += self.system.gateway[self.coordinator, s].in_flight()`",
    ),
    OWN_NUMBER: (
        "snapshot.ask_coordinator: `self.user.checkpoint(checkpoint)` -> "
        "`self.user.checkpoint(self.checkpoint)`",
        "snapshot.keep_state: `self.results.keep(checkpoint, state)` -> "
        "`self.results.keep(self.checkpoint, state)`",
    ),
    "once the snapshot is over, nothing from before it is on the wire of a closed gateway": (
        "snapshot: succeed from asked when is_current and may_close and has_in_flight: "
        "also from idle",
    ),
    "a snapshot that waits has sends on the wire": (
        "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
        "also from confirming",
    ),
    "while a snapshot waits for sends, its gateways stay closed": (
        "snapshot: succeed from asked when is_current and not may_close: also from confirming",
    ),
    AFTER_THE_ROW: (
        "lifecycle.cancel_all: `def cancel_all(self, reason: Opaque) -> None: "
        "self.system.checkpoint.abort(reason) self.running = 0 self.ended = 0 self.count_leaving() "
        "self.cancel_attempts()` -> `def cancel_all(self, reason: Opaque) -> None: "
        "self.system.checkpoint.abort(reason) self.running = 0 self.ended = 0 "
        "self.cancel_attempts() self.count_leaving()`",
        "lifecycle.finish_all: `def finish_all(self) -> None: self.count_leaving() for s in "
        "range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.driver.finish(s, self.system.attempt[s].identity)` -> `def finish_all(self) -> None: "
        "for s in range(self.system.subtasks): if self.system.attempt[s].is_running(): "
        "self.driver.finish(s, self.system.attempt[s].identity) self.count_leaving()`",
        "attempt: connect from running when is_newer: give_way before stop_running",
        "attempt: fail from running when speaks and not is_fatal: report_failure before "
        "stop_running",
        "attempt: fault from running: break_down before stop_running",
        "attempt: lost from running when speaks: report_failure before stop_running",
        "attempt: finish from running when speaks: stop_running before finish_sends",
        "attempt: finish from running when speaks: report_left before stop_running",
        "attempt: recreate from finished, canceled, failed: begin before renew",
        "vertex: attempt_failed from ended when is_leading: ask_restart before take_waiting",
        WAITING_TAKEN,
    ),
    NO_OTHER_WAITS: (
        "attempt: connect from deploying, initializing when is_newer: end_process before "
        "keep_waiting",
    ),
    "where there is no maker, what one would have is not looked at": tuple(
        f"{machine}.give_up_maker: `self.behind = 0` -> `{other}`"
        for machine in ("batch_plan", "batch_decision")
        for other in ("pass", "self.behind = 1")
    ),
    "requests that are made in one step are served together": (
        "lifecycle: reconsider from restarting when may_restart_all and wants_stop: "
        "ask_for_last twice",
        "lifecycle: stop from running: ask_for_last twice",
    ),
    "a request waits until the subtasks run": (
        "lifecycle: reconsider from restarting when may_restart_all and wants_stop: "
        "ask_for_last before restore_all",
    ),
    "while a checkpoint could be aborted, attempts have processes that still have to leave": tuple(
        f"lifecycle: {order} from running, stopping, restarting, finishing: "
        "settle_down before cancel_all"
        for order in GOES_DOWN_BY
    ),
    "no attempt is counted as leaving while the job goes on": tuple(
        "lifecycle: attempt_left from restarting, finishing, failing, canceling when "
        f"is_last_leaving: also from {state}"
        for state in ("running", "stopping")
    ),
    "no back-off is over before the job has begun": tuple(
        f"lifecycle: reconsider from restarting when may_restart_all and {stop}: also from created"
        for stop in ("not wants_stop", "wants_stop")
    ),
    "a job is asked to stop if, and only if, it is stopping or has yet to restart for that": (
        "lifecycle: reconsider from restarting when may_restart_all and not wants_stop: "
        "also from stopping",
        "lifecycle: reconsider from restarting when may_restart_all and wants_stop: "
        "also from running",
    ),
    "what is not down may not restart either, and both are ignored": (
        "lifecycle: reconsider from finishing when not is_down: also from restarting",
    ),
    NOT_UP: (
        "holder: event from starting, started when is_from_current: also from created",
        "holder: event_malformed from starting, started when is_from_current: also from created",
    ),
    ENDS_AT_ONCE: (
        *(
            f"lifecycle: {order} from running, stopping, restarting, finishing: also from created"
            for order in GOES_DOWN_BY
        ),
        "holder: fail_job from created, started when is_fatal: to started",
        "holder: fail_job from starting when is_fatal: also from created",
    ),
    "a coordinator that is broken has no requests that wait": (
        "holder: fail_job from starting when is_fatal: also from broken",
    ),
    "a coordinator that goes back has not failed the job since": (
        "holder: restored from restoring when is_failing: also from resetting",
    ),
    "while a subtask has attempts, no process waits beside them": (
        "vertex: abandon from ended: also from attempted",
    ),
    "a process speaks or waits at one place, whichever is asked first": (PLACE_ASKED,),
    "any number below 0 says that there is no place": ("vertex.place_of: `-1` -> `-2`",),
    STARTS_AT_ONCE: (
        "attempt: cancel from deploying, initializing, running when restarts: also from created",
        "attempt: restart from failed when is_current and may_restart: also from created",
    ),
    NEWEST_SPEAKS: ("attempt.release_process: `self.identity` -> `self.newest`",),
    "a process that speaks already is the newest": (
        "attempt: connect from scheduled when is_newer: adopt twice",
    ),
    "the job is given up in the same step, which cancels the attempt": (
        "attempt: fail from deploying, initializing, running when speaks and is_fatal: to running",
    ),
    "no checkpoint is being stored while a subtask starts, nor does the job go down": tuple(
        f"attempt: restart from failed when is_current and not may_restart: also from {state}"
        for state in ("deploying", "initializing")
    ),
    HEARD_ONCE: (
        "attempt: acknowledge from running when speaks: pass_acknowledgement twice",
        "attempt: decline from running when speaks: pass_decline twice",
        "attempt: confirm from initializing, running when speaks: pass_confirmation twice",
        "attempt: fail from deploying, initializing, running when speaks and is_fatal: "
        "give_job_up twice",
        "vertex: begin from idle: vacate twice",
        "vertex: lost from any state when is_known: pass_loss twice",
        "vertex: end from attempted: end_others twice",
        "holder: start_failed from starting when not is_fatal: fail_globally twice",
        "holder: start_failed from starting when is_fatal: give_job_up twice",
        "holder: restore_failed from restoring, resetting when not is_fatal: fail_globally twice",
        "holder: restore_failed from restoring, resetting when is_fatal: give_job_up twice",
        "holder: fail_job from created, started when is_fatal: give_job_up twice",
        "holder: fail_job from starting when not is_fatal: fail_globally twice",
        "holder: fail_job from starting when is_fatal: give_job_up twice",
        "holder: fail_job from started when not is_fatal and not is_failing: fail_globally twice",
        "holder: fail_job from broken when is_fatal: give_job_up twice",
        "holder: event_malformed from starting, started when is_from_current: fail_attempt twice",
    ),
    NOT_THERE: tuple(
        f"assignment: lost from {state} when is_only_one: also from {other}"
        for state in ("reading", "told")
        for other in ("absent", "owed")
    ),
    "an attempt without a place is ignored in every state": tuple(
        f"assignment: lost from absent, owed when not has_place: also from {state}"
        for state in ("reading", "told")
    ),
    OVER_BEFORE: (
        "request: submit from any state when has_ended: not from chosen",
        "request: submit_periodic from any state when has_ended: not from chosen",
    ),
    NONE_STARTS: ("request: reconsider from queued when may_trigger: also from chosen",),
    "what is put off is the oldest of what is owed, whatever enters behind it": (
        "post_commit: owe from put_off: begin before enter",
    ),
    NO_WORK: (
        "post_commit: owe from idle when not has_work: also from working",
        "post_commit: owe from idle when not has_work: also from put_off",
    ),
    "where no commit is under way, nothing waits once one was asked for": tuple(
        f"committer: {answer} has_more: also from idle" for answer in ANSWERED
    ),
    NO_SEND: (
        "snapshot: cancel from confirming when is_current: also from asked",
        "batch_snapshot: confirm from confirming when is_current and is_last: also from asked",
        "batch_snapshot: confirm from confirming when is_current and is_last: also from idle",
    ),
    "the first coordinator has the number 0, as the close of none has": (
        "recreation.restore_first: `self.generation` -> `self.closing`",
    ),
    "the close that fails is the one that is awaited, as the guard says": (
        "recreation.fail_for_it: `self.inner.fail_job(generation)` -> "
        "`self.inner.fail_job(self.closing)`",
    ),
    ONE_STEP: (
        "in_flight: show from empty when has_state: map before take",
        "in_flight: accept from shown: write before take",
    ),
}
"""Reason -> the names of the mutants that it is for."""
EXCUSED: dict[str, str] = {
    name: why
    for reasons in (OF_REASON, OF_CHECKPOINTS, OF_COMMITS)
    for why, names in reasons.items()
    for name in names
}
