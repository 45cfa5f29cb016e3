"""The admission of processes to the job, by their hellos.

Decides whether a hello belongs to this run, and whether Spark has started the task attempt that its
identity names. A peer with the run's key can claim any identity. One beyond all that Spark has
given out would be newer than every process to come: the subtask would never have a process again.
Leaves to the attempts which process speaks for a subtask.

`read`, `turn_away` and `put_off` run on the wire's thread; `ask_spark`, a call into the JVM, on
another.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Container
from typing import Any, TypeAlias

from epochgate.spark.endings import TaskProcess
from epochgate.spark.identities import task_attempt_of
from epochgate.spark.wire import Connection
from epochgate.spark.wire.arrivals import RefusalLog

Hello: TypeAlias = dict[str, Any]


class Hellos:
    """The hellos of one run. `taken`: the identities that are connected. `launched()`: how many
    task attempts Spark has started so far, or None if it does not say.
    """

    def __init__(
        self,
        run_id: str,
        parallelism: int,
        taken: Container[int],
        launched: Callable[[], int | None],
    ) -> None:
        self._run_id, self._parallelism, self._taken = run_id, parallelism, taken
        self._launched = launched
        self._launched_before: float = 0
        self._refusals = RefusalLog()
        self._put_off: queue.SimpleQueue[tuple[Connection, Hello]] = queue.SimpleQueue()

    def read(self, hello: Hello, *, is_asked: bool) -> tuple[TaskProcess | None, str]:
        """The process that introduces itself so; None, and why, when it is none of this job's; None
        without a reason, when Spark is to be asked first, which `is_asked` says it was.
        """
        run_id, subtask, identity = hello.get("run_id"), hello.get("subtask"), hello.get("identity")
        if run_id != self._run_id:
            return None, f"it belongs to the run {run_id!r}, and this is {self._run_id!r}"
        if type(subtask) is not int or not 0 <= subtask < self._parallelism:
            return None, f"there is no subtask {subtask!r} among {self._parallelism}"
        if type(identity) is not int or identity < 1 or identity in self._taken:
            return None, f"its identity {identity!r} is taken or is not a number above 0"
        host, pid = hello.get("host"), hello.get("pid")
        if type(host) is not str or type(pid) is not int:
            return None, f"its host {host!r} or pid {pid!r} is not what it should be"
        if (task_attempt := task_attempt_of(identity)) >= self._launched_before:
            has_not = f"its identity is {identity}, and Spark has no task attempt {task_attempt}"
            return None, has_not if is_asked else ""
        return TaskProcess(subtask, identity, host, pid), ""

    def turn_away(self, connection: Connection, problem: str) -> None:
        """Close the connection of a hello that is not let in, and log that like other refusals."""
        self._refusals.add(connection.peer, problem)
        connection.close(problem)

    def put_off(self, connection: Connection, hello: Hello) -> None:
        """Keep a hello until Spark was asked."""
        self._put_off.put((connection, hello))

    def ask_spark(self) -> list[tuple[Connection, Hello]]:
        """Ask if a hello was put off, and return those that were. If Spark does not say what it has
        started, every identity counts as started.
        """
        hellos = [self._put_off.get() for _ in range(self._put_off.qsize())]
        if hellos:
            launched = self._launched()
            self._launched_before = math.inf if launched is None else launched
        return hellos
