"""The Spark transport: one Spark job of long-lived tasks that connect back to the driver.

Decides which connection is which process, by its identity: Spark's task attempt id, which grows
over the life of a SparkContext, and a count (`identities`). Leaves to the attempts which process
speaks for a subtask. Processes are brought up by Spark alone: the first with the job, each later
one by Spark's retry, so `deploy` only notes that one is expected, and by when.

A process is released by a message: it closes its connection and comes back under the next
identity, or says that it leaves. One that does neither within a second is ended, by Spark's kill
and the closing of its connection (`endings`).

Threads: the queue's thread calls the Transport; the wire's thread reports to the inbox; the Spark
job has a thread; "epochgate-spark-watch" closes, looks for processes that do not come, and nudges
Spark where it has not noticed a loss; "epochgate-spark-ask" makes the calls into the JVM, so that
one that does not answer delays no other work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochgate.runtime.api.reports import counted, shortened
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.tracing.file_journal import Tracing
from epochgate.spark.bootstrap import task_function
from epochgate.spark.endings import CLOSE_AFTER_KILL_S, KILL_PATIENCE_S, Endings, TaskProcess
from epochgate.spark.hellos import Hellos
from epochgate.spark.identities import task_attempt_of
from epochgate.spark.placing import Placing, SparkCluster
from epochgate.spark.receive_window import ReceiveWindow
from epochgate.spark.resident_job import GROUP_PREFIX, ResidentJob
from epochgate.spark.shipping import CARRIED, CARRIED_FOLDER, ship
from epochgate.spark.slots import task_slots, why_none_came
from epochgate.spark.task_settings import ShippedSettings, TaskSettings
from epochgate.spark.wire import (
    DETECTION,
    MESSAGE_BYTES_MAX,
    Connection,
    Detection,
    TaskServer,
    WireError,
    new_key,
)

if TYPE_CHECKING:
    from epochgate.spark.wire.certificate import Credentials

RELEASE: Final[Message] = ["release"]
LEAVING: Final = "leaving"
SUCCESSOR_PATIENCE_S: Final = 1.0
"""For Spark to notice the loss of a process, and to start the next."""
RETURN_PATIENCE_S: Final = 1.0
"""For a released process to be done with the work in hand, close its operators, and come back."""
WATCH_INTERVAL_S: Final = 0.2
LOOK_INTERVAL_S: Final = 1.0
QUICK_LOOK_S: Final = 0.1
"""While a process has fallen silent, or one is missing and a host is suspect."""
LATE_AFTER_S: Final = 2.0
JVM_PATIENCE_S: Final = 10.0
LEAVE_PATIENCE_S: Final = 3.0
CANCEL_PATIENCE_S: Final = 10.0
_log = logging.getLogger(__name__)


class SparkTransport(Transport):
    """Runs `program` (a cloudpickled callable from the subtask to its Program) on a SparkContext.

    `on_broken(reason)` is called, on any of the threads, when no process can be expected any more:
    the job must then end as failed. `on_overdue(subtask, reason)`: a process does not come within
    `process_timeout_s`, and again each time that passes. `on_warning(text)`: for people.
    `is_private`: whether all that tasks and driver say to each other is encrypted.
    `heartbeat_timeout_s`: a process that is silent for so long is lost, and sooner where
    `detection` suspects it. `tracing`: where each task
    writes its trace.
    """

    _inbox: TaskInbox | None = None
    _job: ResidentJob | None = None
    _placing: Placing | None = None
    _looked_at_s = 0.0
    _is_closing = False

    def __init__(
        self,
        context: Any,
        *,
        program: bytes,
        parallelism: int,
        coordinators: Iterable[str],
        run_id: str,
        job_id: str = "",
        bind_host: str,
        advertised_host: str,
        is_private: bool = False,
        port: int = 0,
        heartbeat_interval_s: float = 0.5,
        heartbeat_timeout_s: float = 10.0,
        detection: Detection = DETECTION,
        process_timeout_s: float = 60.0,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        tracing: Tracing | None = None,
        commits_in_tasks: bool = False,
    ) -> None:
        self.on_broken: Callable[[str], None] = _log.error
        self.on_warning: Callable[[str], None] = _log.warning
        self.on_overdue: Callable[[int, str], None] = lambda _, text: _log.error(text)
        self._context, self._run_id, self._job_id = context, run_id, job_id
        self._advertised_host, self._parallelism = advertised_host, parallelism
        self._process_timeout_s = process_timeout_s
        self._silence_s = process_timeout_s + JVM_PATIENCE_S
        key, credentials = new_key(), _new_credentials() if is_private else None
        self._server = TaskServer(
            key=key,
            credentials=credentials,
            host=bind_host,
            port=port,
            listener=self,
            message_bytes_max=message_bytes_max,
            heartbeat_interval_s=heartbeat_interval_s,
            heartbeat_timeout_s=heartbeat_timeout_s,
            detection=detection,
        )
        self._settings: TaskSettings = {
            "host": "",
            "port": 0,
            "key": key,
            "certificate": None if credentials is None else credentials.certificate,
            "run_id": run_id,
            "parallelism": parallelism,
            "coordinators": list(coordinators),
            "commits_in_tasks": commits_in_tasks,
            "program": program,
            "heartbeat_interval_s": heartbeat_interval_s,
            "silence_timeout_s": max(5.0, 3 * heartbeat_timeout_s),
            "detection": asdict(detection),
            "message_bytes_max": message_bytes_max,
            "tracing": None if tracing is None else asdict(tracing),
        }
        self._stopped, self._broken = threading.Event(), threading.Event()
        # Written on the wire's thread, looked into by the others.
        self._connections: dict[int, Connection] = {}
        self._processes: dict[Connection, TaskProcess] = {}
        self._newest: dict[int, int] = {}
        self._hellos = Hellos(run_id, parallelism, self._connections, self._launched)
        self._left: set[int] = set()  # identities that said that they leave, as they were told to
        self._endings = Endings(self._connections.get, self._has_successor)
        # Written on the queue's thread.
        self._unsent: dict[Connection, list[Message]] = {}
        self._told_to_finish: dict[int, set[int]] = {}  # subtask -> identities
        self._ended: set[int] = set()  # told nothing more, although connections are still open
        self._wanted: dict[int, float] = {}  # subtask -> since when a process is expected
        self._threads: list[threading.Thread] = []

    def open(self, inbox: TaskInbox) -> None:
        """Bind, and submit the Spark job. Raises `CannotBind`."""
        self._inbox = inbox
        self._windows: dict[Connection, ReceiveWindow] = {}
        self._server.start()
        self._settings["host"] = self._advertised_host
        self._settings["port"] = self._server.address[1]
        shipped: ShippedSettings = {
            **self._settings,
            "archive": ship(self._context),
            "carried": CARRIED,
            "carried_folder": CARRIED_FOLDER,
        }
        self._job = ResidentJob(
            self._context,
            task_function(shipped),
            parallelism=self._parallelism,
            group=f"{GROUP_PREFIX}{self._run_id}",
            description=f"epochgate {self._job_id}".strip()
            + f": {counted(self._parallelism, 'resident subtask')}",
            on_end=self._job_ended,
        )
        self._placing = self._new_placing(self._job)
        for name, target in (("watch", self._watch), ("ask", self._ask_spark)):
            thread = threading.Thread(target=target, name=f"epochgate-spark-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._job.start()

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) on which the driver listens; only after `open`."""
        return self._server.address

    def processes(self) -> list[TaskProcess]:
        """All connected processes, those included that do not speak for their subtask."""
        return sorted(self._processes.copy().values(), key=lambda p: (p.subtask, p.identity))

    def process_of(self, identity: int) -> tuple[str, int] | None:
        """Return the place where a process runs, as it has said."""
        connection = self._connections.get(identity)
        process = None if connection is None else self._processes.get(connection)
        return None if process is None else (process.host, process.pid)

    def deploy(self, subtask: int, attempt: int) -> None:
        """Expect a process within the time limit; Spark brings it up by itself."""
        self._told_to_finish.pop(subtask, None)
        self._wanted[subtask] = time.monotonic()

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Keep the message for the next frame."""
        if message[0] == "restore":
            self._wanted.pop(subtask, None)
        elif message[0] == "finish":
            self._told_to_finish.setdefault(subtask, set()).add(identity)
        connection = self._connections.get(identity)
        if connection is None or identity in self._ended:
            return
        self._unsent.setdefault(connection, []).append(message)

    def flush(self) -> None:
        """Write what was kept; packing many messages together takes half the time."""
        unsent, self._unsent = self._unsent, {}
        for connection, messages in unsent.items():
            try:
                connection.send_many(messages)
            except WireError as error:
                self._break(f"a message for the task at {connection.peer} cannot be sent: {error}")

    def release(self, subtask: int, identity: int, reason: str) -> None:
        """Let the process begin another attempt; end it if it has not come back in time."""
        connection = self._connections.get(identity)
        process = None if connection is None else self._processes.get(connection)
        if process is None:
            return
        self.send(subtask, identity, RELEASE)
        self._ended.add(identity)
        self._endings.expect_successor(process, RETURN_PATIENCE_S, reason)

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """Let Spark kill the attempt, and close its connection; returns at once."""
        if identity in self._connections:
            self._ended.add(identity)
            self._endings.request(identity, reason)

    def close(self) -> None:
        """End everything; waits for the Spark job's end, bounded."""
        if self._stopped.is_set():
            return
        self._is_closing = True
        for connection in list(self._connections.values()):
            connection.send(["finish"])
        if self._job is not None:
            are_leaving = len(self._told_to_finish) == self._parallelism
            if not (are_leaving and self._job.wait(LEAVE_PATIENCE_S)):
                self._cancel(self._job)
        self._stopped.set()
        self._endings.stop()
        self._server.close()
        if self._threads:
            self._threads[0].join(CANCEL_PATIENCE_S)

    def _cancel(self, job: ResidentJob) -> None:
        canceler = threading.Thread(target=job.cancel, name="epochgate-spark-cancel", daemon=True)
        canceler.start()
        canceler.join(KILL_PATIENCE_S)
        time.sleep(CLOSE_AFTER_KILL_S)
        for connection in list(self._connections.values()):
            connection.close("the job is over")
        if not job.wait(CANCEL_PATIENCE_S):
            _log.warning(
                "the Spark job did not end within %s s of being canceled", CANCEL_PATIENCE_S
            )

    # Called by the wire's server, on its thread.

    def connected(
        self, connection: Connection, hello: dict[str, Any], *, is_asked: bool = False
    ) -> None:
        """Take a process in, or turn it away when it is none of ours; `is_asked`: Spark was asked
        for it.
        """
        process, problem = self._hellos.read(hello, is_asked=is_asked)
        if process is not None and connection.closed_reason is None:
            self._take_in(connection, process)
        elif problem:
            self._hellos.turn_away(connection, problem)
        elif process is None:
            self._hellos.put_off(connection, hello)
            self._endings.nudge()

    def _take_in(self, connection: Connection, process: TaskProcess) -> None:
        self._connections[process.identity] = connection
        self._processes[connection] = process
        self._windows[connection] = ReceiveWindow(self._server, connection)
        if self._placing is not None:
            self._placing.note_hello(task_attempt_of(process.identity))
        self._newest[process.subtask] = max(self._newest.get(process.subtask, 0), process.identity)
        # Entered first and looked up then, so that `close` and this cannot both miss it.
        if self._is_closing:
            connection.send(["finish"])
        elif self._inbox is not None:
            self._inbox.connected(process.subtask, process.identity)

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        """Pass on what a process says."""
        process = self._processes.get(connection)
        if process is None or self._is_closing or self._inbox is None:
            return
        told = self._told_to_finish.get(process.subtask, ())
        if process.identity in told and ["finished"] in messages:
            self._left.add(process.identity)
        if messages[-1][:1] == [LEAVING]:
            *messages, leaving = messages
            self._replace(process, shortened(" ".join(map(str, leaving[1:]))))
        self._inbox.received(process.subtask, process.identity, messages)
        self._windows[connection].received(self._inbox, len(messages))

    def _replace(self, process: TaskProcess, reason: str) -> None:
        """Have Spark start another process: one that leaves by itself would count as a failure."""
        text = (
            f"the process {process.pid} of subtask {process.subtask} on {process.host} is replaced "
            f"instead of beginning another attempt: {reason}"
        )
        _log.warning("%s", text)
        self._endings.request(process.identity, text)

    def lost(self, connection: Connection, reason: str) -> None:
        """Report that a process is gone."""
        process = self._processes.pop(connection, None)
        self._windows.pop(connection, None)
        if process is None:
            return
        del self._connections[process.identity]
        self._ended.discard(process.identity)
        if self._is_closing or self._inbox is None:
            return
        if process.identity not in self._left:
            self._endings.expect_successor(process, SUCCESSOR_PATIENCE_S, reason)
        self._left.discard(process.identity)
        if connection.fell_silent and self._placing is not None:
            self._placing.note_silence(process.subtask, task_attempt_of(process.identity))
            self._endings.nudge()
        self._inbox.lost(process.subtask, process.identity, reason)

    # The other threads.

    def _job_ended(self, reason: str | None) -> None:
        if reason is None:
            if len(self._told_to_finish) == self._parallelism:
                return
            reason = "the Spark job has ended although not every subtask was told to finish"
        self._break(reason)

    def _break(self, reason: str) -> None:
        if not self._is_closing and not self._broken.is_set():
            self._broken.set()
            self.on_broken(reason)

    def _has_successor(self, process: TaskProcess) -> bool:
        return self._newest.get(process.subtask, 0) > process.identity

    def _ask_spark(self) -> None:
        look_at_s = 0.0
        while not self._stopped.is_set():
            self._endings.kill_next(
                self._kill, QUICK_LOOK_S if self._is_urgent() else LOOK_INTERVAL_S
            )
            for hello in self._hellos.ask_spark():
                self._server.call(partial(self.connected, *hello, is_asked=True))
            now_s, is_urgent = time.monotonic(), self._is_urgent()
            if is_urgent or now_s >= look_at_s:
                self._look_for_missing(now_s, is_urgent=is_urgent)
                look_at_s = now_s + LOOK_INTERVAL_S

    def _launched(self) -> int | None:
        return None if self._job is None else self._job.launched()

    def _is_urgent(self) -> bool:
        return self._placing is not None and self._placing.is_urgent(are_missing=bool(self._wanted))

    def _kill(self, task_attempt_id: int, reason: str) -> None:
        if self._job is not None:
            self._job.kill(task_attempt_id, reason)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._endings.close_next(WATCH_INTERVAL_S)
            now_s = time.monotonic()
            self._endings.look(now_s)
            if any(
                now_s - max(since_s, self._looked_at_s) > self._silence_s
                for since_s in self._wanted.copy().values()
            ):
                self._break(
                    f"no process has come for {self._silence_s:g} s, and the JVM of the Spark "
                    "driver does not say why: it is stopped or overloaded"
                )

    def _look_for_missing(self, now_s: float, *, is_urgent: bool) -> None:
        if self._is_closing or self._broken.is_set() or self._placing is None:
            return
        late_s = 0.0 if is_urgent else LATE_AFTER_S
        wanted = self._wanted.copy()
        late = {s: since_s for s, since_s in wanted.items() if now_s - since_s > late_s}
        if late or is_urgent:
            self._placing.look(now_s, late)
        self._looked_at_s = time.monotonic()

    def _new_placing(self, job: ResidentJob) -> Placing:
        return Placing(
            SparkCluster(self._context, job),
            driver=f"{self._advertised_host}:{self.address[1]}",
            process_timeout_s=self._process_timeout_s,
            speaking=lambda: map(task_attempt_of, self._connections.copy()),
            why_missing=self._why_missing,
            on_warning=lambda text: self.on_warning(text),
            on_overdue=lambda subtask, reason: self.on_overdue(subtask, reason),
            on_given_up=self._break,
        )

    def _why_missing(self, missing: list[int]) -> str:
        driver = f"{self._advertised_host}:{self.address[1]}"
        cause = why_none_came(task_slots(self._context), self._parallelism, driver=driver)
        return (
            f"no process has come for {len(missing)} of {self._parallelism} subtasks "
            f"({shown(missing)}) within {self._process_timeout_s:g} s. {cause}"
        )


def _new_credentials() -> Credentials:
    # TLS is imported where it is wanted: its libraries take a tenth of a second.
    from epochgate.spark.wire.certificate import new_credentials

    return new_credentials()


def shown(numbers: list[int], most: int = 10) -> str:
    """Return the first of `numbers` as text.

    >>> shown([1, 2, 3], most=2)
    '1, 2, ...'
    """
    more = ", ..." if len(numbers) > most else ""
    return ", ".join(str(number) for number in numbers[:most]) + more
