"""Ends a Spark job whose task fails again and again, with the error of the task.

A session for a job of epochgate lets a task fail a million times, since the restart strategy
decides there. What else runs in the session, a query or a batch of a stream, would repeat an error
as often, without a word. A thread looks at the running jobs every second and decides, as Spark does
by default elsewhere, that a task which has failed some times will fail again. Jobs of epochgate are
left alone.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any, Final

from epochgate.spark.resident_job import GROUP_PREFIX, run_of

FAILURES_MAX: Final = 8
"""Failures of one task; Spark allows four by default, and workers may be killed meanwhile."""
LOOK_EVERY_S: Final = 1.0
TASKS_LOOKED_AT_MAX: Final = 1_000
STOP_PATIENCE_S: Final = 10.0
"""A look that hangs in the JVM is left to its thread, which holds nothing."""
_log = logging.getLogger(__name__)


class FailingJobs:
    """The watch over the jobs of one session, from `start` to `stop`."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="epochgate-failing", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; call it before the session is stopped."""
        self._stopped.set()
        self._thread.join(STOP_PATIENCE_S)

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  the next look asks again, or the JVM is gone
                _log.debug("Spark did not tell which jobs run: %r", error)

    def _look(self) -> None:
        jvm, store = self._context._jvm, self._context._jsc.sc().statusStore()
        running = jvm.java.util.ArrayList()
        running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = store.jobsList(running)
        for job in map(jobs.apply, range(jobs.size())):
            group = job.jobGroup()
            if group.isDefined() and str(group.get()).startswith(GROUP_PREFIX):
                continue
            if job.numFailedTasks() >= FAILURES_MAX:
                self._judge(store, job)

    def _judge(self, store: Any, job: Any) -> None:
        stages = job.stageIds()
        in_order = self._context._jvm.org.apache.spark.status.api.v1.TaskSorting.ID
        for stage in map(stages.apply, range(stages.size())):
            tasks = store.taskList(stage, 0, 0, TASKS_LOOKED_AT_MAX, in_order, None)
            runs = [run_of(tasks.apply(number)) for number in range(tasks.size())]
            failed = [run for run in runs if run.status == "FAILED"]
            counted = Counter(run.subtask for run in failed)
            for index, count in counted.most_common(1):
                if count >= FAILURES_MAX:
                    reason = next(run.reason for run in reversed(failed) if run.subtask == index)
                    self._context._jsc.sc().cancelJob(
                        job.jobId(),
                        f"a task has failed {count} times, the last time with: {reason}",
                    )
