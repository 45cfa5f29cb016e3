"""Which mutants are not found by the checker, the runtime or both, and why.

What neither finds is equivalent: nobody could tell it from the right machine. Rows that no closed
system takes have their reasons in `epochgate.models.untaken`.
"""

from __future__ import annotations

CLOSED = "what is not marked cannot be what keeps the gateway closed, so that it stays closed"

EQUIVALENT: dict[str, str] = {
    "attempt: lost from any state when not speaks and is_waiting: regardless of speaks": (
        "the process that waits is never the one that speaks"
    ),
    "checkpoint: coordinator_ready from triggering when is_current and is_last_coordinator: "
    "without count_coordinator": (
        "the count is read while the checkpoint is triggering, and begins anew with the next"
    ),
    "gateway: mark from open when is_newer and has_room: regardless of has_room": (
        "an open gateway has no marks, and there is room for one"
    ),
    "gateway: reopen from closed when is_marked and not stays_closed and is_marked_for_more: "
    "regardless of is_marked": CLOSED,
    "gateway: reopen from closed when is_marked and not stays_closed and not "
    "is_marked_for_more: regardless of is_marked": CLOSED,
    "gateway: reopen from closed when is_marked and not stays_closed and not "
    "is_marked_for_more: regardless of stays_closed": (
        "a gateway that stays closed for another checkpoint is marked for that one too"
    ),
    "task: event from running when not is_next and is_old: regardless of is_next": (
        "the next number is never an old one"
    ),
}
UNSEEN_BY_THE_CHECKER: dict[str, str] = {
    "holder: fail_job from started when not is_failing: regardless of is_failing": (
        "a job that goes down already ignores the second order; a scenario of the holder alone "
        "holds it to Flink's rule H8"
    ),
    "gateway: lose from any state when is_bound: without fail_waiting": (
        "in a job the attempt goes down in the same step, and gives up everything on its wire"
    ),
    "gateway: renew from open: without give_up_in_flight": (
        "in a job the attempt before has gone down, and has given up everything on its wire"
    ),
}
UNSEEN_BY_THE_RUNTIME: dict[str, str] = {
    "snapshot: confirm from confirming when is_last: without count_down": (
        "the count is read while the snapshot waits, and begins anew with the next: there are "
        "only more states"
    ),
}
