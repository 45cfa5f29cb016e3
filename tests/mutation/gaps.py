"""Mutants that checker and runtime ought to find both, and do not yet: what is missing, and which
mutants it would find. An entry that both find is stale, and fails.
"""

from __future__ import annotations

LATE_FUTURE = "a test of the runtime in which the future of an earlier batch snapshot ends late"
EARLIER_SENDS = (
    "a test of the runtime in which sends awaited by an earlier batch snapshot end while another "
    "is confirming"
)
BATCH_SENDS = (
    "a claim of `batch` that sends of an earlier snapshot neither complete nor fail the one under "
    "way, and a test of the runtime that shows it"
)
TOLD = (
    "claims of `recreation` about what its coordinators are told: started, restored, closed, that "
    "each call is heard or dropped, and that the job fails for a close that did not end"
)
LATE_CLOSE = (
    "a test of the runtime in which a close that was given up ends, fails or is late while the "
    "next one is awaited, and after the job is over"
)
DROPPED = (
    "a test of the runtime with calls that wait for a successor that cannot be made, and for one "
    "that never comes because the job is over"
)
START_LATER = "a job that begins while its coordinator is being replaced, in `recreation` and run"
SPARE = (
    "a test of the runtime with a process that waits for a subtask's next attempt, and with one "
    "that waits beside the attempt that has reached the end, which then fails"
)
PLACES = "claims of `concurrent` about who is told of an outlived attempt, and which place leads"
LOST_LATER = (
    "a scenario of the holder in which an event is lost that was confirmed, while a snapshot waits"
)
COVERED = (
    "a test of the runtime in which one confirmation covers events from before a snapshot and "
    "events from after it"
)
THREE_PLACES = (
    "bounds of `concurrent` in which two of three places are vacant when a process comes, and a "
    "test of the runtime with three places"
)
FIRST_PLACE = (
    "bounds of `concurrent` with two subtasks and failures, and a test of the runtime in which the "
    "last attempt of the second subtask fails"
)
OLDEST = "a test of the runtime in which two more processes come than there are places"

KEPT = "a claim that each subtask's part of a completed checkpoint was kept"
LATE_REQUEST = (
    "a claim of `asked` that a request after the end of the job is refused while another waits"
)
REFUSED = "a claim that a process is told when another waits in its place"

