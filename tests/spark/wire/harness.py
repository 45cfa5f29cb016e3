"""The common part of the tests of the wire: a listener that records, a server, task processes."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from epochgate.spark.wire import Connection, TaskChannel, TaskServer, WireError, new_key
from epochgate.spark.wire.certificate import new_credentials, task_context
from epochgate.spark.wire.handshake import (
    GREETING_BYTES,
    VERDICT_BYTES,
    SessionKeys,
    TaskHandshake,
)

ROOT = Path(__file__).parents[3]
PROCESS = "tests.spark.wire.task_process"
WAIT_S = 60.0


class Recorder:
    """A listener that keeps what it hears, in order; tests take from it with a time limit."""

    def __init__(self) -> None:
        self._connected: queue.Queue[Connection] = queue.Queue()
        self._messages: queue.Queue[tuple[Connection, list[Any]]] = queue.Queue()
        self._lost: queue.Queue[tuple[Connection, str]] = queue.Queue()
        self._refused: queue.Queue[WireError] = queue.Queue()
        self.batches: list[int] = []

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        assert hello == connection.hello
        self._connected.put(connection)

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        self.batches.append(len(messages))
        for message in messages:
            self._messages.put((connection, message))

    def lost(self, connection: Connection, reason: str) -> None:
        self._lost.put((connection, reason))

    def refused(self, peer: str, error: WireError) -> None:
        self._refused.put(error)

    def next_connection(self) -> Connection:
        return self._connected.get(timeout=WAIT_S)

    def next_message(self, timeout_s: float = WAIT_S) -> list[Any]:
        return self._messages.get(timeout=timeout_s)[1]

    def next_loss(self, timeout_s: float = WAIT_S) -> tuple[Connection, str]:
        return self._lost.get(timeout=timeout_s)

    def next_refusal(self) -> WireError:
        return self._refused.get(timeout=WAIT_S)

    def nothing_was_lost(self) -> bool:
        return self._lost.empty()

    def no_task_came_in(self) -> bool:
        return self._connected.empty() and self._messages.empty()

    def no_message_waits(self) -> bool:
        return self._messages.empty()


class Wire:
    """A running server with its key, the credentials of a private wire, and its recorder."""

    is_private = False

    def __init__(self, **settings: Any) -> None:
        self.key = new_key()
        self.credentials = new_credentials() if self.is_private else None
        self.certificate = None if self.credentials is None else self.credentials.certificate
        self.recorder = Recorder()
        listener = settings.pop("listener", self.recorder)
        defaults: dict[str, Any] = {
            "host": "127.0.0.1",
            "heartbeat_interval_s": 0.2,
            "heartbeat_timeout_s": 10.0,
        }
        self.server = TaskServer(
            key=self.key,
            credentials=self.credentials,
            listener=listener,
            on_refused=self.recorder.refused,
            **{**defaults, **settings},
        )

    def channel(self, hello: dict[str, Any] | None = None, **settings: Any) -> TaskChannel:
        return TaskChannel.connect(
            self.server.address, self.key, hello or {}, certificate=self.certificate, **settings
        )

    @contextmanager
    def pair(self, **settings: Any) -> Iterator[tuple[Connection, TaskChannel]]:
        """A channel, and the connection that is its other end."""
        with self.channel(**settings) as channel:
            yield self.recorder.next_connection(), channel

    def stranger(self) -> socket.socket:
        return socket.create_connection(self.server.address, timeout=WAIT_S)

    def greeted(self) -> socket.socket:
        """A bare socket, behind the handshake of TLS where the wire is private; Python's own
        `SSLSocket` then.
        """
        if self.certificate is None:
            return self.stranger()
        return task_context(self.certificate).wrap_socket(self.stranger())

    def authenticated(self) -> tuple[socket.socket, SessionKeys]:
        """A bare socket behind the handshake, for bytes that no channel would send."""
        sock = self.greeted()
        handshake = TaskHandshake(self.key)
        sock.sendall(handshake.answer(read_exactly(sock, GREETING_BYTES)))
        return sock, handshake.accept(read_exactly(sock, VERDICT_BYTES))

    @contextmanager
    def task_process(self, behaviour: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """`task_process.py` in a process of its own; killed at the end if it still lives."""
        host, port = self.server.address
        process = subprocess.Popen(
            [sys.executable, "-m", PROCESS, behaviour, host, str(port), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdin is not None
            certificate = self.certificate or b""
            process.stdin.write(self.key + len(certificate).to_bytes(2, "big") + certificate)
            process.stdin.flush()
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=WAIT_S)


@contextmanager
def running_wire(**settings: Any) -> Iterator[Wire]:
    wire = Wire(**settings)
    with wire.server:
        yield wire


def read_exactly(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = sock.recv(size - len(found))
        assert data, "the connection ended"
        found += data
    return found


def read_to_the_end(sock: socket.socket) -> bytes:
    """Everything until the peer closes; a reset counts as an end."""
    found = b""
    with suppress(ConnectionError):
        while data := sock.recv(65536):
            found += data
    return found


def receive_count(channel: TaskChannel, count: int) -> list[list[Any]]:
    messages: list[list[Any]] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(messages) < count:
        assert time.monotonic() < deadline_s, f"only {len(messages)} of {count} messages came"
        messages += channel.receive(1.0)
    return messages


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether `condition` comes true within the time limit."""
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        if condition():
            return True
        time.sleep(0.005)
    return False


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
