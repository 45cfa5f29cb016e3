"""The one Spark job of long-lived tasks: starts it, ends single attempts and the whole, says why it
ended.

Decides nothing about the protocol. Spark's own retry brings each task up again after it has raised,
died or been killed. Without barrier mode, because a lost task of a barrier stage ends the job. The
job runs on a daemon thread, "epochgate-spark-job"; the other methods may be called from any thread,
block for one call into the JVM, and raise nothing when Spark is gone.

`killTaskAttempt` is a developer interface of the JVM side; where it is missing, ending an attempt
is left to the closing of its connection.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from epochgate.runtime.api.reports import shortened

RUNS_MAX: Final = 1000
"""Attempts that are asked for at once; Spark is asked again, behind those that are settled."""
STOPPED: Final = "the Spark session was stopped while the job ran"
_log = logging.getLogger(__name__)
GROUP_PREFIX = "epochgate-"
"""How the groups of epochgate's own Spark jobs begin."""
TaskFunction = Callable[[int, Iterator[Any]], Iterator[Any]]


class TaskRun(NamedTuple):
    """A task attempt as Spark tells of it: RUNNING, FAILED, KILLED or SUCCESS; with a reason if it
    has failed.
    """

    subtask: int
    task_attempt_id: int
    executor: str
    status: str
    reason: str


class ResidentJob:
    """One Spark job over `parallelism` partitions; `on_end(reason)` is called once, on its thread,
    with None when every task has returned.
    """

    def __init__(
        self,
        context: Any,
        task: TaskFunction,
        *,
        parallelism: int,
        group: str,
        description: str,
        on_end: Callable[[str | None], None],
    ) -> None:
        self._context, self._task, self._parallelism = context, task, parallelism
        self._group, self._description, self._on_end = group, description, on_end
        self._ended = threading.Event()

    def start(self) -> None:
        """Submit the job."""
        from pyspark import InheritableThread

        thread = InheritableThread(target=self._run, name="epochgate-spark-job", daemon=True)
        thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Return whether the job has ended, after at most `timeout_s` seconds."""
        return self._ended.wait(timeout_s)

    def kill(self, task_attempt_id: int, reason: str) -> bool:
        """End one attempt, which does not count as a failure, and Spark starts the next; whether
        Spark was told.
        """
        try:
            self._context._jsc.sc().killTaskAttempt(task_attempt_id, True, reason)
        except Exception as error:  # noqa: BLE001  its connection is closed next, which ends it too
            _log.info("Spark did not kill task attempt %d: %r", task_attempt_id, error)
            return False
        return True

    def launched(self) -> int | None:
        """Count the task attempts that Spark has started since its context began, whose ids are the
        numbers below; None when it cannot be asked.
        """
        try:
            return int(self._context._jsc.sc().taskScheduler().nextTaskId())
        except Exception as error:  # noqa: BLE001  without Spark no process is replaced any more
            _log.info("Spark did not tell how many task attempts it has started: %r", error)
            return None

    def cancel(self) -> None:
        """End all attempts, for good."""
        try:
            self._context.cancelJobGroup(self._group)
        except Exception as error:  # noqa: BLE001  there is nothing left to cancel
            _log.info("Spark did not cancel the job: %r", error)

    def runs(self, skipped: int, most: int = RUNS_MAX) -> list[TaskRun] | None:
        """At most `most` of the task attempts that Spark remembers, oldest first, without the first
        `skipped`; None when it cannot be asked.
        """
        try:
            return self._runs(skipped, most)
        except Exception as error:  # noqa: BLE001  the next look asks again
            _log.info("Spark did not tell the attempts of its tasks: %r", error)
            return None

    def _runs(self, skipped: int, most: int) -> list[TaskRun]:
        store = self._context._jsc.sc().statusStore()
        in_order = self._context._jvm.org.apache.spark.status.api.v1.TaskSorting.ID
        tracker = self._context.statusTracker()
        found = []
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in [] if info is None else info.stageIds:
                tasks = store.taskList(stage, 0, skipped, most, in_order, None)
                found += [run_of(tasks.apply(number)) for number in range(tasks.size())]
        return found

    def _run(self) -> None:
        reason: str | None = None
        try:
            context = self._context
            context.setJobGroup(self._group, self._description)
            numbers = context.parallelize(range(self._parallelism), self._parallelism)
            tasks = numbers.mapPartitionsWithIndex(self._task).setName(self._description)
            # What Spark's UI calls the stage: `collect` would name a line of this library.
            context._jsc.setCallSite(self._description)
            # By value: an executor may not have this package.
            context.runJob(tasks, lambda results: results)
        except Exception as error:  # noqa: BLE001  whatever ended it, the driver must hear of it
            reason = _why(self._context, error)
        finally:
            self._ended.set()
        self._on_end(reason)


def run_of(task: Any) -> TaskRun:
    """A task attempt of which Spark has told."""
    has_reason = task.status() == "FAILED" and task.errorMessage().isDefined()
    reason = telling_line(task.errorMessage().get()) if has_reason else ""
    return TaskRun(task.index(), task.taskId(), task.executorId(), task.status(), reason)


def _why(context: Any, error: Exception) -> str:
    from py4j.protocol import Py4JJavaError

    if isinstance(error, Py4JJavaError):
        try:
            message = str(error.java_exception.getMessage())
        except Exception:  # noqa: BLE001  the JVM went away while it was asked
            message = ""
        if "SparkContext was shut down" in message:
            return STOPPED
        if "cancelled" in message:
            return f"Spark has canceled the job: {shortened(message)}"
        if " times, most recent failure" in message:
            return (
                f"Spark has ended the job because a task was lost too often: {shortened(message)}\n"
                "Start the session with spark.task.maxFailures=1000000: epochgate's own restart "
                "strategy decides how often a subtask is tried again"
            )
        if message:
            return f"Spark has ended the job: {shortened(message)}"
    if context._jsc is None:
        return STOPPED
    if _is_jvm_gone(context):
        return (
            "the JVM of the Spark driver has ended; it was killed (short of memory?) or crashed. "
            "Its log says more; start the job again to resume from the last checkpoint"
        )
    return f"the connection to the JVM of the Spark driver broke: {shortened(repr(error))}"


def _is_jvm_gone(context: Any) -> bool:
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is None:
        return False
    try:
        process.wait(2.0)
    except Exception:  # noqa: BLE001  it still runs, or is not ours to wait for
        return False
    return True


def telling_line(message: str) -> str:
    """Return the line that a failure which Spark has wrapped comes down to: the exception of
    Python's last traceback, or else the first line.
    """
    lines = message.splitlines()
    frames = [number for number, line in enumerate(lines) if _indent(line, 'File "') > 0]
    if frames:
        # Spark indents what a worker printed; the exception's line is less indented than a frame.
        frame = _indent(lines[frames[-1]])
        rest = [line for line in lines[frames[-1] + 1 :] if line.strip() and _indent(line) < frame]
        if rest:
            return shortened(rest[0].strip(), 500)
    told = [line.strip() for line in lines if line.strip()]
    return shortened(told[0] if told else message, 500)


def _indent(line: str, text: str = "") -> int:
    """Count the spaces in front of a line; -1 if it does not go on with `text`."""
    bare = line.lstrip(" ")
    return len(line) - len(bare) if bare.startswith(text) else -1
