"""Why some mutants are not found: by neither side, by the checker, or by the runtime.

Some are equivalent: nobody could tell them from the right machine. Others show a blind spot, and
the reason says which. Rows that no closed system takes have their reasons in
`epochgate.models.untaken`.
"""

from __future__ import annotations


def because(reason: str, *names: str) -> dict[str, str]:
    """The same reason for several mutants."""
    return dict.fromkeys(names, reason)


NO_OVERLAP = "a job has one checkpoint under way, so no gateway is marked for two"
SAFE = (
    "it only costs an attempt or a checkpoint that was not to blame, and the job comes back from it"
)
TOLERANCE = (
    "a test of its own counts how many failures are tolerated; nothing is claimed of that here"
)
NOT_LATE = (
    "the closed job lets it come at any moment; in the runtime nobody says it when it is late"
)
SHELL_ASKS = "the shell asks the machine's `speaks` first, to know whose reason it notes"
FENCED = "whatever an evicted process says ends at its attempt, before it gets here"
NOTICES = (
    "a notice of an aborted or completed checkpoint decides nothing in the model or in the fuzzer"
)
NO_SLOW_START = "the fuzzer's coordinators start at once, and never fail to"
COMMIT_RETRIES = (
    "the system `commit` has no job that goes down, and few of the runs fail a commit often enough"
)
COMMITS_AT_ONCE = "in most runs a commit is over before the next checkpoint is completed"
OVERRIDDEN = "equivalent: nobody reads it again before it is set anew"
EARLIER = "equivalent: what it does was done before, or is done in the same step by another way"
EXCLUDED = (
    "equivalent: the guards that are left never hold together with the one that is dropped "
    "being false"
)
DOWN_ANYWAY = (
    "equivalent: the job is on its way down already, or not up yet, and is told nothing new"
)
LAST = "a process that nobody sends away stays until its job ends, and the model has no more of it"
REQUESTS = (
    "who asks for a checkpoint gets one a little later, since the next request makes up for it"
)
ALWAYS_STARTS = "a process of the model always comes to run, and one of the fuzzer too"
NOT_ALL_SITUATIONS = "only a few of the situations that the runtime is put into are of that kind"
ORDERS = "that a coordinator's order to fail the job is obeyed is claimed of the model alone"
OF_ITS_OWN = (
    "only the checkpoint under way reopens gateways, and each that is shut is marked for it"
)
EARLY = (
    "no coordinator of the closed jobs or of the fuzzer fails its job before that begins; the"
    " tests of the job master do"
)
TWICE = (
    "it takes two failures of one coordinator, and nobody else learns that the second was not heard"
)
SHORTER = "it only shortens a back-off"
SAVES_AGAIN = (
    "what has failed in the model may come right yet: a save ends after all, and nothing is "
    "lost on a wire"
)
ALL_NUMBERED = (
    "the closed job claims of single restarts that attempts have numbers of their own, and "
    "not of all together"
)
THREE = "it takes three subtasks to tell"
PERIODIC = "the jobs that are disturbed have no periodic checkpoints"
OUTPUT = "the model's store asks for nothing, and its states are on record elsewhere"
HANDED_OVER = "the model does not hold what an operator hands over with a checkpoint"
LEFT_ALONE = "the model's processes end by themselves, or are ended when another comes"

