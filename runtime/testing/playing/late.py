"""Stale messages in a production job, which arrive after all, or once more; nothing may come of
them.

Timers of attempts, restarts and checkpoints that are over; futures of checkpoints that were
aborted; sends through the gateways of attempts that have failed; events, confirmations and words
that were handled before; a process for a subtask that has finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochgate.fsm import Timer
from epochgate.fsm.inside import machine_behind

if TYPE_CHECKING:
    from epochgate.runtime.testing.playing.scripted import ScriptedJob


class Late:
    """Keeps what a job has left behind."""

    def __init__(self, job: ScriptedJob) -> None:
        self._job = job
        self._timers: list[Timer] = []

    def note_timers(self) -> None:
        """Remember those that wait now."""
        known = {id(timer) for timer in self._timers}
        self._timers += [t for t in self._job.master.queue.timers() if id(t) not in known]

    def arrive(self) -> None:
        """Let everything arrive that is stale now."""
        for timer in self._stale_timers():
            self._job.master.queue.post(timer.trigger, *timer.arguments)
        if self._job.job.request.state != "idle":
            self._job.fire(self._job.timers(self._job.master))
        self._job.settle()
        for coordinator in range(self._job.coordinators):
            self._by_coordinator(coordinator)
        for subtask in range(self._job.subtasks):
            self._by_subtask(subtask)

    def _stale_timers(self) -> list[Timer]:
        job = self._job.job
        checkpoints = self._job.master.checkpoints
        under_way = [t.arguments for t in self._job.timers(checkpoints)]
        found = []
        for timer in self._timers:
            owner = getattr(timer.trigger, "__self__", None)
            is_old_attempt = any(
                owner is attempt and timer.arguments < (attempt.number,) for attempt in job.attempt
            )
            is_back_off = owner is job.lifecycle and timer.trigger.__name__ == "backed_off"
            is_old_restart = is_back_off and timer.arguments < (job.lifecycle.restarts,)
            is_old_checkpoint = owner is checkpoints and timer.arguments not in under_way
            is_old_start = any(
                owner is attempt and attempt.is_running() and timer.trigger.__name__ != "restart"
                for attempt in job.attempt
            )
            if is_old_attempt or is_old_restart or is_old_checkpoint or is_old_start:
                found.append(timer)
        return found

    def _by_coordinator(self, number: int) -> None:
        coordinator = self._job.coordinator(number)
        coordinator.answer_late()
        for gateway in coordinator.old_gateways:
            coordinator.send_by(gateway)
        if self._job.job.holder[number].has_failed:
            self._job.fail_job(number)
        self._job.settle()

    def _by_subtask(self, subtask: int) -> None:
        attempt, process = self._job.job.attempt[subtask], self._job.living(subtask)
        if attempt.has_ended:
            self._job.say(subtask, self._job.identities[subtask][-1], ["ended"])
        if attempt.state == "finished":
            self._job.transport.step("connect", self._job.transport.launch(subtask))
        for coordinator in range(self._job.coordinators):
            confirmed = self._job.job.gateway[coordinator, subtask].confirmed
            if confirmed > 0:
                words = ["confirm", coordinator, confirmed]
                self._job.say(subtask, self._job.identities[subtask][-1], words)
            if process is None:
                continue
            number = machine_behind(process.worker.task).received[coordinator]
            if number > 0:
                process.worker.handle([["event", coordinator, number, "once more"]])
        self._job.settle()
