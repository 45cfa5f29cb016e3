"""The end of processes at the driver's hand: Spark's kill first, and then the closing of the
connection.

Spark does not count a kill as a failure and starts the next process at once; the closed connection
makes the old one leave at once instead of after Spark's own patience of seconds. Also watches over
processes that are to have a successor within a time, because they are lost or were released, and
ends those that have none by then. Decides nothing about the protocol.

Threads: any may ask for an end; one makes the calls into the JVM (`kill_next`), another closes and
watches (`close_next`, `look`), so that a JVM that does not answer delays no closing.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from epochgate.spark.identities import task_attempt_of
from epochgate.spark.wire import Connection

CLOSE_AFTER_KILL_S: Final = 0.02
"""For Spark's kill to arrive, which is not confirmed: what leaves before counts as a failure."""
KILL_PATIENCE_S: Final = 0.5
LOOK_LATE_S: Final = 1.0
"""Looks come several times a second; after a longer time without one the driver has paused."""


@dataclass(frozen=True)
class TaskProcess:
    """A connected process: where it runs."""

    subtask: int
    identity: int
    host: str
    pid: int


@dataclass
class _Ending:
    """An attempt that is being ended."""

    identity: int
    reason: str
    connection: Connection | None
    requested_at_s: float = field(default_factory=time.monotonic)
    killed: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _Succession:
    """A process that is to have a successor, and by when."""

    process: TaskProcess
    within_s: float
    due_s: float
    reason: str


class Endings:
    """The processes that are being ended.

    `connection_of(identity)`: as long as it is open. `has_successor(process)`: another has come.
    """

    def __init__(
        self,
        connection_of: Callable[[int], Connection | None],
        has_successor: Callable[[TaskProcess], bool],
    ) -> None:
        self._connection_of, self._has_successor = connection_of, has_successor
        self._kills: queue.SimpleQueue[_Ending | None] = queue.SimpleQueue()
        self._closes: queue.SimpleQueue[_Ending | None] = queue.SimpleQueue()
        self._expected: queue.SimpleQueue[_Succession] = queue.SimpleQueue()
        self._awaited: list[_Succession] = []
        self._looked_at_s = math.inf

    def request(self, identity: int, reason: str) -> None:
        """End a process, connected or not; returns at once."""
        ending = _Ending(identity, reason, self._connection_of(identity))
        self._kills.put(ending)
        if ending.connection is not None:
            self._closes.put(ending)

    def expect_successor(self, process: TaskProcess, within_s: float, reason: str) -> None:
        """End a process unless another has come in its place by then."""
        self._expected.put(_Succession(process, within_s, time.monotonic() + within_s, reason))

    def nudge(self) -> None:
        """Let the thread that makes the calls into the JVM look at what else there is to do."""
        self._kills.put(None)

    def stop(self) -> None:
        """Let the threads that wait for something to do go on."""
        self._kills.put(None)
        self._closes.put(None)

    def kill_next(self, kill: Callable[[int, str], None], timeout_s: float) -> None:
        """Have Spark kill the next task attempt, if one is to be killed by then."""
        try:
            ending = self._kills.get(timeout=timeout_s)
        except queue.Empty:
            return
        if ending is not None:
            kill(task_attempt_of(ending.identity), ending.reason)
            ending.killed.set()

    def close_next(self, timeout_s: float) -> None:
        """Close the connection of the next process, once Spark has been told."""
        try:
            ending = self._closes.get(timeout=timeout_s)
        except queue.Empty:
            return
        if ending is not None and ending.connection is not None:
            waited_s = time.monotonic() - ending.requested_at_s
            ending.killed.wait(max(0.0, KILL_PATIENCE_S - waited_s))
            time.sleep(CLOSE_AFTER_KILL_S)
            ending.connection.close(ending.reason)

    def look(self, now_s: float) -> None:
        """End what has no successor in time: a process that is stopped, or does not let go.

        A successor that came while the driver paused has yet to be heard, so each has its whole
        time again then.
        """
        while not self._expected.empty():
            self._awaited.append(self._expected.get())
        if now_s - self._looked_at_s > LOOK_LATE_S:
            self._awaited = [replace(one, due_s=now_s + one.within_s) for one in self._awaited]
        self._looked_at_s = now_s
        awaited, self._awaited = self._awaited, []
        for one in awaited:
            if self._has_successor(one.process):
                self._leave_to_successor(one)
            elif one.due_s <= now_s:
                self.request(one.process.identity, one.reason)
            else:
                self._awaited.append(one)

    def _leave_to_successor(self, one: _Succession) -> None:
        """Close the connection of a process that was released and has stayed."""
        connection = self._connection_of(one.process.identity)
        if connection is not None:
            connection.close(one.reason)
