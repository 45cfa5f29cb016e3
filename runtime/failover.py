"""The shell around failover: asks the restart strategy, and wakes the machines when a back-off is
over.

Handler of the lifecycle's port `driver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochgate.runtime.job_master import JobMaster


class Failover:
    """Turns the strategy's delays into timers, and its refusal into giving up."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._strategy = master.configuration.restart_strategy
        master.job.bind("lifecycle", "driver", self)

    def note_healthy(self) -> None:
        """A checkpoint was completed: the job makes progress."""
        self._strategy.notify_healthy(self._master.queue.clock.now_s())

    def restart_one(self, subtask: int, attempt: int) -> None:
        reason = self._master.tasks.reason(subtask)
        self._master.note_failure(self._master.subtask_of(subtask), attempt, reason)
        delay_s = self._delay_s(f"subtask {self._master.subtask_of(subtask)} failed: {reason}")
        if delay_s is not None:
            self._master.report.regional_restarts += 1
            restart = self._master.job.attempt[subtask].restart
            self._master.queue.post_later(delay_s, restart, attempt)

    def restart_all(self, restarts: int) -> None:
        delay_s = self._delay_s(f"the job failed: {self._master.last_failure()}")
        if delay_s is not None:
            self._master.report.global_restarts += 1
            self._master.queue.post_later(delay_s, self._master.job.lifecycle.backed_off, restarts)

    def _delay_s(self, cause: str) -> float | None:
        delay_s = self._strategy.next_delay_s(self._master.queue.clock.now_s())
        if delay_s is None:
            self._master.fail(f"{cause}; the restart strategy allows no further attempt")
        return delay_s

    def ended(self) -> None:
        self._master.end()
