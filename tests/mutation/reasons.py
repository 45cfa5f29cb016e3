"""Which mutants are not found by the checker, the runtime or both, and why.

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
UNHEARD = "the enumerator of the closed system does nothing with what a reader says"

EQUAL = "the two numbers are equal then"
IDENTITIES = "no two attempts have the same identity"
NEWER = "a job marks with a new number each time; a scenario of the gateway alone shows it"
ONCE = "no wire repeats a confirmation; a scenario of the gateway alone shows it"
DOWN = (
    "in a job the attempt goes down in the same step, which fails the snapshot; a scenario of the "
    "holder alone shows it"
)
NONE_LOST = "the surroundings do not count what is lost; a scenario shows that 0 are"

EQUIVALENT: dict[str, str] = {
    "checkpoint.forget_parts: `self.subtasks_due = 0` -> `self.subtasks_due = 1`": (
        "the count is set with each checkpoint, and read while it is pending"
    ),
    "checkpoint.forget_parts: `self.ends_due = 0` -> `self.ends_due = 1`": (
        "the count is set with each checkpoint, and read when it is completed"
    ),
    "attempt.note_end: `self.end_others()` -> `pass`": (
        "a subtask of this job has no other attempts; the variant with some overrides `end_others`"
    ),
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
    "assignment: lost from reading, told when not is_only_one and has_place: regardless of "
    "has_place": NO_PLACE,
    "assignment: lost from reading, told when not is_only_one and not has_place: regardless of "
    "is_only_one": ("the only reader has a place"),
    "assignment: lost from absent, owed when has_place: regardless of has_place": NO_PLACE,
    "gateway.settle: `count < self.awaited` -> `count <= self.awaited`": EQUAL,
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
    "snapshot.may_mark: `all((self.system.gateway[self.coordinator, s].may_mark(checkpoint) for "
    "s in range(self.system.subtasks)))` -> `any((self.system.gateway[self.coordinator, "
    "s].may_mark(checkpoint) for s in range(self.system.subtasks)))`": (
        "the gateways of a coordinator are marked together, and a renewed one may be marked always"
    ),
    "snapshot.close_gateways: `self.awaited = 0` -> `pass`": (
        "the count is 0 whenever no snapshot waits: `count_down` and `stop_waiting` leave it so"
    ),
}
UNSEEN_BY_THE_CHECKER: dict[str, str] = {
    "attempt.send_restore: `self.scheduler.starting(self.number)` -> `pass`": (
        "in the closed jobs the time for a start runs out at any moment, measured or not"
    ),
    "assignment: list_all from any state but returned when not may_miss_some: without "
    "list_assigned": ("the list is handed out, and changes nothing in the closed system"),
    "assignment: speak from reading, told when is_there: regardless of is_there": UNHEARD,
    "assignment: speak from reading, told when is_there: without pass_event_on": UNHEARD,
    "checkpoint.count_subtask: `self.has_acknowledged[subtask] = True` -> "
    "`self.has_acknowledged[subtask] = False`": (
        "no process acknowledges twice; a scenario of a repeated acknowledgement shows it"
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
    "gateway: renew from open: without give_up_for_new": (
        "in a job the attempt before has gone down, and has given up everything on its wire"
    ),
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
NUMBER = "the numbers only have to differ, and to be known: they do not have to grow"

UNSEEN_BY_THE_RUNTIME: dict[str, str] = {
    "checkpoint.forget_parts: `self.ends_due = 0` -> `pass`": (
        "the count is set with each checkpoint and read while it is pending: there are only more "
        "states"
    ),
    "checkpoint.forget_parts: `self.subtasks_due = 0` -> `pass`": (
        "the count is set with each checkpoint and read while it is pending: there are only more "
        "states"
    ),
    "snapshot.stop_waiting: `self.awaited = 0` -> `pass`": COUNT,
    "snapshot.stop_waiting: `self.awaited = 0` -> `self.awaited = 1`": COUNT,
    "batch_snapshot.stop_waiting: `self.awaited = 0` -> `pass`": COUNT,
    "batch_snapshot.stop_waiting: `self.awaited = 0` -> `self.awaited = 1`": COUNT,
    "batch_snapshot: confirm from confirming when is_current and is_last: without "
    "count_down": COUNT,
    "batch_snapshot: lose from confirming when is_current: without stop_waiting": COUNT,
    "batch_snapshot: cancel from any state but idle: without stop_waiting": COUNT,
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
    "task: restore from finished, failed: refused": (
        "the worker takes the refusal for a failure of its attempt, which is over and ignores that"
    ),
}
