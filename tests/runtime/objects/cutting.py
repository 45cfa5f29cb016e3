"""A relay before an object store or a catalog that keeps answers back: the request was carried out,
and its client finds the connection closed.

It goes by whose turn it is on a connection, and by the first word of a request, so that bodies need
not be understood. Requests that only read are answered.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator

CHANGING = (b"PUT ", b"POST ", b"DELETE ")
CONTINUE = b"HTTP/1.1 100 "
"""Asks the client for the body: nothing was carried out yet."""


class Cutting:
    """Listens on the loopback address for the server on `port`; keeps back about one of `every`
    answers to requests that change something. `cuts`: how many.
    """

    def __init__(self, port: int, every: int, chance: random.Random) -> None:
        self._port, self._every, self._chance = port, every, chance
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no further connection; those that are open end with their clients."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):  # either end is gone, or the server is down
            server = socket.create_connection(("127.0.0.1", self._port))
            with server:
                turn = _Turn()
                up = threading.Thread(target=self._pass_up, args=(client, server, turn))
                up.start()
                self._pass_down(client, server, turn)
                for end in (client, server):
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                up.join()

    def _pass_up(self, client: socket.socket, server: socket.socket, turn: _Turn) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if turn.is_of_client and data.startswith(CHANGING):
                    turn.is_cut = self._chance.randrange(self._every) == 0
                turn.is_of_client = False
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _pass_down(self, client: socket.socket, server: socket.socket, turn: _Turn) -> None:
        while data := server.recv(65536):
            if turn.is_cut and not data.startswith(CONTINUE):
                self.cuts += 1
                return
            turn.is_of_client = not data.startswith(CONTINUE)
            client.sendall(data)


class _Turn:
    """Of one connection: whether a request may begin, and whether its answer is kept back."""

    is_of_client = True
    is_cut = False


@contextlib.contextmanager
def cutting(port: int, every: int, seed: int) -> Iterator[Cutting]:
    """A relay that listens until the block's end."""
    relay = Cutting(port, every, random.Random(seed))
    try:
        yield relay
    finally:
        relay.close()
