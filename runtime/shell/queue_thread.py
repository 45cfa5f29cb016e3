"""The thread that drains a job's queue in production.

It processes events in bursts, lets the transport flush after each, and sleeps until something is
posted or a timer is due. An exception that gets here is a fault of epochgate: the job ends with it,
and a new start resumes from the last checkpoint.
"""

from __future__ import annotations

import logging
import threading
import traceback
from functools import partial

from epochgate.runtime.api.raised import described
from epochgate.runtime.api.reports import JobResult
from epochgate.runtime.limited import CallLate, Limit, limited
from epochgate.runtime.shell.failover import Verdict
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.watchdog import Watchdog

EVENTS_PER_SLICE, SLICES_PER_BURST = 32, 16
BURST_S = 0.05
"""After so long, what was said goes to the tasks, however many events wait for coordinators."""
logger = logging.getLogger(__name__)


class JobLoop:
    """Runs a job master on a thread of its own until the job is over."""

    def __init__(self, master: JobMaster) -> None:
        self.master = master
        self._alarm = threading.Event()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epochgate-queue", daemon=True)
        self._watchdog = Watchdog(
            master.coordinators.watch,
            call_warn_s=master.configuration.coordinator_call_warn_s,
            call_limit_s=self._call_limit_s,
            abandon=self._abandon,
            operator_ids=master.configuration.operator_ids,
            warn=master.warn,
            post=master.queue.post,
        )
        master.coordinators.relay = self._watchdog.relay

    def start(self) -> None:
        """Start the job, its thread and the watchdog beside it."""
        self.master.start()
        self._watchdog.start(self._thread)
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> JobResult:
        """Wait for the job's end; TimeoutError after `timeout_s` seconds."""
        try:
            result = self.master.result.result(timeout_s)
        except TimeoutError:
            raise TimeoutError(f"the job has not ended within {timeout_s:g} s") from None
        self._is_closed.wait()
        return result

    def _call_limit_s(self) -> tuple[float, str]:
        """The seconds that a coordinator's call may take now, and the option that says so."""
        configuration = self.master.configuration
        if self.master.is_ending:
            return configuration.end_timeout_s, "end_timeout_s"
        return configuration.coordinator_call_timeout_s, "coordinator_call_timeout_s"

    def _abandon(self, reason: str) -> None:
        """End the job beside the queue's thread, which user code holds and nothing can stop."""
        cause = self.master.cause
        said = reason if cause is None else f"{cause}; {reason}"
        self._end("canceled" if self.master.is_end_wanted else "failed", said)
        self._close()

    def _close(self) -> None:
        """Release what the job holds; what a user's store raises there holds up no caller."""
        try:
            self.master.close()
        except BaseException as error:  # user code may raise anything
            logger.exception("the job is over, and could not release all that it held")
            self.master.note_warning(f"not all could be released at the end: {described(error)}")
        finally:
            self._is_closed.set()

    def _run(self) -> None:
        try:
            while not self.master.is_over:
                self._burst()
        except BaseException as error:  # after any error: no caller may wait for this job for ever
            logger.exception("the job's queue has stopped")
            self._crash(error)
        finally:
            self._watchdog.stop()
            self._close()  # does nothing where the watchdog has closed it

    def _burst(self) -> None:
        queue, transport = self.master.queue, self.master.transport
        queue.post_due()
        until_s = queue.clock.now_s() + BURST_S
        for _ in range(SLICES_PER_BURST):
            if queue.drain(EVENTS_PER_SLICE) < EVENTS_PER_SLICE or queue.clock.now_s() > until_s:
                break
        transport.flush()
        if queue.is_empty:
            self._sleep()

    def _sleep(self) -> None:
        queue = self.master.queue
        queue.wake = self._alarm.set
        due_s, journal = queue.next_due_s(), self.master.journal
        wait_s = None if due_s is None else max(0.0, due_s - queue.clock.now_s())
        journal_s = None if journal is None else journal.due_in_s()
        if journal_s is not None:
            wait_s = journal_s if wait_s is None else min(wait_s, journal_s)
        if queue.is_empty and not self.master.is_over:
            self._alarm.wait(wait_s)
        queue.wake = None
        self._alarm.clear()

    def _crash(self, error: BaseException) -> None:
        detail = "".join(traceback.format_exception(error, limit=-8))
        self._end("failed", f"epochgate itself has failed; please report this: {error!r}\n{detail}")

    def _end(self, state: str, reason: str) -> None:
        """End as the lifecycle has decided; in `state` if it has not."""
        master = self.master
        while not self._have_forgotten(reason):
            pass  # what hung is not called again
        if master.is_over:
            return
        latest = master.checkpoints.latest
        verdict = master.verdict or Verdict(state, 0 if latest is None else latest.checkpoint_id)
        if verdict.state == "finished":
            master.warn(reason)
            master.settle(verdict.state, None, verdict.checkpoint)
        else:
            master.settle(verdict.state, reason, verdict.checkpoint)

    def _have_forgotten(self, reason: str) -> bool:
        """End what others wait for, which calls them, and reads gauges; False if one hangs."""
        limit = Limit("end_timeout_s", self.master.configuration.end_timeout_s)
        what = "a callback of a future, or a gauge, at the end of the job"
        try:
            limited(what, limit, partial(self.master.forget_requests, reason))
        except CallLate as error:
            self.master.warn(str(error))
            return False
        return True
