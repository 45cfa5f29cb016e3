"""Sockets made ready: bound for the driver, tuned for both sides.

Decides socket options and the wording of a failed bind. Runs on the caller's thread.
"""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

from epochgate.spark.wire.errors import CannotBind

_BACKLOG: Final = 4096
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
_WHAT_TO_DO: Final = {
    errno.EADDRINUSE: "Another program listens there; choose another port, or 0 for a free one.",
    errno.EADDRNOTAVAIL: "No interface of this machine has that address; spark.driver.bindAddress "
    "must be one of this machine's own, while spark.driver.host may be the one executors see.",
    errno.EACCES: "Ports below 1024 need privileges; choose a higher one, or 0 for a free one.",
}


def bound_socket(host: str, port: int) -> socket.socket:
    """A non-blocking socket that listens; port 0 takes any free one. Raises `CannotBind`."""
    if not 0 <= port <= 65535:
        raise CannotBind(
            f"port {port} does not exist; choose one from 1024 to 65535, or 0 for a free one."
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise CannotBind(
            f"the driver's host {host!r} is not known here ({error}). "
            "Set spark.driver.bindAddress to an address of this machine."
        ) from error
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        hint = _WHAT_TO_DO.get(error.errno or 0, "Check host and port.")
        raise CannotBind(f"cannot listen on {host}:{port}: {error.strerror}. {hint}") from error
    return sock


def tune(sock: socket.socket) -> None:
    """Make a connected socket non-blocking, prompt (no Nagle delay) and kept alive."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def peer_name(address: Any) -> str:
    """A socket address as "host:port", with IPv6 hosts in brackets."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
