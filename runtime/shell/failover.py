"""The shell around failover: asks the restart strategy, and wakes the machines when a back-off is
over.

Handler of the lifecycle's port `driver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class Failover:
    """Turns the strategy's delays into timers, and its refusal into giving up."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._strategy = master.configuration.restart_strategy
        master.job.bind("lifecycle", "driver", self)

    def note_healthy(self) -> None:
        """A checkpoint was completed: the job makes progress."""
        self._strategy.notify_healthy(self._master.queue.clock.now_s())

    def restart_one(self, place: int, attempt: int, reason: str) -> None:
        subtask = self._master.subtask_of(place)
        self._master.note_failure(subtask, attempt, reason)
        delay_s = self._strategy.next_delay_s(self._master.queue.clock.now_s())
        if delay_s is None:
            self._give_up(f"subtask {subtask} failed: {reason}")
            return
        self._master.report.regional_restarts += 1
        restart = self._master.job.attempt[place].restart
        self._master.queue.post_later(delay_s, restart, attempt)

    def restart_all(self, restarts: int, reason: str) -> None:
        self._master.note_failure(None, None, reason)
        delay_s = self._strategy.next_delay_s(self._master.queue.clock.now_s())
        if delay_s is None:
            self._give_up(f"the job failed: {reason}")
            return
        self._master.report.global_restarts += 1
        self._master.queue.post_later(delay_s, self._master.job.lifecycle.backed_off, restarts)

    def _give_up(self, cause: str) -> None:
        reason = f"{cause}; the restart strategy allows no further attempt"
        self._master.queue.post(self._master.job.lifecycle.give_up, reason)

    def finish(self, place: int, identity: int) -> None:
        self._master.tasks.finish(place, identity)

    def ending(self, reason: str) -> None:
        self._master.note_cause(reason)

    def ended(self, outcome: str, checkpoint: int) -> None:
        self._master.end(outcome, checkpoint)
