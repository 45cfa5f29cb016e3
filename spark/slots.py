"""The number of tasks that Spark can run at the same time, and what to say when these are too few.

Decides the wording alone, by what the number tells: none at all, fewer than the job needs, or
enough and no process all the same. Also gives up executors that `Placement` holds for lost. Any
thread; one call into the JVM.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

REPLACED_S: Final = 1.0
"""For the cluster's master to be asked for another executor, which it does within milliseconds."""
_log = logging.getLogger(__name__)


def task_slots(context: Any) -> int | None:
    """Return how many tasks Spark can run at the same time now; None when it cannot be asked."""
    try:
        scala = context._jsc.sc()
        profile = scala.resourceProfileManager().defaultResourceProfile()
        return int(scala.maxNumConcurrentTasks(profile))
    except Exception as error:  # noqa: BLE001  a developer interface that may change
        _log.info("Spark did not tell its task slots: %r", error)
        return None


class Executor(NamedTuple):
    """The place of an executor, which runs or ran, and whether it has a free slot."""

    host: str
    has_room: bool


def executors(context: Any) -> dict[str, Executor] | None:
    """All executors of the application by their ids, the dead ones included; None when Spark cannot
    be asked.
    """
    try:
        told = context._jsc.sc().statusStore().executorList(False)
        found = {}
        for number in range(told.size()):
            one = told.apply(number)
            host = str(one.hostPort()).rpartition(":")[0]
            has_room = one.isActive() and one.activeTasks() < one.maxTasks()
            found[str(one.id())] = Executor(host, has_room)
        return found
    except Exception as error:  # noqa: BLE001  the next look asks again
        _log.info("Spark did not tell its executors: %r", error)
        return None


def remove_executor(context: Any, executor: str, reason: str) -> bool:
    """Have Spark take an executor for lost now, and ask for another one, as it does after
    spark.network.timeout; whether Spark was told.
    """
    # In this order: Spark replaces no executor that it does not know any more.
    replacing = threading.Thread(
        target=_replace, args=(context, executor), name="epochgate-spark-replace", daemon=True
    )
    replacing.start()
    replacing.join(REPLACED_S)
    try:
        lost = context._jvm.org.apache.spark.scheduler.ExecutorProcessLost(
            reason, context._jvm.scala.Option.apply(None), False
        )
        context._jsc.sc().schedulerBackend().removeExecutor(executor, lost)
    except Exception as error:  # noqa: BLE001  a private interface; Spark notices by itself later
        _log.warning("Spark could not be told that executor %s is lost: %r", executor, error)
        return False
    return True


def _replace(context: Any, executor: str) -> None:
    """Have the cluster end an executor and start another one; blocks until its master answers."""
    try:
        context._jsc.sc().killAndReplaceExecutor(executor)
    except Exception as error:  # noqa: BLE001  a private interface; the job goes on with fewer slots
        _log.warning("Spark could not be told to replace executor %s: %r", executor, error)


def asked(context: Any, executor: str) -> Callable[[], bool]:
    """Ask an executor for a dump of its threads, as Spark's web page does; returns whether it has
    answered by now, or Spark cannot ask.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            context._jsc.sc().getExecutorThreadDump(executor)
        except Exception as error:  # noqa: BLE001  what cannot be asked is not held for lost
            _log.info("Spark did not ask executor %s: %r", executor, error)
        answered.set()

    threading.Thread(target=ask, name="epochgate-spark-executor", daemon=True).start()
    return answered.is_set


def too_few_slots(
    slots: int, parallelism: int, *, master: str, driver: str, waited_s: float
) -> str:
    """Tell why a job cannot start on `slots` task slots; `driver`: where executors look for it."""
    if slots == 0:
        return (
            f"the job has {parallelism} subtasks, and no executor has registered with this "
            f"application on {master} within {waited_s:g} s. Either the cluster has no free cores "
            "or memory (the master's web page shows applications that wait), or its executors "
            f"cannot reach the driver at {driver}: set spark.driver.host to an address of the "
            "driver that the workers' machines can reach; the executors' logs say which"
        )
    return (
        f"the job has {parallelism} subtasks, which all run at the same time, and {master} "
        f"has {slots} task slots. Give Spark at least {parallelism} cores, lower spark.task.cpus "
        f"(it may be 0.5), or give the job a parallelism of at most {slots}"
    )


def why_none_came(slots: int | None, parallelism: int, *, driver: str) -> str:
    """The likely cause when no process has come; `driver`: where tasks look for it."""
    needs = f"The job needs {parallelism} task slots at the same time"
    if slots is None:
        return f"{needs}, and Spark does not say how many it has; look whether executors run"
    if slots == 0:
        return (
            "The application has no executor left, and the cluster starts none: its workers are "
            "gone or full, or its master was restarted without spark.deploy.recoveryMode and has "
            "forgotten the application. Start the application again once the cluster has room; the "
            "job continues from its last checkpoint"
        )
    if slots < parallelism:
        return (
            f"{needs}, and Spark has {slots}: executors are missing. Give Spark more cores, or the "
            "job fewer subtasks"
        )
    return (
        f"{needs}, and Spark has {slots}; another job may hold some, or the tasks cannot reach the "
        f"driver at {driver}. Give Spark more cores, or look into the executors' logs"
    )
