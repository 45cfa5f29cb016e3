"""Files of a streaming query that were left out, wholly or from some place on, and why.

Decides where that is recorded: an entry for each in the stream's folder of the option `state`,
named by its content, so that a batch that runs again changes nothing. Written by the enumerator
beside the driver, and by tasks, which have to reach the place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from dataclasses import asdict
from typing import Final

from epochgate.errors import UsageError
from epochgate.runtime.entries.stores import open_entries
from epochgate.runtime.source.batches.plans import plans_of
from epochgate.spark.files.split import SkippedFile

FOLDER: Final = "bad-files"
BEGUN: Final = "begun.json"
_log = logging.getLogger(__name__)


class StateOutOfReach(UsageError):
    """A task cannot record a bad file, since it does not see the plans: the option `state`."""

    def __str__(self) -> str:
        return (
            f"a bad file is to be left out, and this task cannot record it: there are no plans of "
            f"its query in {self.args[0]!r} on this machine. With onBadFile or onChangedFile the "
            "option state has to be a directory that is mounted wherever tasks run, or a URL: "
            '.option("state", "s3://...")'
        )


class BadFilesOfStream:
    """The record of one stream in `state`."""

    def __init__(self, state: str, stream: str) -> None:
        self._state, self._stream = state, stream

    def note(self, one: SkippedFile) -> None:
        """Record it durably, unless it is there. Raises OSError, StateOutOfReach."""
        entries = open_entries(self._state)
        data = json.dumps(asdict(one), ensure_ascii=False, sort_keys=True).encode()
        name = hashlib.sha256(data).hexdigest()[:32]
        try:
            entries.create(f"{self._stream}/{FOLDER}/{name}.json", data)
        except FileExistsError:
            return
        _log.warning("left out %s from %s on: %s", one.path, one.position, one.reason)

    def begin(self) -> None:
        """Let tasks see that they reach the place, where no plan is kept in it. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            open_entries(self._state).create(f"{self._stream}/{BEGUN}", b"{}")

    def note_in_task(self, one: SkippedFile) -> None:
        """The same, where another machine has written the plan. Raises OSError, StateOutOfReach."""
        entries = open_entries(self._state)
        is_begun = f"{self._stream}/{BEGUN}" in entries.list(self._stream)
        if not is_begun and not plans_of(entries, self._stream).numbers():
            raise StateOutOfReach(self._state)
        self.note(one)


def bad_files(state: str) -> list[SkippedFile]:
    """Return what the queries with this option `state` have left out, by path: path, split,
    position and reason of each. Raises OSError, and ValueError for a damaged entry.
    """
    entries = open_entries(state)
    keys = [key for key in entries.list("") if key.split("/")[1:2] == [FOLDER]]
    found = (SkippedFile(**json.loads(entries.get(key))) for key in keys)
    return sorted(found, key=lambda one: (one.path, one.split_id, one.position))
