"""The mutants that are not found by the checker, the runtime or both, and why.

What neither finds is equivalent: no run tells it from the right machine. Rows that no closed
system takes have their reasons in `epochgate.models.closed.untaken`.
"""

from __future__ import annotations

MARKED = (
    "gateways are marked for no other checkpoint than the one that their coordinator is asked for"
)
REOPENED = (
    "in a job only the checkpoint under way reopens gateways, and they are marked for no other; a "
    "scenario of the gateway alone holds it to rule G4"
)

GONE = "an attempt that is gone is not there"
NO_PLACE = "an attempt without a place has nothing to leave"

EQUAL = "the two numbers are equal then"
IDENTITIES = "no two attempts have the same identity"
NEWER = "a job marks with a new number each time; a scenario of the gateway alone shows it"
ONCE = "no wire repeats a confirmation; a scenario of the gateway alone shows it"
RENEWED = "in a job the attempt before has gone down, and has given up everything on its wire"
DECIDED = (
    "a send is confirmed or lost, and not both; what is lost is one of those that the snapshot "
    "waits for"
)
WHY_IT_LEAVES = "which of several reasons a process leaves for is told, and changes nothing"
ALONE = "a subtask of this job has no other attempts; the variant with some overrides this method"
FIRST_DOWN = (
    "in a job the attempt goes down before this, which aborts the checkpoint; a scenario of the "
    "holder alone shows it"
)
CONNECTS_ONCE = "no process connects twice; a scenario shows it"
ONLY_ALLOWS = (
    "it only allows what would be an error, and the closed system never comes to that; a test of "
    "the runtime shows it"
)
NO_OVERLAP = (
    "in the closed system one checkpoint is under way at a time; a test of the runtime shows what "
    "belongs to a later one"
)
NOT_BESIDE = (
    "the closed system of concurrent attempts takes no checkpoint; a test of the runtime does"
)
DOWN = (
    "in a job the attempt goes down in the same step, which fails the snapshot; a scenario of the "
    "holder alone shows it"
)
NONE_LOST = "the surroundings do not count what is lost; a scenario shows that 0 are"

ONE_ASKED = (
    "the closed job with clients has one coordinator, which goes back only after it has failed; a "
    "scenario has two"
)

ONE_FILE = "a source of the closed system has one file; a test of the runtime has several"
OF_HINTS = (
    "tests of the runtime see which files are found; the closed system sees, too, when a queue is "
    "asked, and rests"
)
COVERED_FIRST = "the row for what is covered as a whole is asked first"
DUE_FIRST = "the row for a listing that is due is asked first"
IN_ORDER = "the rows ask in order where the number lies, and a number lies in one place"

MADE_WHOLE = "what makes a checkpoint whole has not come before: it would have made it whole then"
SMALLER_GRANT = "who is granted less asks sooner, and is answered as before"

