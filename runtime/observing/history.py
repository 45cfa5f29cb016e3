"""The history of a job's runs on disk: what it has told, as lines of JSON beside its checkpoints.

Decides the files, their bound, and what a failing disk means: nothing for the job. The driver that
holds the checkpoint directory writes; anyone may read, at any time.

    history/history.jsonl      the newest lines
    history/history.1.jsonl    older ones, and so on, the oldest with the greatest number

Each file begins with a line that names the format, and unless it is the first of a run, with the
run summed up so far, so that the loss of the oldest file loses details alone. A file is full at
`FILE_BYTES_MAX`; `FILES_MAX` of them are kept. Lines are not forced to disk: a power cut may take
the last of them, and a line that is cut off is passed over.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.job_events import Committed, JobEvent, JobListener, JobStarted
from epochgate.runtime.filesystem import LocalFileSystem, opener
from epochgate.runtime.observing.run_summary import SUMS, RunSummary

FORMAT: Final = 1
FOLDER: Final = "history"
FILE_BYTES_MAX: Final = 1 << 20
FILES_MAX: Final = 4
_log = logging.getLogger(__name__)


class HistoryFormatUnknown(EpochgateError):
    """Another version of epochgate has written the history."""


def file_name(number: int) -> str:
    """The name of a file of the history; the newest is number 0.

    >>> file_name(0), file_name(2)
    ('history.jsonl', 'history.2.jsonl')
    """
    return f"history.{number}.jsonl" if number else "history.jsonl"


class History(JobListener):
    """Writes what a job tells into a directory, which is made if it is missing. `epoch`: of the
    driver's claim to the checkpoints beside it.

    An error of the disk is logged once. The next event tries again, and when that succeeds, the
    run summed up so far is written first.
    """

    def __init__(
        self,
        directory: str,
        *,
        epoch: int = 0,
        file_bytes_max: int = FILE_BYTES_MAX,
        files_max: int = FILES_MAX,
    ) -> None:
        self._directory, self._epoch = directory, epoch
        self._file_bytes_max, self._files_max = file_bytes_max, files_max
        self._file: BinaryIO | None = None
        self._bytes = 0
        self._run = RunSummary()
        self._before: dict[str, dict[str, Any]] = {}
        self._has_told_error = self._has_gap = False

    def on_event(self, event: JobEvent) -> None:
        """Write a line."""
        told = event.to_json()
        if isinstance(event, JobStarted):
            told["epoch"] = self._epoch
        self._run.apply(told)
        if isinstance(event, Committed) and not event.committables:
            return  # an idle job would fill its history with these
        try:
            self._write(self._shortened(told))
        except OSError as error:
            self._has_gap = True
            self._release()
            if not self._has_told_error:
                self._has_told_error = True
                _log.warning(
                    "the job's history in %s cannot be written: %s. The job continues without "
                    "it; this "
                    "is said once",
                    self._directory,
                    error,
                )

    def close(self) -> None:
        """Let go of the file."""
        self._release()

    def _shortened(self, told: dict[str, Any]) -> dict[str, Any]:
        """Without the figures that are those of the event before of this kind."""
        before = self._before.setdefault(told["event"], {})
        same = [name for name in SUMS if name in told and told[name] == before.get(name)]
        before.update({name: told[name] for name in SUMS if name in told})
        return {name: value for name, value in told.items() if name not in same}

    def _write(self, told: Mapping[str, Any]) -> None:
        if self._file is None:
            self._open()
        line = _line(told)
        if self._bytes + len(line) > self._file_bytes_max:
            self._rotate()
            self._has_gap = True  # for a reader of this file alone
        if self._has_gap:
            self._put(_line({"event": "RunSoFar", "run": self._run.to_json()}))
            self._has_gap = False
        else:
            self._put(line)

    def _open(self) -> None:
        LocalFileSystem().make_directory(self._directory)
        path = os.path.join(self._directory, file_name(0))
        self._file = open(path, "ab", buffering=0, opener=opener)  # noqa: SIM115  it is kept open
        self._bytes = os.path.getsize(path)
        if self._bytes:
            # The driver before may have been killed within a line; an empty one is passed over.
            self._put(b"\n")
        else:
            self._put(_line({"event": "History", "format": FORMAT}))

    def _put(self, data: bytes) -> None:
        assert self._file is not None, "it was opened"
        self._file.write(data)
        self._bytes += len(data)

    def _rotate(self) -> None:
        self._release()
        for number in reversed(range(self._files_max - 1)):
            older, newer = (
                os.path.join(self._directory, file_name(n)) for n in (number + 1, number)
            )
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)
        self._open()

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


def read_history(directory: str) -> list[RunSummary]:
    """The runs that the history tells of, oldest first; none where there is no history.

    Raises HistoryFormatUnknown, OSError.
    """
    runs: list[RunSummary] = []
    for told in _lines(directory):
        kind = told.get("event")
        if kind == "History" and told.get("format") != FORMAT:
            raise HistoryFormatUnknown(
                f"the history in {directory} has format {told.get('format')!r}, and this epochgate "
                f"reads format {FORMAT}. Look at it with the epochgate that wrote it"
            )
        if kind == "JobStarted":
            runs.append(RunSummary())
        elif kind == "RunSoFar":
            run = RunSummary.from_json(told["run"])
            if runs and runs[-1].run_id == run.run_id:
                runs.pop()
            runs.append(run)
        if runs:
            runs[-1].apply(told)
    return runs


def _lines(directory: str) -> Iterator[dict[str, Any]]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    numbers = [n for n in range(len(names) + FILES_MAX) if file_name(n) in names]
    for number in reversed(numbers):
        try:
            with open(os.path.join(directory, file_name(number)), "rb") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue  # it was the oldest, and has been dropped since
        for line in lines:
            # A line that was cut off, by a full disk or a killed driver, is passed over.
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict):
                    yield told


def _line(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":"), default=str).encode() + b"\n"
