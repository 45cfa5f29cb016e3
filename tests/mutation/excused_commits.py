"""The mutants of the machines of commits in several steps that survive, and why they may."""

from __future__ import annotations

GIVES_UP = "a committer that gives up ends the job, which aborts the checkpoint under way at once"
CARRIED = (
    "self.system.stage_before.carry(self.number)",
    "for s in range(self.system.subtasks): self.system.subtask_committer[s].carry(self.number)",
    "self.system.committable_collector.carry(self.number)",
    "self.system.stage_behind.carry(self.number)",
    "self.system.committer.carry(self.number)",
)
COMPLETED = (
    "self.tell_completed()",
    "for s in range(self.system.subtasks): self.system.subtask_committer[s].complete()",
    "self.system.stage_before.take(self.number)",
    "self.forget_parts()",
)


def swapped(method: str, statements: tuple[str, ...], places: int) -> tuple[str, ...]:
    """The mutants of a method in which two statements that follow each other change places."""
    head = f"def {method}(self) -> None:"

    def told(place: int) -> str:
        first, then = statements[place : place + 2]
        changed = (*statements[:place], then, first, *statements[place + 2 :])
        return f"`{head} {' '.join(statements)}` -> `{head} {' '.join(changed)}`"

    return tuple(f"CommittingJob.checkpoint.{method}: {told(place)}" for place in range(places))


COMMIT = "self.operators.commit"
OF_COMMITS: dict[str, tuple[str, ...]] = {
    "in the closed system the surroundings of a task commit, not its machine; a scenario has each "
    "argument of the order to commit, and the play on the production shell compares them": (
        f"task.call_commit: `{COMMIT}(checkpoint, tries, part)` -> "
        f"`{COMMIT}(checkpoint - 1 if checkpoint > 0 else 1, tries, part)`",
        f"task.call_commit: `{COMMIT}(checkpoint, tries, part)` -> "
        f"`{COMMIT}(checkpoint, tries - 1 if tries > 0 else 1, part)`",
        f"task.call_commit: `{COMMIT}(checkpoint, tries, part)` -> "
        f"`{COMMIT}(checkpoint, tries, 0)`",
    ),
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
        "stage_before: retry_later from processing when is_asked and not may_retry: fail_job twice",
        "stage_before: refused from processing when is_asked: fail_job twice",
        "stage_before: expire from processing when is_asked: fail_job twice",
        "CommittingJob.attempt: commit_done from running when speaks: pass_committed twice",
        "CommittingJob.attempt: commit_later from running when speaks: pass_retry twice",
    ),
    "what a checkpoint holds of the steps is kept in one step, each for itself": swapped(
        "carry_commits", CARRIED, 4
    ),
    "what a task's committer releases is neither looked at by the others nor committed again": (
        swapped("complete", COMPLETED, 2)
    ),
    "the checkpoint that was completed last is by then the one under way": (
        "CommittingJob.checkpoint.complete: `self.number` -> `self.completed`",
    ),
    "a committer that goes away says nothing, and changes nothing that is read in the step": (
        "CommittingJob.attempt.stop_running: `def stop_running(self) -> None: "
        "self.system.lifecycle.attempt_stopped(self.has_ended) "
        "self.system.subtask_committer[self.subtask].stopped() self.forget_end()` -> `def "
        "stop_running(self) -> None: self.system.subtask_committer[self.subtask].stopped() "
        "self.system.lifecycle.attempt_stopped(self.has_ended) self.forget_end()`",
        "CommittingJob.attempt.announce_cancel: `def announce_cancel(self) -> None: "
        "self.system.subtask_committer[self.subtask].stopped() "
        "self.announce_failed('all attempts were canceled') "
        "self.drop_in_flight('all attempts were canceled')` -> `def announce_cancel(self) -> "
        "None: self.announce_failed('all attempts were canceled') "
        "self.system.subtask_committer[self.subtask].stopped() "
        "self.drop_in_flight('all attempts were canceled')`",
    ),
    "the request that waits for an attempt to run is looked at behind both": (
        "CommittingJob.attempt.start_running: `def start_running(self) -> None: "
        "self.system.lifecycle.attempt_running() "
        "self.system.subtask_committer[self.subtask].running()` -> `def start_running(self) -> "
        "None: self.system.subtask_committer[self.subtask].running() "
        "self.system.lifecycle.attempt_running()`",
    ),
    "where there are no operators, they are always idle": (
        "stage_before: take from idle when not has_operators: also from processing",
        "stage_before: take from idle when not has_operators: also from given_up",
    ),
    "no task answers within the step in which it is asked, and the collector says nothing in it": (
        "stage_before.hand_on: `if self.system.task_committers > 0: "
        "self.system.committable_collector.expect(checkpoint) for s in "
        "range(self.system.subtasks): self.system.subtask_committer[s].due(checkpoint) else: "
        "self.system.stage_behind.take(checkpoint)` -> `if self.system.task_committers > 0: for s "
        "in range(self.system.subtasks): self.system.subtask_committer[s].due(checkpoint) "
        "self.system.committable_collector.expect(checkpoint) else: "
        "self.system.stage_behind.take(checkpoint)`",
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
}
"""Reason -> the names of the mutants that it is for."""
