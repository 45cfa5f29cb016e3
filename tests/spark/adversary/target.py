"""The attacked driver as an attacker sees it: its port, and what is known about its run."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgpack

from epochgate.spark.wire import TaskChannel
from epochgate.spark.wire.certificate import task_context
from epochgate.spark.wire.frames import sealed_frame
from epochgate.spark.wire.handshake import (
    GREETING_BYTES,
    VERDICT_BYTES,
    SessionKeys,
    TaskHandshake,
)
from epochgate.spark.wire.sealing import FrameSeal
from tests.spark.adversary.driver_program import ADVERSARY, SECRETS, STATUS
from tests.spark.running import wait_for
from tests.spark.wire.harness import read_exactly

WAIT_S = 30.0
DISMISSAL_S = 8.0


@dataclass(frozen=True)
class Size:
    """The size of each attack; seconds and counts."""

    garbage: int = 3000
    flood_bytes: int = 200_000_000
    half_open: int = 5000
    half_open_s: float = 7.0
    drips: int = 900
    drips_s: float = 8.0
    connects_s: float = 6.0
    wrong_keys: int = 2000
    churn_s: float = 25.0
    large_frames: int = 40
    rounds_of_newer: int = 12


LONG = Size()
SHORT = Size(
    flood_bytes=50_000_000,
    half_open=1500,
    half_open_s=1.0,
    drips=300,
    drips_s=1.5,
    connects_s=1.5,
    wrong_keys=500,
    churn_s=1.5,
    rounds_of_newer=1,
)


@dataclass(frozen=True)
class Target:
    """A driver that runs. The key is for the attacks that have it."""

    folder: Path
    pid: int
    address: tuple[str, int]
    key: bytes
    run_id: str
    certificate: bytes | None
    size: Size

    @classmethod
    def in_folder(cls, folder: Path, size: Size) -> Self:
        """The driver that has told its secrets."""
        told = json.loads((folder / SECRETS).read_text())
        certificate = told["certificate"]
        return cls(
            folder=folder,
            pid=told["pid"],
            address=tuple(told["address"]),
            key=bytes.fromhex(told["key"]),
            run_id=told["run_id"],
            certificate=None if certificate is None else bytes.fromhex(certificate),
            size=size,
        )

    def status(self) -> dict[str, Any]:
        """Return what the driver has told last of its attempts."""
        told: dict[str, Any] = json.loads((self.folder / STATUS).read_text())
        return told

    def status_from_now(self) -> dict[str, Any]:
        """Return what the driver tells after this call."""
        called_s = time.monotonic()
        wait_for(lambda: self.status()["t"] > called_s, "the driver's status")
        return self.status()

    def stranger(self) -> socket.socket:
        """A connection of which the driver knows nothing."""
        return socket.create_connection(self.address, timeout=WAIT_S)

    def greeted(self) -> socket.socket:
        """A connection behind the handshake of TLS, if the wire is private, as anyone can make."""
        sock = self.stranger()
        if self.certificate is None:
            return sock
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(sock)

    def first_bytes(self) -> bytes:
        """Return what an honest task says first to a driver that it has not heard."""
        if self.certificate is None:
            return TaskHandshake(self.key).answer(b"EGWIRE\0\1" + bytes(GREETING_BYTES - 8))
        leaving = ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            task_context(self.certificate).wrap_bio(ssl.MemoryBIO(), leaving).do_handshake()
        return leaving.read()

    def authenticated(self) -> Peer:
        """A peer that has proved the key, and has not said hello."""
        sock = self.greeted()
        handshake = TaskHandshake(self.key)
        answer = handshake.answer(read_exactly(sock, GREETING_BYTES))
        sock.sendall(answer)
        return Peer(sock, handshake.accept(read_exactly(sock, VERDICT_BYTES)), answer)

    def hello(self, subtask: Any, identity: Any) -> dict[str, Any]:
        """The hello of a task."""
        who = {"run_id": self.run_id, "subtask": subtask, "identity": identity}
        return {**who, "pid": 1, "host": ADVERSARY}

    def channel(self, subtask: int, identity: int) -> TaskChannel:
        """A task's own end of the wire, with the hello of another."""
        return TaskChannel.connect(
            self.address, self.key, self.hello(subtask, identity), certificate=self.certificate
        )


class Peer:
    """A connection that has proved the key."""

    def __init__(self, sock: socket.socket, session: SessionKeys, answer: bytes) -> None:
        self.sock, self.answer = sock, answer
        self._seal = FrameSeal(session.from_task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.sock.close()

    def frame(self, payload: bytes) -> bytes:
        """The next frame with this payload."""
        return sealed_frame(payload, self._seal)

    def hello(self, hello: dict[str, Any]) -> bytes:
        """The frame of a hello."""
        return self.frame(msgpack.packb([["hello", hello]]))

    def send(self, *frames: bytes) -> None:
        """Write at once what the driver takes, which may close at any byte."""
        with suppress(ConnectionError, ssl.SSLError):
            # In pieces, the second would wait until the first was acknowledged.
            self.sock.sendall(b"".join(frames))

    def is_dismissed(self) -> bool:
        """Return whether the driver closes the connection, sooner than a silent one."""
        until_s = time.monotonic() + DISMISSAL_S
        with suppress(ConnectionError, ssl.SSLError):
            while self.sock.recv(65536):
                if time.monotonic() > until_s:
                    return False
        return True
