"""The traffic on the loopback interface between addresses, as a program with root's rights reads
it.

Processes of one host speak to each other too, Spark's JVMs with the Python beside them: from
127.0.0.1 to itself. Tests therefore give their hosts other addresses of the interface.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ETH_P_ALL = 3
WITHIN_A_HOST = 2 * bytes((127, 0, 0, 1))
SO_RCVBUFFORCE = 33
SO_RCVBUF_BYTES = 128 * 1024 * 1024
_ETHERNET_BYTES = 14

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="reading all traffic takes root")


class Traffic:
    """The bytes of each direction of each TCP connection between two hosts, in order."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SO_RCVBUF_BYTES)
        self._sock.bind(("lo", 0))
        self._sock.settimeout(0.2)
        self._segments: dict[bytes, dict[int, bytes]] = defaultdict(dict)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._sock.close()

    def shows(self, secret: bytes) -> bool:
        """Return whether a connection has carried `secret`."""
        return any(
            secret in b"".join(data for _, data in sorted(segments.items()))
            for segments in list(self._segments.values())
        )

    @property
    def bytes_seen(self) -> int:
        return sum(len(data) for flow in self._segments.values() for data in flow.values())

    def _read(self) -> None:
        while not self._is_over.is_set():
            try:
                packet = self._sock.recv(1 << 17)
            except TimeoutError:
                continue
            self._keep(packet[_ETHERNET_BYTES:])

    def _keep(self, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return
        header_bytes = (packet[0] & 0x0F) * 4
        segment = packet[header_bytes : int.from_bytes(packet[2:4], "big") or None]
        data = segment[(segment[12] >> 4) * 4 :]
        if data and packet[12:20] != WITHIN_A_HOST:
            flow = packet[12:20] + segment[:4]
            self._segments[flow][int.from_bytes(segment[4:8], "big")] = data


@contextmanager
def recorded_traffic() -> Iterator[Traffic]:
    traffic = Traffic()
    try:
        yield traffic
    finally:
        traffic.close()