SEEN_BY_NEITHER: dict[str, str] = {
    **because(
        NO_OVERLAP,
        "gateway: reopen from marked when is_marked and is_marked_for_more: regardless of "
        "is_marked_for_more",
    ),
    **because(
        SAFE,
        "attempt: confirm from initializing, running when speaks: regardless of speaks",
        "attempt: initialize from deploying when speaks: regardless of speaks",
        "attempt: lost from any state but deploying, initializing, running, canceling when "
        "speaks: regardless of speaks",
        "attempt: lost from any state when not speaks and is_waiting: regardless of speaks",
        "attempt: lost from canceling when speaks: regardless of speaks",
        "checkpoint: coordinator_ready from triggering when is_current and not "
        "is_last_coordinator: regardless of is_current",
        "checkpoint: decline from pending when is_current: regardless of is_current",
        "snapshot: succeed from asked when is_current and may_close and has_in_flight: "
        "regardless of is_current",
        "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
        "regardless of is_current",
    ),
    **because(
        TOLERANCE,
        "checkpoint: coordinator_failed from triggering when is_current: without count_failure",
        "checkpoint: decline from pending when is_current: without count_failure",
        "checkpoint: expire from triggering, pending when is_current: without count_failure",
        "checkpoint: store_failed from storing when is_current: without count_failure",
    ),
    **because(
        FENCED,
        "gateway: confirm from any state when is_bound and is_news: regardless of is_bound",
        "gateway: confirm from any state when is_bound and is_news: regardless of is_news",
    ),
    **because(
        NOTICES,
        "holder: checkpoint_aborted from starting, started: without call_aborted",
        "holder: checkpoint_complete from starting, started: without call_complete",
        "task: aborted from running: without call_aborted",
    ),
    **because(
        NO_SLOW_START,
        "holder: fail_job from starting: ignored",
        "holder: fail_job from starting: without fail_globally",
        "holder: fail_job from starting: without note_failure",
        "holder: start_failed from starting: without fail_globally",
        "holder: start_failed from starting: without note_failure",
    ),
    **because(
        COMMIT_RETRIES,
        "committer: retry_later from committing when not may_retry: regardless of may_retry",
        "committer: retry_later from committing when not may_retry: without fail_job",
    ),
    **because(
        OVERRIDDEN,
        "checkpoint: coordinator_ready from triggering when is_current and "
        "is_last_coordinator: without count_coordinator",
        "lifecycle: fail_globally from running, stopping: without settle_down",
        "snapshot: confirm from confirming when is_last: without count_down",
    ),
    **because(
        EARLIER,
        "gateway: lose from any state when is_bound: without fail_waiting",
        "gateway: renew from open: without give_up_in_flight",
    ),
    **because(
        EXCLUDED,
        "task: event from running when not is_next and is_old: regardless of is_next",
    ),
    **because(
        DOWN_ANYWAY,
        "attempt: finish from running when speaks: without stop_running",
        "holder: fail_job from started when not is_failing: regardless of is_failing",
        "holder: fail_job from started when not is_failing: without note_failure",
    ),
    **because(
        LAST,
        "attempt: connect from any state when not is_newer: without refuse",
        "attempt: connect from deploying, initializing when is_newer: without end_process",
        "attempt: connect from finished when is_newer: without refuse",
        "attempt: lost from any state when not speaks and is_waiting: without forget_waiting",
    ),
    **because(
        REQUESTS,
        "request: submit from chosen: without note_more",
    ),
    **because(
        ALWAYS_STARTS,
        "attempt: expire_start from deploying, initializing when is_current: ignored",
    ),
    **because(
        OF_ITS_OWN,
        "gateway: reopen from closed when is_marked and not stays_closed and "
        "is_marked_for_more: regardless of is_marked",
        "gateway: reopen from closed when is_marked and not stays_closed and not "
        "is_marked_for_more: regardless of is_marked",
        "gateway: reopen from closed when is_marked and stays_closed: regardless of is_marked",
        "gateway: reopen from marked when is_marked and is_marked_for_more: regardless of "
        "is_marked",
        "gateway: reopen from marked when is_marked and not is_marked_for_more: regardless of"
        " is_marked",
    ),
    **because(
        EARLY,
        "holder: fail_job from created when not is_failing: regardless of is_failing",
        "holder: fail_job from created when not is_failing: without note_failure",
        "holder: start from created when is_failing: without call_unfit",
        "holder: start from created when not is_failing: regardless of is_failing",
    ),
    **because(
        TWICE,
        "holder: reset from starting, started: without clear_failure",
    ),
    **because(
        SHORTER,
        "attempt: restart from failed when is_current and may_restart: regardless of is_current",
        "attempt: restart from failed when is_current and not may_restart: regardless of "
        "is_current",
    ),
    **because(
        THREE,
        "checkpoint: acknowledge from pending when is_current and is_due and not "
        "is_last_subtask: regardless of is_due",
    ),
}
UNSEEN_BY_THE_CHECKER: dict[str, str] = {
    **because(
        NO_OVERLAP,
        "gateway: reopen from closed when is_marked and not stays_closed and "
        "is_marked_for_more: regardless of is_marked_for_more",
    ),
    **because(
        COMMIT_RETRIES,
        "committer: committed from committing when not has_more: without settle",
        "committer: refused from committing: without fail_job",
    ),
    **because(
        SAVES_AGAIN,
        "checkpoint: expire from triggering, pending when is_current: ignored",
        "checkpoint: store_failed from storing when is_current: ignored",
    ),
    **because(
        ALL_NUMBERED,
        "attempt: recreate from finished, canceled, failed: without renew",
    ),
    **because(
        OUTPUT,
        "checkpoint: acknowledge from pending when is_current and is_due and is_last_subtask:"
        " without save",
        "snapshot: succeed from asked when is_current and may_close and has_in_flight: "
        "without keep_state",
        "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
        "without keep_state",
    ),
    **because(
        HANDED_OVER,
        "task: complete from running: without call_complete",
    ),
    **because(
        LEFT_ALONE,
        "attempt: connect from running when is_newer: without end_process",
        "attempt: lost from any state when not speaks and is_waiting: regardless of is_waiting",
    ),
}
UNSEEN_BY_THE_RUNTIME: dict[str, str] = {
    **because(
        NOT_LATE,
        "attempt: operator_event from initializing, running when speaks: regardless of speaks",
        "attempt: restart from any state but failed: refused",
        "attempt: restart from failed when not is_current: refused",
        "checkpoint: coordinator_failed from any state but triggering: refused",
        "checkpoint: coordinator_failed from triggering when is_current: regardless of is_current",
        "checkpoint: coordinator_failed from triggering when not is_current: refused",
        "checkpoint: coordinator_ready from any state but triggering: refused",
        "checkpoint: coordinator_ready from triggering when is_current and "
        "is_last_coordinator: regardless of is_current",
        "checkpoint: coordinator_ready from triggering when not is_current: refused",
        "checkpoint: expire from triggering, pending when is_current: regardless of is_current",
        "gateway: confirm from any state when not is_bound: refused",
        "gateway: lose from any state when is_bound: regardless of is_bound",
        "gateway: lose from any state when not is_bound: refused",
        "holder: event from any state but starting, started: refused",
        "holder: event from starting, started when is_from_current: regardless of is_from_current",
        "holder: event from starting, started when not is_from_current: refused",
        "holder: handled from any state but starting, started: refused",
        "holder: start_failed from broken, closed: refused",
        "holder: started from broken, closed: refused",
        "lifecycle: backed_off from any state but restarting: refused",
        "lifecycle: backed_off from restarting when is_current: regardless of is_current",
        "lifecycle: backed_off from restarting when not is_current: refused",
        "lifecycle: checkpoint_over from finished, failed, canceled: refused",
        "snapshot: cancel from any state but idle when not is_current: refused",
        "snapshot: cancel from asked when is_current: regardless of is_current",
        "snapshot: cancel from confirming when is_current: regardless of is_current",
        "snapshot: fail from any state but asked: refused",
        "snapshot: fail from asked when is_current: regardless of is_current",
        "snapshot: fail from asked when not is_current: refused",
        "snapshot: succeed from asked when is_current and not may_close: regardless of is_current",
        "task: event from running when not is_next and is_old: refused",
        "task: event from running when not is_next and not is_old: regardless of is_old",
    ),
    **because(
        SHELL_ASKS,
        "attempt: fail from deploying, initializing when speaks: regardless of speaks",
        "attempt: fail from deploying, initializing, running when not speaks: refused",
        "attempt: fail from running when speaks: regardless of speaks",
    ),
    **because(
        COMMITS_AT_ONCE,
        "committer: committed from committing when has_more: without commit",
        "committer: committed from committing when not has_more: regardless of has_more",
        "committer: due from committing: without want",
        "committer: due from given_up: refused",
        "committer: retry_later from committing when may_retry: regardless of may_retry",
        "committer: retry_later from committing when not may_retry: ignored",
    ),
    **because(
        NOT_ALL_SITUATIONS,
        "gateway: send from any state but closed when is_bound and reaches_attempt: "
        "regardless of is_bound",
        "gateway: send from closed when is_bound: regardless of is_bound",
        "snapshot: succeed from asked when is_current and may_close and not has_in_flight: "
        "without close_gateways",
    ),
    **because(
        ORDERS,
        "holder: fail_job from started when not is_failing: ignored",
        "holder: fail_job from started when not is_failing: without fail_globally",
    ),
    **because(
        EARLY,
        "holder: fail_job from created, started when is_failing: regardless of is_failing",
    ),
    **because(
        PERIODIC,
        "request: submit_periodic from any state but idle: refused",
        "request: submit_periodic from idle: ignored",
    ),
}
