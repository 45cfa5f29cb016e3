"""A site on a thread of its own, for as long as a test asks it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message

from epochgate.pages.serving import Answer, Request, Server


@contextmanager
def served(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """Yield the URL at which the site is answered."""
    server = Server(answer)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.close()
        thread.join(10)


def asked(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Message]:
    """Return the status, the text and the headers of an answer; no redirect is followed."""
    address = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()
