"""The shell around failover: asks the restart strategy, and wakes the machines when a back-off is
over; says what fails, and what is there again.

Handler of the lifecycle's port `driver`. What it remembers of failed subtasks is for those who
watch; it decides nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from epochgate.runtime.api.job_events import (
    Failure,
    JobRestarts,
    SubtaskFailed,
    SubtaskRestarted,
    SubtasksUp,
)
from epochgate.runtime.api.own_frames import split_frames
from epochgate.runtime.api.raised import let_pass, quoted
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.api.restart_strategies import CountsRestarts
from epochgate.runtime.shell.watchdog import RESTART_STRATEGY

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class Verdict(NamedTuple):
    """The verdict on a job: "finished", "failed" or "canceled", and its last checkpoint."""

    state: str
    checkpoint: int


class Failover:
    """Turns the strategy's delays into timers, and its refusal into giving up."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._strategy = master.configuration.restart_strategy
        self._watch = master.coordinators.watch
        self._awaited: set[int] = set()
        """Subtasks that have had no process since the start, or since everything went down."""
        self._awaited_since_s = 0.0
        self._down: dict[int, float] = {}
        """Subtask -> when it failed by itself; those that have no process since."""
        self._told: set[str] = set()
        """The frames of user code that were told since the last checkpoint."""
        master.job.bind("lifecycle", "driver", self)

    def note_healthy(self, now_s: float) -> None:
        """A checkpoint was completed: the job makes progress."""
        self._told.clear()
        watch, notify = self._watch, self._strategy.notify_healthy
        watch.running = (watch.clock_s(), RESTART_STRATEGY, notify)
        try:
            notify(now_s)
        except BaseException as error:  # noqa: BLE001  # a strategy may be the user's code
            let_pass(error)
            self._master.job.lifecycle.give_up(self._refused("notify_healthy", quoted(error)))
        finally:
            watch.running = None

    def _refused(self, method: str, why: str) -> str:
        return f"{type(self._strategy).__qualname__}.{method} of the restart strategy: {why}"

    def _ask(self, failed: str, reason: str) -> tuple[float | None, str]:
        """The strategy's delay in seconds, or none and why the job gives up."""
        watch, ask = self._watch, self._strategy.next_delay_s
        watch.running = (watch.clock_s(), RESTART_STRATEGY, ask)
        try:
            delay_s = ask(self._master.queue.now_s)
        except BaseException as error:  # noqa: BLE001  # a strategy may be the user's code
            let_pass(error)
            why = self._refused("next_delay_s", quoted(error))
        else:
            if isinstance(delay_s, (int, float)) and 0 <= delay_s < math.inf:
                return delay_s, ""
            why = "the restart strategy allows no further attempt"
            if delay_s is not None:
                said = f"returned {delay_s!r}, which must be seconds from 0 on, or None"
                why = self._refused("next_delay_s", said)
        finally:
            watch.running = None
        said, frames = split_frames(reason)
        return None, f"{failed}: {said}; {why}{frames}"

    # what is told

    def await_all(self) -> None:
        """Every subtask is to get a process from now on."""
        self._down.clear()
        self._awaited = set(range(self._master.configuration.parallelism))
        self._awaited_since_s = self._master.queue.now_s

    def note_restored(self, place: int, identity: int, attempt: int, checkpoint: int) -> None:
        """A process begins as this attempt; say so where one was awaited."""
        if not self._master.observers.are_there:
            return
        subtask, now_s = self._master.subtask_of[place], self._master.queue.now_s
        tell = self._master.observers.tell
        if (since_s := self._down.pop(subtask, None)) is not None:
            host, pid = self._master.transport.process_of(identity) or (None, None)
            tell(
                SubtaskRestarted,
                subtask=subtask,
                attempt=attempt,
                checkpoint_id=checkpoint,
                down_s=now_s - since_s,
                host=host,
                pid=pid,
            )
        if subtask in self._awaited:
            self._awaited.remove(subtask)
            if not self._awaited:
                after_s = now_s - self._awaited_since_s
                subtasks = self._master.configuration.parallelism
                tell(SubtasksUp, subtasks=subtasks, checkpoint_id=checkpoint, after_s=after_s)

    # port `driver` of the lifecycle

    def restart_one(self, place: int, attempt: int, reason: str) -> None:
        subtask = self._master.subtask_of[place]
        self._master.note_failure(subtask, attempt, reason)
        now_s = self._master.queue.now_s
        delay_s, refusal = self._ask(f"subtask {subtask} failed", reason)
        self._tell(SubtaskFailed, reason, delay_s, subtask=subtask, attempt=attempt)
        self._down[subtask] = now_s
        if delay_s is None:
            self._master.job.lifecycle.give_up(refusal)
            return
        self._master.report.regional_restarts += 1
        restart = self._master.job.attempt[place].restart
        self._master.queue.post_later(delay_s, restart, attempt)

    def go_on_without(self, subtask: int, reason: str) -> None:
        """Ask the strategy whether to go on waiting for a process that has not come."""
        self._master.note_failure(subtask, None, reason)
        delay_s, refusal = self._ask(f"no process of subtask {subtask} has come", reason)
        if delay_s is None:
            self._master.job.lifecycle.give_up(refusal)
        else:
            self._master.warn(f"{reason}. The job waits for it; the restart strategy allows that")

    def restart_all(self, restarts: int, reason: str) -> None:
        self._master.note_failure(None, None, reason)
        delay_s, refusal = self._ask("the job failed", reason)
        self._tell(JobRestarts, reason, delay_s)
        self.await_all()
        if delay_s is None:
            self._master.job.lifecycle.give_up(refusal)
            return
        self._master.report.global_restarts += 1
        self._master.queue.post_later(delay_s, self._master.job.lifecycle.backed_off, restarts)

    def _tell(self, kind: type[Failure], reason: str, delay_s: float | None, **values: int) -> None:
        if not self._master.observers.are_there:
            return
        frames = split_frames(reason)[1]
        is_new = frames not in self._told
        if frames:
            self._told.add(frames)
        left = self._restarts_left()
        self._master.observers.tell(
            kind,
            reason=shortened(reason),
            delay_s=delay_s,
            restarts_left=left,
            is_new=is_new,
            **values,
        )

    def _restarts_left(self) -> int | None:
        if not isinstance(self._strategy, CountsRestarts):
            return None
        try:
            return self._strategy.restarts_left
        except BaseException as error:  # noqa: BLE001  # a strategy may be the user's code
            let_pass(error)
            self._master.note_warning(self._refused("restarts_left", quoted(error)))
            return None

    def finish(self, place: int, identity: int) -> None:
        self._master.tasks.finish(place, identity)

    def ending(self, reason: str) -> None:
        self._master.note_cause(reason)
        limit_s = self._master.configuration.end_timeout_s
        self._master.queue.post_later(
            limit_s,
            self._master.job.lifecycle.expire_end,
            f"the job ends, and its store has not answered for {limit_s:g} s (end_timeout_s)",
        )

    def decided(self, outcome: str, checkpoint: int) -> None:
        self._master.verdict = Verdict(outcome, checkpoint)

    def ended(self) -> None:
        self._master.end()
