"""A job that runs looks for requests of other processes, does them, and answers.

Decides what is answered to a request that cannot be read, or that another user has written. Leaves
what a request means to its handler, which returns a future of the answer. Files are looked for at
intervals, on a thread of its own beside the job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, TimeoutError as NotYet
from typing import Any, Final

from epochgate.runtime.requests.place import ANSWER, DONE, FAILED, REQUEST, TAKEN, RequestPlace

_LAST_PATIENCE_S: Final = 5.0
JOINED_WITHIN_S: Final = 10.0
"""A look that hangs in the file system or the store is left behind after this time."""
_log = logging.getLogger(__name__)

Answer = dict[str, Any]
Handler = Callable[[dict[str, Any]], Future[Answer]]
"""Does what a request says; raises ValueError for one that it cannot read."""


class JobRequests:
    """Looks for requests while a job runs, hands each to the handler of its kind, and answers."""

    def __init__(self, place: RequestPlace, handlers: Mapping[str, Handler]) -> None:
        self._place, self._handlers = place, handlers
        self._open: dict[str, Future[Answer]] = {}
        self._has_warned = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="epochgate-requests", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """The job is over: answer what was taken, and end."""
        self._is_over.set()

    def join(self) -> None:
        """Wait for the last answers, and no longer than `JOINED_WITHIN_S`."""
        self._thread.join(JOINED_WITHIN_S)

    def _run(self) -> None:
        while not self._is_over.wait(self._place.look_s):
            self.look()
        self.answer(_LAST_PATIENCE_S)

    def look(self) -> None:
        """Take the requests that are there, and answer those that have ended."""
        try:
            for request_id in self._place.requests():
                with contextlib.suppress(FileNotFoundError):  # its asker has given up meanwhile
                    self._take(request_id)
        except OSError as error:
            # Once: the next look may find the disk well, and the job is not the worse for it.
            if not self._has_warned:
                self._has_warned = True
                _log.warning("requests to the job cannot be read: %s; said once", error)
        self.answer(0.0)

    def _take(self, request_id: str) -> None:
        request = self._place.read(request_id + REQUEST)
        stranger = self._place.stranger(request_id + REQUEST)
        self._place.remove(request_id + REQUEST)
        if stranger is not None:
            self._refuse(
                request_id,
                f"user {stranger} has asked, and the job runs as user {os.geteuid()}: ask as that "
                "user",
            )
            return
        handler = None if request is None else self._handlers.get(str(request.get("kind")))
        try:
            if request is None or handler is None:
                raise ValueError("the job knows no such request")
            asked = handler(request)
        except ValueError as error:
            self._refuse(request_id, f"the request cannot be read: {error}")
            return
        self._place.write(request_id + ANSWER, {"state": TAKEN})
        self._open[request_id] = asked

    def _refuse(self, request_id: str, reason: str) -> None:
        self._place.write(request_id + ANSWER, {"state": FAILED, "reason": reason})

    def answer(self, patience_s: float) -> None:
        """Tell the outcome of what has ended; wait so long for each that has not."""
        for request_id, future in list(self._open.items()):
            try:
                answer = {**future.result(patience_s), "state": DONE}
            except NotYet:
                continue
            except (Exception, CancelledError) as error:  # noqa: BLE001  # it is told to who asked
                is_over = self._is_over.is_set()
                answer = {"state": FAILED, "reason": str(error), "is_over": is_over}
            del self._open[request_id]
            try:
                self._place.write(request_id + ANSWER, answer)
            except OSError as error:
                _log.warning("the answer to a request was not written: %s", error)
