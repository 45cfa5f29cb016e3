"""A job over the real wire without Spark: its tasks are processes on the loopback address.

Everything but Spark is the real thing: the server and its frames, the queue's thread, and in each
process the same `run_task` that a Spark worker runs. A process that dies is not replaced.
Processes are started a few at a time: hundreds that start at once on a few cores do not come
through the handshake in time. With `preloaded` modules they are forked from a process that has
them, as the workers of Spark are.
"""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

from epochgate.runtime import Program, TaskInbox, Transport
from epochgate.runtime.api.transport import Message
from epochgate.runtime.tracing.file_journal import Tracing
from epochgate.spark.task_main import run_task
from epochgate.spark.task_settings import TaskSettings
from epochgate.spark.wire import DETECTION, MESSAGE_BYTES_MAX, Connection, TaskServer, new_key
from epochgate.spark.wire.certificate import new_credentials

HOST = "127.0.0.1"
LEAVE_TIMEOUT_S = 5.0
STARTING_MAX = 8


class LoopbackTransport(Transport):
    """Starts one process for each deployment; `program` is a function that a process can import."""

    def __init__(
        self,
        program: Callable[[int], Program],
        *,
        parallelism: int,
        coordinators: list[str],
        run_id: str,
        tracing: Tracing | None = None,
        is_private: bool = False,
        preloaded: Sequence[str] = (),
    ) -> None:
        key, credentials = new_key(), new_credentials() if is_private else None
        self._server = TaskServer(key=key, credentials=credentials, host=HOST, listener=self)
        self._settings: TaskSettings = {
            "host": HOST,
            "port": 0,
            "key": key,
            "certificate": None if credentials is None else credentials.certificate,
            "run_id": run_id,
            "parallelism": parallelism,
            "coordinators": coordinators,
            "commits_in_tasks": False,
            "program": pickle.dumps(program),
            "heartbeat_interval_s": 1.0,
            "silence_timeout_s": 30.0,
            "detection": asdict(DETECTION),
            "message_bytes_max": MESSAGE_BYTES_MAX,
            "tracing": None if tracing is None else asdict(tracing),
        }
        self._inbox: TaskInbox | None = None
        self._connections: dict[int, Connection] = {}
        self._unsent: dict[int, list[Message]] = {}
        self._context: ForkServerContext | SpawnContext = multiprocessing.get_context("spawn")
        if preloaded:
            self._context = multiprocessing.get_context("forkserver")
            self._context.set_forkserver_preload(["__main__", *preloaded])
        self._starting = threading.Lock()
        self._not_started: deque[int] = deque()
        self._not_connected = 0
        self.processes: list[multiprocessing.process.BaseProcess] = []

    # the transport, on the queue's thread

    def open(self, inbox: TaskInbox) -> None:
        """Begin to serve."""
        self._inbox = inbox
        self._server.start()
        self._settings["port"] = self._server.address[1]

    def deploy(self, subtask: int, attempt: int) -> None:
        """Start a process, behind those that have not connected yet."""
        with self._starting:
            self._not_started.append(subtask)
        self._start_some()

    def _start_some(self) -> None:
        with self._starting:
            while self._not_started and self._not_connected < STARTING_MAX:
                self._not_connected += 1
                process = self._context.Process(
                    target=run_task,
                    args=(self._settings,),
                    kwargs={
                        "subtask": self._not_started.popleft(),
                        "task_attempt_id": len(self.processes),
                    },
                    daemon=True,
                )
                process.start()
                self.processes.append(process)

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Keep the message for the next frame."""
        self._unsent.setdefault(identity, []).append(message)

    def flush(self) -> None:
        """Write what was kept: packing many messages at once takes half as long."""
        for identity, messages in self._unsent.items():
            if identity in self._connections:
                self._connections[identity].send_many(messages)
        self._unsent.clear()

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """Close its connection."""
        if identity in self._connections:
            self._connections[identity].close(reason)

    def close(self) -> None:
        """Close all connections, and wait for the processes."""
        self._server.close()
        for process in self.processes:
            process.join(LEAVE_TIMEOUT_S)
            if process.is_alive():
                process.kill()
                process.join()

    # the wire's listener, on the server's thread

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        """Pass on that a process is there."""
        self._connections[hello["identity"]] = connection
        self._told().connected(hello["subtask"], hello["identity"])
        with self._starting:
            self._not_connected = max(0, self._not_connected - 1)
        self._start_some()

    def received(self, connection: Connection, messages: list[Message]) -> None:
        """Pass on what it says."""
        hello = connection.hello
        self._told().received(hello["subtask"], hello["identity"], messages)

    def lost(self, connection: Connection, reason: str) -> None:
        """Pass on that it is gone."""
        hello = connection.hello
        self._connections.pop(hello["identity"], None)
        self._told().lost(hello["subtask"], hello["identity"], reason)

    def _told(self) -> TaskInbox:
        if self._inbox is None:
            raise RuntimeError("the transport is not open; start the job master first")
        return self._inbox
