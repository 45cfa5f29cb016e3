"""Which mutants of the machines of commits in several steps survive, and why they may."""

from __future__ import annotations

GIVES_UP = "a committer that gives up ends the job, which aborts the checkpoint under way at once"
OF_COMMITS: dict[str, tuple[str, ...]] = {
    "the first time leaves nothing to do for the second": (
        "subtask_committer: running from away when is_done: settle twice",
        "subtask_committer: stopped from any state but away, given_up: go_back twice",
        "subtask_committer: carry from idle, pausing: seal_passed twice",
        "subtask_committer: complete from any state: release_sealed twice",
        "subtask_committer: abort from away: unseal_waiting twice",
        "subtask_committer: abort from any state but away: unseal_passed twice",
    ),
    "the machine that hears of it ignores what it has heard before": (
        "subtask_committer: retry_later from committing when is_asked and not may_retry: "
        "fail_job twice",
        "subtask_committer: expire from committing when is_asked and is_of_attempt: "
        "fault_attempt twice",
    ),
    GIVES_UP: (
        "subtask_committer: due from idle when is_amid: also from given_up",
        "subtask_committer: committed from committing when is_asked and not is_last and is_amid: "
        "also from given_up",
        "subtask_committer: pause_over from pausing when is_asked and is_amid: also from given_up",
    ),
    "a committer gives up once its tries are used up, and asks for nothing more": (
        "subtask_committer: retry_later from committing when is_asked and may_retry: "
        "also from given_up",
        "subtask_committer: abort from away: also from given_up",
    ),
    "the attempt that fails sends its committer away in the same step": (
        "subtask_committer: expire from committing when is_asked and is_of_attempt: to idle",
        "subtask_committer: expire from committing when is_asked and is_of_attempt: to pausing",
    ),
    "a checkpoint with no tries counts as one that was not tried": (
        "subtask_committer.pass_on: `self.tried = 0` -> `pass`",
        "subtask_committer.pass_on: `self.tries = 0` -> `pass`",
        "subtask_committer.pass_on: `self.tried = 0` -> `self.tried = 1`",
    ),
}
"""Reason -> the names of the mutants that it is for."""
