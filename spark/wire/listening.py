"""Sockets made ready: bound for the driver, connected for the tasks, tuned for both sides.

Decides which addresses of a name are listened on and tried, socket options, and the wording of a
failed bind. Runs on the caller's thread.
"""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from epochgate.spark.wire.errors import CannotBind

FREE_PORT_TRIES_MAX: Final = 20
_BACKLOG: Final = 4096
_THIN_LINEAR_TIMEOUTS: Final = 16
"""Linux's TCP_THIN_LINEAR_TIMEOUTS, which Python does not name: what is lost of a few packets is
sent again after the same time each try, and not after twice the time of the last.
"""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
_WHAT_TO_DO: Final = {
    errno.EADDRINUSE: "Another program listens there; choose another port, or 0 for a free one.",
    errno.EADDRNOTAVAIL: "No interface of this machine has that address; spark.driver.bindAddress "
    "must be one of this machine's own, while spark.driver.host may be the one executors see.",
    errno.EACCES: "Ports below 1024 need privileges; choose a higher one, or 0 for a free one.",
}


Address: TypeAlias = tuple[socket.AddressFamily, Any]
"""A family, and an address of it as sockets take it."""


def addresses_of(host: str, port: int) -> list[Address]:
    """All addresses of a name, in the resolver's order, each once. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Non-blocking sockets that listen on all addresses of `host` that this machine has, on the
    same port; port 0 takes one that is free on all of them. Raises `CannotBind`.
    """
    if not 0 <= port <= 65535:
        raise CannotBind(
            f"port {port} does not exist; choose one from 1024 to 65535, or 0 for a free one."
        )
    try:
        addresses = addresses_of(host, port)
    except (socket.gaierror, UnicodeError) as error:
        raise CannotBind(
            f"the driver's host {host!r} is not known here ({error}). "
            "Set spark.driver.bindAddress to an address of this machine."
        ) from error
    return bound_to(addresses, host, port)


def bound_to(addresses: Sequence[Address], host: str, port: int) -> list[socket.socket]:
    """As `bound_sockets`, with the addresses of `host` known.

    An address that this machine does not have is passed over while there is another, because the
    tasks try all of them too. A port that another program has on one of them is an error: tasks
    would reach that program.
    """
    tries = FREE_PORT_TRIES_MAX if port == 0 and len(addresses) > 1 else 1
    for _ in range(tries):
        sockets, failures = _bound_where_possible(addresses, port)
        taken = [error for error in failures if error.errno == errno.EADDRINUSE]
        if sockets and not taken:
            return sockets
        for sock in sockets:
            sock.close()
    error = (taken or failures)[0]
    hint = _WHAT_TO_DO.get(error.errno or 0, "Check host and port.")
    names = ", ".join(peer_name(address) for _, address in addresses)
    where = f"{host}:{port}" + (f" ({names})" if len(addresses) > 1 else "")
    raise CannotBind(f"cannot listen on {where}: {error.strerror}. {hint}") from error


def _bound_where_possible(
    addresses: Sequence[Address], port: int
) -> tuple[list[socket.socket], list[OSError]]:
    sockets: list[socket.socket] = []
    failures: list[OSError] = []
    for family, (host, _, *scope) in addresses:
        try:
            sockets.append(
                _bound(family, (host, port, *scope), is_one_of_several=len(addresses) > 1)
            )
        except OSError as error:
            failures.append(error)
        else:
            port = sockets[-1].getsockname()[1]
    return sockets, failures


def _bound(family: socket.AddressFamily, address: Any, *, is_one_of_several: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_one_of_several and family == socket.AF_INET6:
            # Else "::" would take the port of "0.0.0.0" away.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def connected_to(addresses: Sequence[Address], timeout_s: float) -> socket.socket:
    """A socket connected to the first address that answers; each gets an equal share of the time
    that is left. Raises OSError, which names each of several addresses and what it failed with.
    """
    deadline_s = time.monotonic() + timeout_s
    failures: list[tuple[Any, OSError]] = []
    for number, (family, address) in enumerate(addresses):
        share_s = (deadline_s - time.monotonic()) / (len(addresses) - number)
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.settimeout(max(0.001, share_s))
            sock.connect(address)
            sock.settimeout(timeout_s)
        except OSError as error:
            if sock is not None:
                sock.close()
            failures.append((address, error))
        else:
            return sock
    if len(failures) == 1:
        raise failures[0][1]
    raise OSError("; ".join(f"{peer_name(address)}: {error}" for address, error in failures))


def tune(sock: socket.socket) -> None:
    """Make a connected socket non-blocking, prompt (no Nagle delay; what is lost is soon sent
    again) and kept alive.
    """
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, _THIN_LINEAR_TIMEOUTS, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def peer_name(address: Any) -> str:
    """A socket address as "host:port", with IPv6 hosts in brackets."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
