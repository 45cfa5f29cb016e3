"""The program that Spark runs for a partition: a process, and the attempts of its subtask, one
after the other.

Carries out what `Resident` decides: connects as one attempt after the other, each under a greater
identity, and looks between two of them whether the process is sound, which is when nothing is left
of the attempt: no thread, child process, file or socket. Towards Spark the task returns only when
the driver told it to finish, since Spark never runs a returned task again; in every other case it
raises, and Spark starts another process.

A process that leaves although its attempt was released says so first: the driver then has Spark
kill the task, which Spark does not count among its failures, and starts the next one at once.

Runs on the task's only thread. Modules, and what user code keeps in them, stay from one attempt to
the next; the program is unpickled for each.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from epochgate.fsm import Handles, drive
from epochgate.models.resident import Residents
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.spark.attempt_loop import Attempt, AttemptOver, Released
from epochgate.spark.identities import ATTEMPTS_PER_PROCESS_MAX, identity_of
from epochgate.spark.left_behind import Inventory, left_since
from epochgate.spark.task_settings import TaskSettings
from epochgate.spark.wire import (
    CannotConnect,
    ChannelClosed,
    Detection,
    HandshakeTimedOut,
    TaskChannel,
)

CONNECTION_TRIES_MAX: Final = 3
CONNECTION_RETRY_S: Final = 0.2
CONNECTION_TIMEOUT_S: Final = 4.0
"""Of one try; a packet that was lost is sent again after 1 and 3 s. Then another host may do."""
LEAVE_WAIT_S: Final = 5.0


def run_task(
    settings: TaskSettings,
    *,
    subtask: int,
    task_attempt_id: int,
    attempts_max: int = ATTEMPTS_PER_PROCESS_MAX,
) -> None:
    """Connect, do as the driver says, and return once it says that the job is over.

    Raises AttemptOver, and what `TaskChannel.connect` raises.
    """
    ResidentProcess(settings, subtask, task_attempt_id, attempts_max).run()


def run_partition(settings: TaskSettings, subtask: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Run the resident task of a partition of Spark's; raises what `run_task` raises."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "Spark runs this"
    run_task(settings, subtask=subtask, task_attempt_id=context.taskAttemptId())
    return iter(())


class ResidentProcess:
    """The shell around the attempts of a process: handler of the port `process`."""

    def __init__(
        self, settings: TaskSettings, subtask: int, task_attempt_id: int, attempts_max: int
    ) -> None:
        self._settings, self._subtask, self._task = settings, subtask, task_attempt_id
        system = Handles(Residents, attempts=attempts_max)
        system.bind("resident", "process", self)
        self._resident = system.resident
        self._queue = drive(system, MonotonicClock())
        self._number = 0
        """Of the attempt that is to begin; 0 when none is."""
        self._channel: TaskChannel | None = None
        self._before: Inventory | None = None
        self._left: list[str] = []
        self._why = ""
        """How the attempt has ended, if its connection did."""
        self._over = ""
        """Why the process leaves."""
        self._is_finished = False

    def run(self) -> None:
        """Run attempts until the process is told to finish; AttemptOver when it leaves."""
        self._post(self._resident.begin)
        while self._number:
            self._run_attempt()
        if not self._is_finished:
            raise AttemptOver(self._over)

    def _run_attempt(self) -> None:
        identity, self._number = identity_of(self._task, self._number), 0
        self._channel = channel = self._connected(identity)
        self._before = Inventory.taken()
        try:
            self._post(self._outcome(channel, identity))
        finally:
            channel.close("the task's process leaves" if not self._number else "it begins again")

    def _outcome(self, channel: TaskChannel, identity: int) -> Any:
        """Run an attempt; the trigger that tells how it ended."""
        attempt = Attempt(channel, self._settings, self._subtask, identity, self)
        try:
            attempt.run()
        except Released:
            return self._resident.release
        except ChannelClosed as error:
            if not attempt.is_finished:
                self._why = f"attempt of subtask {self._subtask} is over: {error}"
                return self._resident.dismiss
        except AttemptOver as error:
            self._why = str(error)
            return self._resident.dismiss
        return self._resident.finish

    def _post(self, trigger: Any, *arguments: Any) -> None:
        self._queue.post(trigger, *arguments)
        self._queue.drain()

    # What an attempt lets its process know.

    def checkpointed(self) -> None:
        """Let the machine know that the process gets on."""
        self._post(self._resident.checkpointed)

    def failed(self) -> None:
        """Let the machine know that it was not the driver who wanted this."""
        self._post(self._resident.fail)

    # The port `process` of the machine.

    def begin(self, number: int) -> None:
        """Connect under the next identity, once the connection of the last attempt is closed."""
        self._number = number

    def clear(self) -> None:
        """Look what is left, unless the driver waits no longer."""
        assert self._channel is not None
        assert self._before is not None
        self._left = left_since(self._before)
        try:
            self._channel.receive()
        except ChannelClosed as error:
            self._why = f"attempt of subtask {self._subtask} is over: {error}"
            self._queue.post(self._resident.dismiss)
        else:
            self._queue.post(self._resident.cleared, not self._left)

    def end(self) -> None:
        """Let the task return, since Spark never runs a returned task again."""
        self._is_finished = True

    def leave(self) -> None:
        """End as the connection has ended."""
        self._over = self._why

    def replace(self, reason: str) -> None:
        """Tell the driver why the process begins no other attempt, and wait until it closes."""
        assert self._channel is not None
        self._over = ": ".join([reason, ", ".join(self._left)] if self._left else [reason])
        with contextlib.suppress(ChannelClosed):
            self._channel.send(["leaving", self._over])
            deadline_s = time.monotonic() + LEAVE_WAIT_S
            while time.monotonic() < deadline_s:
                self._channel.receive(LEAVE_WAIT_S)

    def _connected(self, identity: int) -> TaskChannel:
        hello = {
            "run_id": self._settings["run_id"],
            "subtask": self._subtask,
            "identity": identity,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        for tries in range(1, CONNECTION_TRIES_MAX + 1):
            try:
                return TaskChannel.connect(
                    (self._settings["host"], self._settings["port"]),
                    self._settings["key"],
                    hello,
                    certificate=self._settings["certificate"],
                    timeout_s=CONNECTION_TIMEOUT_S,
                    heartbeat_interval_s=self._settings["heartbeat_interval_s"],
                    silence_timeout_s=self._settings["silence_timeout_s"],
                    detection=Detection(**self._settings["detection"]),
                    message_bytes_max=self._settings["message_bytes_max"],
                )
            except (CannotConnect, HandshakeTimedOut):
                if tries == CONNECTION_TRIES_MAX:
                    raise
                # A driver that is busy is given longer each time.
                time.sleep(CONNECTION_RETRY_S * tries)
        raise AssertionError("unreachable")
