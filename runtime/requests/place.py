"""Requests to a job that runs, and its answers: files beside the job's checkpoints.

Decides the form of requests and answers, and which are heard: those of the user that the job runs
as, and of root, because a job does and writes what a request says. A user who may write into the
directory of the checkpoints could change the checkpoints themselves; no port is opened, and no
secret needed.

    requests/ID.request     {"kind": "savepoint" or "set", ...}, written by who asks, removed by
                            the job
    requests/ID.answer      {"state": ...}, written by the job, removed by who asked

An answer says "taken", and then "done" with what came of it, or "failed" with the reason and
whether the job has ended. In an object store these are objects, and who may write them is the
bucket's affair.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles

FOLDER: Final = "requests"
REQUEST, ANSWER = ".request", ".answer"
TAKEN, DONE, FAILED = "taken", "done", "failed"
LOOK_S: Final = 0.5
LOOK_IN_OBJECTS_S: Final = 5.0


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