EQUIVALENT: dict[str, str] = {
    "removal: commit from due when not covers_all: regardless of covers_all": COVERED_FIRST,
    "receive_window.watch: `arrived_bytes > half_bytes` -> `arrived_bytes >= half_bytes`": EQUAL,
    "receive_window.watch: `arrived_messages > half_messages` -> "
    "`arrived_messages >= half_messages`": EQUAL,
    "receive_window.watch: `arrived_messages - half_messages if arrived_messages > half_messages "
    "else 0` -> `arrived_messages - half_messages if arrived_messages > half_messages else 1`": (
        "the bytes that are watched for are those of one message at least"
    ),
    "send_window.allow_alone: `sent + size` -> `sent - size`": SMALLER_GRANT,
    "send_window.refuse: `size > self.refused` -> `size >= self.refused`": EQUAL,
    "send_window.most_left: `beside > half` -> `beside >= half`": EQUAL,
    "send_window.most_left: `beside > 0` -> `beside >= 0`": EQUAL,
    "send_window.tell: `self.refused = 0` -> `self.refused = 1`": (
        "a byte fits wherever half of the bound is free"
    ),
    "committable_collector: receive from collecting when is_new and makes_whole and not is_last: "
    "regardless of is_new": MADE_WHOLE,
    "batch_decision: newest from reading when not is_in_force and is_set_back: regardless of "
    "is_in_force": "a version that is in force is not older than itself",
    "batch_decision.ask_forget: `self.batch > self.system.retained` -> "
    "`self.batch >= self.system.retained`": "0 is for none, whichever branch says it",
    "batch_plan: missing from looking when not is_overtaken and is_current: without go_on": (
        "an enumerator that goes on is told nothing"
    ),
    "batch_plan.ask_forget: `self.batch > self.system.retained` -> "
    "`self.batch >= self.system.retained`": "0 is for none, whichever branch says it",
    "control_update: taken from writing when not is_mine and not is_certain: regardless of "
    "is_mine": "the row for the update's own number is asked first",
    "control_update.ask_forget: `self.version + later > self.system.retained` -> "
    "`self.version + later >= self.system.retained`": ("0 is for none, whichever branch says it"),
    "discovery: silent from hearing when not is_listing_due and has_unsettled: regardless of "
    "is_listing_due": DUE_FIRST,
    "discovery: confirmed from confirming when not is_listing_due: regardless of is_listing_due": (
        DUE_FIRST
    ),
    "query_batch: looked from looking when not is_strange and not is_behind and is_ahead: "
    "regardless of is_behind": IN_ORDER,
    "query_batch: looked from looking when not is_strange and not is_behind and not is_ahead and "
    "is_there and is_other: regardless of is_behind": IN_ORDER,
    "query_batch: looked from looking when not is_strange and not is_behind and not is_ahead and "
    "is_there and is_other: regardless of is_ahead": IN_ORDER,
    "query_batch: looked from looking when not is_strange and not is_behind and not is_ahead and "
    "is_there and not is_other: regardless of is_behind": IN_ORDER,
    "query_batch: looked from looking when not is_strange and not is_behind and not is_ahead and "
    "is_there and not is_other: regardless of is_ahead": IN_ORDER,
    "checkpoint.forget_parts: `self.subtasks_due = 0` -> `self.subtasks_due = 1`": (
        "the count is set with each checkpoint, and read while it is pending"
    ),
    "checkpoint.forget_parts: `self.ends_due = 0` -> `self.ends_due = 1`": (
        "the count is set with each checkpoint, and read when it is completed"
    ),
    "lifecycle: attempt_running from any state when is_last_running: regardless of "
    "is_last_running": "a request that waits looks by itself whether every subtask runs",
    "lifecycle: attempt_left from restarting, finishing, failing, canceling when is_last_leaving: "
    "regardless of is_last_leaving": "the rows of `reconsider` ask again whether the job is down",
    "attempt.adopt: `identity > self.newest` -> `identity >= self.newest`": EQUAL,
    "checkpoint.forget_parts: `self.coordinators_due = 0` -> `self.coordinators_due = 1`": (
        "the count is read while the checkpoint is triggering, and is set again with the next"
    ),
    "assignment: ready from any state but returned when has_free_place: regardless of "
    "has_free_place": ("a subtask has as many places as it may have attempts at once"),
    "assignment: request from any state but returned when not is_there and is_gone: regardless "
    "of is_there": GONE,
    "assignment: speak from any state but returned when not is_there and is_gone: regardless of "
    "is_there": GONE,
    "assignment: lost from reading, told when not is_only_one and not has_place: regardless of "
    "is_only_one": ("the only reader has a place"),
    "gateway.settle: `count < self.awaited` -> `count <= self.awaited`": EQUAL,
    "checkpoint: coordinator_ready from triggering when is_current and is_last_coordinator: "
    "without count_coordinator": (
        "the count is read while the checkpoint is triggering, and is set again with the next"
    ),
    "snapshot: succeed from asked when is_current and may_close and has_in_flight: regardless "
    "of is_current": MARKED,
    "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
    "regardless of is_current": MARKED,
    "request: submit from chosen when not has_ended: regardless of has_ended": (
        "a checkpoint that is under way is over before the job ends"
    ),
    "task: event from running, ended when not is_next and is_old: regardless of is_next": (
        "the next number is never an old one"
    ),
    "gateway.fail_waiting: `number - self.confirmed > 0` -> `number - self.confirmed >= 0`": (
        DECIDED
    ),
    "gateway.fail_waiting: `number - self.confirmed > 0` -> `number + self.confirmed > 0`": (
        DECIDED
    ),
    "gateway.fail_waiting: `number - self.confirmed > 0 and number - self.confirmed <= "
    "self.awaited` -> `number - self.confirmed > 0 or number - self.confirmed <= self.awaited`": (
        DECIDED
    ),
    "gateway.give_up_in_flight: `self.awaited > 0` -> `self.awaited >= 0`": (
        "in a job the attempt goes down before this, which aborts the checkpoint, and a snapshot "
        "that does not wait ignores a loss"
    ),
    "vertex.start_beside: `chosen = self.first()` -> `pass`": (
        "a place is vacant, as the guard of the row says, and is chosen behind it"
    ),
    "snapshot.close_gateways: `self.awaited = 0` -> `pass`": (
        "the count is 0 whenever no snapshot waits: `count_down` and `stop_waiting` leave it so"
    ),
}
REFUSED_ANYWAY = "it is refused either way, and the closed system does not look at the reason"

