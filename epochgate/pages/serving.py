"""Pages and JSON over HTTP, for a person at this machine.

Decides what is answered at all: GET and HEAD alone, and at a loopback address only what a browser
asks of that address by name, so that no page of another site reads or starts anything here, not
even by a name that it lets point to 127.0.0.1. What a path means is decided by those who call
`Server`. A request that cannot be answered ends in a page that says why; the server goes on.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from epochgate.errors import EpochgateError, UsageError
from epochgate.pages import SERVED_POLICY, page

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
PATIENCE_S: Final = 30.0
"""A client that takes longer to send its request gets no answer."""
VALUES_MAX: Final = 100
HTML, JSON = "text/html; charset=utf-8", "application/json"
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": SERVED_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class CannotServe(UsageError):
    """The address cannot be listened on."""


class NotThere(UsageError):
    """Nothing has this path."""


@dataclass(frozen=True)
class Request:
    """A path, and the values of its query."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str, default: int) -> int:
        """A number of the query; raises UsageError for what is none."""
        text = self.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise UsageError(f"{name} is {text[:40]!r}; write a number from 0 on")
        return int(text)


@dataclass(frozen=True)
class Answer:
    """A page, or another text."""

    text: str
    kind: str = HTML
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


def go_to(url: str) -> Answer:
    """Send the browser to another page."""
    return Answer("", status=HTTPStatus.SEE_OTHER, headers={"Location": url})


def refused(error: Exception, status: int) -> Answer:
    """The page for what cannot be answered."""
    return Answer(page("refused.html", told=str(error), policy=SERVED_POLICY), status=status)


class Server:
    """Answers requests until it is closed, each on a thread of its own. option: the name of the
    port for a reader.

    Raises CannotServe for an address that cannot be listened on.
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        host: str = LOOPBACK[0],
        port: int = 0,
        option: str = "--port",
    ) -> None:
        class Handler(_Handler):
            is_private = host in LOOPBACK
            answered = staticmethod(answer)

        try:
            self._server = _Listener((host, port), Handler)
        except (OSError, OverflowError, TypeError) as error:
            raise CannotServe(
                f"cannot listen on {host}, port {port}: {error}; {option} 0 takes any free one"
            ) from error
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Answer until `close` is called on another thread."""
        self._server.serve_forever(poll_interval=0.2)

    def run_until_interrupted(self) -> None:
        """Answer on this thread until a person ends it."""
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self.run()
        finally:
            self._server.server_close()

    def close(self) -> None:
        """End `run`, which is on another thread, listen no more, and end what is being answered."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()


class _Listener(ThreadingHTTPServer):
    """Knows its connections, so that one on which a browser says nothing keeps no thread alive."""

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._open: dict[threading.Thread, socket.socket] = {}
        self._guard = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of the connection's own."""
        thread = threading.Thread(target=self._answer, args=(request, client_address), daemon=True)
        with self._guard:
            self._open[thread] = request
        thread.start()

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._guard:
                del self._open[threading.current_thread()]

    def hang_up(self) -> None:
        """Close each connection, and wait until its thread has noticed."""
        with self._guard:
            left = dict(self._open)
            for connection in left.values():
                with contextlib.suppress(OSError):  # it was closed already
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in left:
            thread.join(PATIENCE_S)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone; a fault of an answer is told where it arises."""


class _Handler(BaseHTTPRequestHandler):
    is_private: bool
    answered: Callable[[Request], Answer]
    server_version, sys_version = "epochgate", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:  # http.server's name for it
        self._write(self._answer())

    do_HEAD = do_GET  # noqa: N815  # http.server's name for it

    def _answer(self) -> Answer:
        if self.is_private and (stranger := self._stranger()):
            return Answer(stranger, "text/plain; charset=utf-8", HTTPStatus.FORBIDDEN)
        try:
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query, keep_blank_values=True, max_num_fields=VALUES_MAX))
        except ValueError as error:
            return refused(error, HTTPStatus.BAD_REQUEST)
        try:
            return self.answered(Request(url.path, query))
        except NotThere as error:
            return refused(error, HTTPStatus.NOT_FOUND)
        except EpochgateError as error:
            return refused(error, HTTPStatus.BAD_REQUEST)
        except Exception:  # noqa: BLE001  # a fault of epochgate: it is shown, and the server goes on
            traceback.print_exc(file=sys.stderr)
            told = RuntimeError("a fault of epochgate; its traceback is on the terminal")
            return refused(told, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _stranger(self) -> str:
        """The reason why the request is not that of a person at this machine; empty if it is."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if host not in LOOPBACK:
            return f"this server answers to {' and '.join(LOOPBACK)}, not to {str(host)[:80]}\n"
        if self.headers.get("Sec-Fetch-Site", "none") == "cross-site":
            return "a page of another site has asked for this; open the link by itself\n"
        return ""

    def _write(self, answer: Answer) -> None:
        body = answer.text.encode()
        self.send_response(answer.status)
        headers: dict[str, Any] = {"Content-Type": answer.kind, "Content-Length": len(body)}
        for name, value in {**HEADERS, **headers, **answer.headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:  # the base's name
        """A person watches the page, not the terminal."""
