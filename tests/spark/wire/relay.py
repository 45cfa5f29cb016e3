"""A relay between tasks and a driver that records what passes, in both directions."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Listens on the loopback address, and passes all bytes on to `target`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self._recorded: dict[str, list[bytes]] = {"up": [], "down": []}
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def to_driver(self) -> bytes:
        return b"".join(self._recorded["up"])

    @property
    def to_task(self) -> bytes:
        return b"".join(self._recorded["down"])

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in self._sockets:
            sock.close()

    def _start(self, run: object, *arguments: object) -> None:
        assert callable(run)
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                task, _ = self._listening.accept()
                driver = socket.create_connection(self._target)
                self._sockets += [task, driver]
                self._start(self._pass, task, driver, "up")
                self._start(self._pass, driver, task, "down")

    def _pass(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with suppress(OSError):  # either end is gone
            while data := source.recv(65536):
                self._recorded[direction].append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def recording_relay(target: tuple[str, int]) -> Iterator[Relay]:
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