UNSEEN_BY_THE_CHECKER: dict[str, str] = {
    "reading: complete from owed when not holds_all: without hold_covered": ONE_FILE,
    "removal: commit from due when not covers_all: without release_covered": ONE_FILE,
    "committable_collector: receive from collecting when is_new and makes_whole and is_last: "
    "regardless of is_new": f"{MADE_WHOLE}; a scenario of the collector alone shows it",
    "subtask_committer: retry_later from committing when is_asked and not may_retry: without "
    "note_rest": "the job goes down, and stores nothing more; a scenario shows what is noted",
    "subtask_committer: running from away when is_done: without settle": (
        "an attempt that begins once the last checkpoint is stored has that one to commit, or will "
        "have; a scenario of the committer alone shows it"
    ),
    "attempt.note_end: `self.end_others()` -> `pass`": ALONE,
    "attempt.renew: `self.count_attempt()` -> `pass`": ALONE,
    "attempt.reset_coordinators: `self.admit_others()` -> `pass`": ALONE,
    "assignment: lost from reading, told when not is_only_one and has_place: regardless of "
    "has_place": NO_PLACE,
    "assignment: lost from absent, owed when has_place: regardless of has_place": NO_PLACE,
    "vertex.is_older: `self.system.attempt[place].identity < "
    "self.system.attempt[other].identity` -> `self.system.attempt[place].identity <= "
    "self.system.attempt[other].identity`": IDENTITIES,
    "vertex: connect from attempted when not is_expecting and not has_room: regardless of "
    "is_expecting": (
        "while the leading place expects a process all others are vacant, so that there is room"
    ),
    "attempt: lost from any state when not speaks and is_waiting: regardless of speaks": (
        "the process that waits is never the one that speaks"
    ),
    "vertex.place_of: `-1` -> `-0`": (
        "the first place ignores a process that neither speaks nor waits there"
    ),
    "receive_window.watch: `arrived_bytes - half_bytes if arrived_bytes > half_bytes else 0` -> "
    "`arrived_bytes - half_bytes if arrived_bytes > half_bytes else 1`": (
        "each message of the closed system has bytes"
    ),
    "attempt: fail from deploying, initializing when speaks and not is_fatal: regardless of "
    "is_fatal": (
        "a process of the closed job reports a fatal error only once it has restored its state; "
        "a scenario does while the attempt starts"
    ),
    "resident: cleared from clearing when is_clean and has_room and is_stuck: regardless of "
    "is_clean": WHY_IT_LEAVES,
    "resident: cleared from clearing when is_clean and has_room and is_stuck: regardless of "
    "has_room": WHY_IT_LEAVES,
    "resident: cleared from clearing when is_clean and not has_room: regardless of is_clean": (
        WHY_IT_LEAVES
    ),
    "lifecycle: cancel from created: without tell_cause": (
        "it tells people why the job ends, and nothing depends on it; a scenario shows it"
    ),
    "query_batch: looked from looking when not is_strange and is_behind: regardless of "
    "is_strange": REFUSED_ANYWAY,
    "query_batch: looked from looking when not is_strange and not is_behind and is_ahead: "
    "regardless of is_strange": REFUSED_ANYWAY,
    "query_batch: looked from looking when not is_strange and not is_behind and not is_ahead and "
    "is_there and is_other: regardless of is_strange": REFUSED_ANYWAY,
    "query_batch: unsure from recording when may_retry: without count_retry": (
        "the closed system loses a few answers and no more, so that recording ends all the same; a "
        "test of the runtime counts the tries"
    ),
    "committer: already_committed from committing when is_asked and not has_more: without "
    "reconsider": (
        "the sink of the jobs that end answers `committed`, and the system of commits does not "
        "wait for the end; a scenario shows it"
    ),
    "post_commit.begin: `self.tries = 0` -> `pass`": (
        "the work of the closed system fails whatever its tries; a scenario shows that the work of "
        "each commit has tries of its own"
    ),
    "committer.settle: `self.sink.settled(checkpoint)` -> `pass`": (
        "it tells people what is committed, and nothing depends on it; a scenario shows it"
    ),
    "attempt.send_restore: `self.scheduler.starting(self.number)` -> `pass`": (
        "in the closed jobs the time for a start runs out at any moment, measured or not"
    ),
    "assignment.send_everything: `self.readers.send(attempt, split)` -> `pass`": NOT_BESIDE,
    "assignment.send_everything: `self.checkpointed.push(split)` -> `pass`": NOT_BESIDE,
    "assignment.is_old: `attempt < self.attempts` -> `attempt <= self.attempts`": ONLY_ALLOWS,
    "assignment.is_gone: `self.is_old(attempt) and (not self.has_place(attempt))` -> "
    "`self.is_old(attempt) or not self.has_place(attempt)`": ONLY_ALLOWS,
    "assignment.forget_completed: `self.checkpointed.push(split)` -> `pass`": NO_OVERLAP,
    "assignment.forget_completed: `self.belongs_to.push(number)` -> `pass`": NO_OVERLAP,
    "attempt.is_newer: `identity > self.newest` -> `identity >= self.newest`": CONNECTS_ONCE,
    "checkpoint.has_coordinators: `self.system.coordinators > 0` -> `self.system.coordinators "
    ">= 0`": "a closed system has a coordinator; a scenario of a job without one shows it",
    "gateway.give_up_in_flight: `self.awaited > 0` -> `self.awaited <= 0`": FIRST_DOWN,
    "gateway.give_up_in_flight: `self.awaited > 0` -> `self.awaited > 1`": FIRST_DOWN,
    "gateway.give_up_in_flight: `self.system.snapshot[self.coordinator].lose(self.latest, "
    "reason)` -> `pass`": FIRST_DOWN,
    "gateway.give_up_for_new: `self.give_up_in_flight('a new attempt takes the place of the "
    "old')` -> `pass`": RENEWED,
    "gateway.may_mark: `self.state == OPEN and self.is_newer(checkpoint)` -> `self.state == OPEN "
    "or self.is_newer(checkpoint)`": (
        "in a job all gateways are open when a checkpoint begins, and its number is newer; a "
        "scenario of the holder alone shows it"
    ),
    "snapshot.may_mark: `all((self.system.gateway[self.coordinator, s].may_mark(checkpoint) for "
    "s in range(self.system.subtasks)))` -> `any((self.system.gateway[self.coordinator, "
    "s].may_mark(checkpoint) for s in range(self.system.subtasks)))`": (
        "in a job the gateways of a coordinator are marked together, and a renewed one may be "
        "marked always; a scenario of the holder alone shows it"
    ),
    "gateway.is_newer: `checkpoint > self.latest` -> `checkpoint >= self.latest`": NEWER,
    "gateway.is_news: `self.confirmed < number <= self.sent` -> `self.confirmed <= number <= "
    "self.sent`": ONCE,
    "gateway.fail_waiting: `number - self.confirmed > 0` -> `number - self.confirmed <= 0`": DOWN,
    "gateway.fail_waiting: `number - self.confirmed > 0` -> `number - self.confirmed > 1`": DOWN,
    "gateway.fail_waiting: `number - self.confirmed <= self.awaited` -> `number - "
    "self.confirmed < self.awaited`": DOWN,
    "gateway.fail_waiting: `number - self.confirmed <= self.awaited` -> `number + "
    "self.confirmed <= self.awaited`": DOWN,
    "gateway.fail_waiting: `number - self.confirmed <= self.awaited` -> `number - "
    "self.confirmed > self.awaited`": DOWN,
    "gateway.fail_waiting: `self.system.snapshot[self.coordinator].lose(self.latest, reason)` "
    "-> `pass`": DOWN,
    "gateway.give_up_in_flight: `count > 0` -> `count >= 0`": NONE_LOST,
    "holder: fail_job from started when not is_fatal and is_failing: regardless of is_fatal": (
        "that takes two failures, and the closed job has one; a scenario has both"
    ),
    "holder: start from created when not is_failing and begins_from_batch: regardless of "
    "is_failing": (
        "a coordinator that has failed the job is not started with what it restores; a scenario "
        "shows that it is not restored either"
    ),
    "holder: reset from starting, broken when not is_to_batch: without refuse_requests": ONE_ASKED,
    "holder: reset from starting, broken when is_to_batch: without refuse_requests": ONE_ASKED,
    "snapshot: lose from confirming: without report_failed": DOWN,
    "snapshot: lose from confirming: ignored": DOWN,
    "holder: fail_job from started when not is_fatal and not is_failing: regardless of "
    "is_failing": (
        "a job that goes down already ignores the second order; a scenario of the holder alone "
        "holds it to Flink's rule H8"
    ),
    "gateway: lose from any state when is_bound: without fail_waiting": (
        "in a job the attempt goes down in the same step, and gives up everything on its wire"
    ),
    "gateway: confirm from any state when is_bound and is_news: regardless of is_news": (
        "the closed jobs repeat the newest confirmation alone, which settles nothing; a "
        "scenario of the gateway alone holds an older one to rule G6"
    ),
    "gateway: reopen from marked when is_marked: regardless of is_marked": REOPENED,
    "gateway: reopen from closed when is_marked: regardless of is_marked": REOPENED,
    "gateway: renew from open: without give_up_for_new": RENEWED,
    "snapshot.may_close: `all((self.system.gateway[self.coordinator, s].is_marked(checkpoint) "
    "for s in range(self.system.subtasks)))` -> `any((self.system.gateway[self.coordinator, "
    "s].is_marked(checkpoint) for s in range(self.system.subtasks)))`": (
        "in a job the checkpoint is aborted in the step in which one of its gateways loses the "
        "mark; a scenario of the holder alone shows it"
    ),
}
COUNT = (
    "the count is set when the snapshot begins to wait, and read while it waits: there are only "
    "more states"
)
COUNT_OF_PARTS = (
    "the count is set with each checkpoint and read while it is pending: there are only more states"
)
NUMBER = "the numbers only have to differ, and to be known: they do not have to grow"

