"""Requests of one process for a savepoint of another's job: a file beside the job's checkpoints.

Decides the form of requests and answers, and which are heard: those of the user that the job runs
as, and of root, because a job writes where a request says. A user who may write into the directory
of the checkpoints could change the checkpoints themselves; no port is opened, and no secret needed.
Leaves to the job when the checkpoint is taken and to `savepoint` what is written.

    savepoint-requests/ID.request     {"to": place or none}, written by who asks, removed by the job
    savepoint-requests/ID.answer      {"state": ...}, written by the job, removed by who asked

An answer says "taken", and then "written" with the savepoint, or "failed" with the reason and
whether the job has ended, so that a savepoint can be made of its newest checkpoint. In an object
store these are objects, and who may write them is the bucket's affair. The files are looked for at
intervals, on a thread of its own beside the job.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, TimeoutError as NotYet
from typing import Any, Final

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.savepoints.savepoint import Savepoint

FOLDER: Final = "savepoint-requests"
REQUEST, ANSWER = ".request", ".answer"
LOOK_S: Final = 0.5
LOOK_IN_OBJECTS_S: Final = 5.0
TAKEN, WRITTEN, FAILED = "taken", "written", "failed"
_LAST_PATIENCE_S: Final = 5.0
_log = logging.getLogger(__name__)

Ask = Callable[[str | None], Future[Savepoint]]


class RequestPlace:
    """The requests and answers beside the checkpoints of one job."""

    def __init__(self, checkpoints: str, open_objects: Callable[[str], ObjectStore] = open_url):
        self.is_url = is_url(checkpoints)
        self._files: WrittenOnce
        if self.is_url:
            self._files, self._folder = ObjectFiles(open_objects(checkpoints)), FOLDER
        else:
            self._files = LocalFileSystem()
            self._folder = os.path.join(os.path.abspath(checkpoints), FOLDER)

    @property
    def look_s(self) -> float:
        """Seconds between two looks."""
        return LOOK_IN_OBJECTS_S if self.is_url else LOOK_S

    def requests(self) -> list[str]:
        """The ids of the requests that are there. Raises OSError."""
        if not self.is_url and not os.path.isdir(self._folder):
            return []
        names = self._files.list_directory(self._folder)
        return [
            name.removesuffix(REQUEST)
            for name in names
            if name.endswith(REQUEST) and TEMPORARY_SUFFIX not in name
        ]

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Raises OSError."""
        self._files.make_directory(self._folder)
        path = os.path.join(self._folder, name)
        self._files.write_bytes_durably(path, json.dumps(content).encode())

    def read(self, name: str) -> dict[str, Any] | None:
        """The content of a file; none if there is no such file, or nothing that can be read."""
        try:
            content = json.loads(self._files.read_bytes(os.path.join(self._folder, name)))
        except (FileNotFoundError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def remove(self, name: str) -> None:
        """Raises OSError."""
        self._files.remove(os.path.join(self._folder, name))

    def stranger(self, name: str) -> int | None:
        """The user id that wrote a file, unless it is the user of this process or root."""
        if self.is_url:
            return None
        owner = os.lstat(os.path.join(self._folder, name)).st_uid
        return None if owner in (os.geteuid(), 0) else owner


class SavepointRequests:
    """Looks for requests while a job runs, hands them to `ask`, and answers them."""

    def __init__(self, place: RequestPlace, ask: Ask) -> None:
        self._place, self._ask = place, ask
        self._open: dict[str, Future[Savepoint]] = {}
        self._has_warned = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="epochgate-savepoint-requests", daemon=True
        )

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """The job is over: answer what was taken, and end."""
        self._is_over.set()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the last answers."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_over.wait(self._place.look_s):
            self.look()
        self.answer(_LAST_PATIENCE_S)

    def look(self) -> None:
        """Take the requests that are there, and answer those that have ended."""
        try:
            for request_id in self._place.requests():
                self._take(request_id)
        except OSError as error:
            # Once: the next look may find the disk well, and the job is not the worse for it.
            if not self._has_warned:
                self._has_warned = True
                _log.warning("requests for savepoints cannot be read: %s; said once", error)
        self.answer(0.0)

    def _take(self, request_id: str) -> None:
        request = self._place.read(request_id + REQUEST)
        stranger = self._place.stranger(request_id + REQUEST)
        self._place.remove(request_id + REQUEST)
        to = None if request is None else request.get("to")
        if stranger is not None:
            reason = (
                f"it was asked for by user {stranger}, and the job runs as user {os.geteuid()}: "
                "ask as that user"
            )
            self._place.write(request_id + ANSWER, {"state": FAILED, "reason": reason})
        elif request is None or not (to is None or isinstance(to, str)):
            reason = "the request cannot be read"
            self._place.write(request_id + ANSWER, {"state": FAILED, "reason": reason})
        else:
            self._place.write(request_id + ANSWER, {"state": TAKEN})
            self._open[request_id] = self._ask(to)

    def answer(self, patience_s: float) -> None:
        """Tell the outcome of what has ended; wait so long for each that has not."""
        for request_id, future in list(self._open.items()):
            try:
                answer = {"state": WRITTEN, **future.result(patience_s).to_json()}
            except NotYet:
                continue
            except (Exception, CancelledError) as error:  # noqa: BLE001  # it is told to who asked
                is_over = self._is_over.is_set()
                answer = {"state": FAILED, "reason": str(error), "is_over": is_over}
            del self._open[request_id]
            try:
                self._place.write(request_id + ANSWER, answer)
            except OSError as error:
                _log.warning("the answer to a request for a savepoint was not written: %s", error)