MISSING: dict[str, tuple[str, ...]] = {
    REFUSED: (
        "attempt.keep_waiting: `self.scheduler.refuse(self.waiting)` -> `pass`",
        "attempt.keep_waiting: `self.waiting > 0` -> `self.waiting > 1`",
        "attempt.keep_waiting: `self.waiting > 0` -> `self.waiting <= 0`",
    ),
    LATE_REQUEST: ("request: submit from queued when not has_ended: regardless of has_ended",),
    LATE_FUTURE: (
        "batch_snapshot: succeed from asked when is_current and has_in_flight: regardless of "
        "is_current",
        "batch_snapshot: succeed from any state but asked: refused",
        "batch_snapshot: fail from asked when is_current: regardless of is_current",
        "batch_snapshot: fail from asked when not is_current: refused",
        "batch_snapshot: fail from any state but asked: refused",
    ),
    EARLIER_SENDS: (
        "batch_snapshot: confirm from confirming when is_current and not is_last: regardless of "
        "is_current",
        "batch_snapshot: confirm from confirming when not is_current: refused",
        "batch_snapshot: confirm from any state but confirming: refused",
        "batch_snapshot: lose from confirming when not is_current: refused",
        "batch_snapshot: lose from any state but confirming: refused",
    ),
    BATCH_SENDS: (
        "batch_snapshot: confirm from confirming when is_current and is_last: regardless of "
        "is_current",
        "batch_snapshot: lose from confirming when is_current: regardless of is_current",
    ),
    TOLD: (
        "recreation: start from fresh, caught_up: without start_inner",
        "recreation: reset from fresh: without restore_first",
        "recreation: call from broken, closed: without drop_it",
        "recreation: close_failed from deferred when is_awaited: without fail_for_it",
        "recreation: close_late from deferred when is_awaited: without fail_for_it",
        "recreation: close from any state but making, closed: without close_inner",
        "recreation.start_inner: `self.inner.start(self.generation)` -> `pass`",
        "recreation.restore_first: `self.inner.restore(self.generation)` -> `pass`",
        "recreation.drop_deferred: `self.inner.drop(call)` -> `pass`",
        "recreation.drop_it: `self.inner.drop(call)` -> `pass`",
        "recreation.fail_for_it: `self.inner.fail_job(generation)` -> `pass`",
        "recreation.close_inner: `self.inner.close(self.generation)` -> `pass`",
    ),
    LATE_CLOSE: (
        "recreation: closed from deferred when is_awaited: regardless of is_awaited",
        "recreation: closed from deferred when not is_awaited: refused",
        "recreation: closed from any state but fresh, deferred: refused",
        "recreation: close_failed from deferred when is_awaited: regardless of is_awaited",
        "recreation: close_failed from deferred when not is_awaited: refused",
        "recreation: close_failed from any state but fresh, deferred: refused",
        "recreation: close_late from deferred when is_awaited: regardless of is_awaited",
        "recreation: close_late from deferred when not is_awaited: refused",
        "recreation: close_late from any state but fresh, deferred: refused",
        "recreation.replace_inner: `self.closing = self.generation` -> `pass`",
        "recreation.replace_inner: `self.generation += 1` -> `self.generation += 0`",
        "recreation.replace_inner: `self.generation += 1` -> `pass`",
    ),
    DROPPED: (
        "recreation: unmade from making: without drop_deferred",
        "recreation: close from any state but making, closed: without drop_deferred",
    ),
    START_LATER: ("recreation: start from deferred, broken: without note_start",),
    SPARE: (
        "vertex.let_wait: `self.system.attempt[self.spare()].connect(identity)` -> `pass`",
        "vertex.spare: `self.first() + (1 if self.leading == 0 else 0)` -> `self.first() - (1 "
        "if self.leading == 0 else 0)`",
        "vertex.spare: `1 if self.leading == 0 else 0` -> `1 if self.leading == 0 else 1`",
        "vertex.take_waiting: `self.system.attempt[self.leader()].take_over(waiting)` -> `pass`",
        "ConcurrentJob.attempt: take_over from any state: without adopt_from_other",
        "vertex: connect from idle: without pass_to_leading",
        "vertex: connect from ended: without let_wait",
        "vertex: attempt_failed from ended when is_leading: without take_waiting",
        "vertex: abandon from ended: without take_waiting",
    ),
    PLACES: (
        "vertex.report_outlived: `self.record.outlived(place, "
        "self.system.attempt[place].number, reason)` -> `pass`",
        "vertex: attempt_failed from attempted when has_others: without report_outlived",
        "vertex: attempt_failed from attempted when not has_others: without lead",
    ),
    LOST_LATER: (
        "gateway.fail_waiting: `number - self.confirmed > 0` -> `number - self.confirmed >= 0`",
        "gateway.fail_waiting: `number - self.confirmed > 0` -> `number + self.confirmed > 0`",
    ),
    COVERED: ("gateway.settle: `count < self.awaited` -> `count >= self.awaited`",),
    THREE_PLACES: (
        "vertex.start_beside: `self.is_vacant(place) and (chosen < 0 or self.is_older(place, "
        "chosen))` -> `self.is_vacant(place) or (chosen < 0 or self.is_older(place, chosen))`",
        "vertex.start_beside: `chosen < 0` -> `chosen <= 0`",
        "vertex.start_beside: `chosen < 0` -> `chosen < 1`",
        "vertex.start_beside: `self.is_older(place, chosen)` -> `not self.is_older(place, chosen)`",
    ),
    FIRST_PLACE: ("vertex.has_others: `self.first() + i != place` -> `self.first() - i != place`",),
    OLDEST: ("vertex.replace_oldest: `chosen = self.first() + i` -> `pass`",),
    KEPT: (
        "checkpoint.count_subtask: `self.driver.keep(checkpoint, subtask, snapshot)` -> `pass`",
    ),
}
"""What is missing -> the mutants that it would find."""
GAPS: dict[str, str] = {name: missing for missing, names in MISSING.items() for name in names}