AWAITED_BY_BOTH = (
    "a send in flight that an earlier snapshot awaited is awaited by this one too, and ends for "
    "both at once"
)
NO_MAKER = (
    "the number is read while there is an enumerator, or a coordinator: there are only more states"
)
HELD_UNTIL_IT_CHOOSES = (
    "a coordinator that was restored is given up with its choice: there are only other states"
)
SET_AGAIN = "number and tries are set again with the newest version: there are only other states"
OVER_ANYWAY = (
    "the worker takes the refusal for a failure of its attempt, which is over and ignores that"
)
UNPLACED = "the number is read while the place is taken: there are only more states"
NONE_PENDING = (
    "without a pending change the coordinator does the same in both states: there are only more"
)

UNSEEN_BY_THE_RUNTIME: dict[str, str] = {
    "discovery: failed from hearing, confirming when is_listing_due: without leave_alone": OF_HINTS,
    "discovery: heard from hearing: without note_answer": OF_HINTS,
    "discovery: silent from hearing when is_listing_due: without note_answer": OF_HINTS,
    "discovery: silent from hearing when not is_listing_due and not has_unsettled: "
    "without note_answer": OF_HINTS,
    "discovery: silent from hearing when not is_listing_due and not has_unsettled: "
    "ignored": OF_HINTS,
    "discovery: confirmed from confirming when is_listing_due: without ask_list": OF_HINTS,
    "discovery: silent from hearing when is_listing_due: regardless of is_listing_due": OF_HINTS,
    "discovery: silent from hearing when not is_listing_due and has_unsettled: "
    "without note_answer": OF_HINTS,
    "discovery: silent from hearing when not is_listing_due and not has_unsettled: "
    "without ask_hear": OF_HINTS,
    "discovery: confirmed from confirming when is_listing_due: ignored": OF_HINTS,
    "reading: complete from owed when not holds_all: regardless of holds_all": COVERED_FIRST,
    "discovery: silent from hearing when not is_listing_due and has_unsettled: "
    "regardless of has_unsettled": "a look at no files finds none",
    "send_window: send from any state when not fits and is_alone: regardless of fits": (
        SMALLER_GRANT
    ),
    "send_window.allow: `over + self.system.unconfirmed_bytes_max` -> "
    "`over - self.system.unconfirmed_bytes_max`": SMALLER_GRANT,
    "send_window: want from any state when not has_room: regardless of has_room": (
        "the shell looks at once whether what it watches for is there, and tells then"
    ),
    "changes: completed from owed when is_asked and not covers_all: regardless of covers_all": (
        NONE_PENDING
    ),
    "changes: restored from owed when is_asked and not covers_all: regardless of covers_all": (
        NONE_PENDING
    ),
    "control_update: update from idle: without begin": SET_AGAIN,
    "control_update.begin: `self.version = 0` -> `pass`": SET_AGAIN,
    "control_update.begin: `self.version = 0` -> `self.version = 1`": SET_AGAIN,
    "control_update.begin: `self.tries = 0` -> `pass`": SET_AGAIN,
    "control_update.begin: `self.tries = 0` -> `self.tries = 1`": SET_AGAIN,
    "batch_decision.give_up_maker: `self.behind = 0` -> `pass`": NO_MAKER,
    "batch_decision.give_up_maker: `self.behind = 0` -> `self.behind = 1`": NO_MAKER,
    "batch_plan.give_up_maker: `self.behind = 0` -> `pass`": NO_MAKER,
    "batch_plan.give_up_maker: `self.behind = 0` -> `self.behind = 1`": NO_MAKER,
    "assignment.free: `self.attempt[place] = 0` -> `pass`": UNPLACED,
    "assignment.free: `self.attempt[place] = 0` -> `self.attempt[place] = 1`": UNPLACED,
    "checkpoint.forget_parts: `self.coordinators_due = 0` -> `pass`": COUNT_OF_PARTS,
    "checkpoint.forget_parts: `self.ends_due = 0` -> `pass`": COUNT_OF_PARTS,
    "checkpoint.forget_parts: `self.subtasks_due = 0` -> `pass`": COUNT_OF_PARTS,
    "snapshot.stop_waiting: `self.awaited = 0` -> `pass`": COUNT,
    "snapshot.stop_waiting: `self.awaited = 0` -> `self.awaited = 1`": COUNT,
    "batch_snapshot.stop_waiting: `self.awaited = 0` -> `pass`": COUNT,
    "batch_snapshot.stop_waiting: `self.awaited = 0` -> `self.awaited = 1`": COUNT,
    "batch_snapshot: confirm from confirming when is_current and is_last: without "
    "count_down": COUNT,
    "batch_snapshot: lose from confirming when is_current: without stop_waiting": COUNT,
    "batch_snapshot: cancel from any state but idle: without stop_waiting": COUNT,
    "batch_snapshot: confirm from confirming when is_current and is_last: regardless of "
    "is_current": AWAITED_BY_BOTH,
    "batch_snapshot: lose from confirming when is_current: regardless of is_current": (
        AWAITED_BY_BOTH
    ),
    "batch_snapshot.begin: `self.number += 1` -> `self.number -= 1`": NUMBER,
    "recreation.replace_inner: `self.generation += 1` -> `self.generation -= 1`": NUMBER,
    "recreation.skip_one: `self.generation += 1` -> `self.generation -= 1`": NUMBER,
    "recreation.skip_one: `self.generation += 1` -> `self.generation += 0`": NUMBER,
    "recreation.skip_one: `self.generation += 1` -> `pass`": NUMBER,
    "recreation: reset from deferred: without skip_one": NUMBER,
    "snapshot: confirm from confirming when is_last: without count_down": (
        "the count is read while the snapshot waits, and is set again with the next: there are "
        "only more states"
    ),
    "task: restore from finished, failed: refused": OVER_ANYWAY,
    "task: event from finished, failed: refused": OVER_ANYWAY,
    "task: barrier from finished, failed: refused": OVER_ANYWAY,
    "task: finish from finished, failed: refused": OVER_ANYWAY,
    "task: end_input from any state but created, running: refused": (
        "the worker asks the program for no more work after the end"
    ),
    "task: fail from finished, failed: refused": (
        "the worker of an attempt that is over calls no code that could fail"
    ),
}
