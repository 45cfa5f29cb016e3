"""The history of a job's runs: what it has told, as lines of JSON beside its checkpoints.

Decides the form of the lines, and what a failing disk or store means: nothing for the job. The
driver that holds the checkpoints writes; anyone may read, at any time. Files and their bound are
those of `history_files`.

Each file begins with a line that names the format, and unless it is the first of a run, with the
run summed up so far, so that the loss of the oldest file loses details alone. Lines are not forced
to disk: a power cut may take the last of them, and a line that is cut off is passed over.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.job_events import Committed, JobEvent, JobListener, JobStarted
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.observing.history_files import (
    FILE_BYTES_MAX,
    FILES_MAX,
    FOLDER,
    OBJECT_BYTES_MAX,
    FilesOfDirectory,
    FilesOfObjects,
    HistoryFiles,
    lines_in_directory,
    lines_in_objects,
)
from epochgate.runtime.observing.recorded_run import RecordedRun
from epochgate.runtime.observing.run_summary import SUMS, RunSummary

FORMAT: Final = 1
_log = logging.getLogger(__name__)


class HistoryFormatUnknown(EpochgateError):
    """Another version of epochgate has written the history."""


class History(JobListener):
    """Writes what a job tells into a directory, which is made if it is missing, or beside its
    checkpoints in an object store. `epoch`: of the driver's claim to the checkpoints.

    An error of the disk or store is logged once. The next event tries again, and when that
    succeeds, the run summed up so far is written first.
    """

    def __init__(
        self,
        place: str | ObjectStore,
        *,
        epoch: int = 0,
        file_bytes_max: int | None = None,
        files_max: int = FILES_MAX,
    ) -> None:
        self._epoch = epoch
        self._files: HistoryFiles
        if isinstance(place, str):
            self._where, bytes_max = place, FILE_BYTES_MAX
            self._files = FilesOfDirectory(place, files_max)
        else:
            self._where, bytes_max = f"{place.url}/{FOLDER}", OBJECT_BYTES_MAX
            self._files = FilesOfObjects(place, epoch)
        self._file_bytes_max = bytes_max if file_bytes_max is None else file_bytes_max
        self._is_open = False
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
                    self._where,
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
        if not self._is_open:
            self._begin(self._files.open)
        line = _line(told)
        if self._files.size_bytes + len(line) > self._file_bytes_max:
            self._begin(self._files.begin_another)
            self._has_gap = True  # for a reader of this file alone
        if self._has_gap:
            self._files.put(_line({"event": "RunSoFar", "run": self._run.to_json()}))
            self._has_gap = False
        else:
            self._files.put(line)

    def _begin(self, file: Callable[[], None]) -> None:
        file()
        self._is_open = True
        if not self._files.size_bytes:
            self._files.put(_line({"event": "History", "format": FORMAT}))

    def _release(self) -> None:
        self._is_open = False
        self._files.close()


def read_history(place: str | ObjectStore) -> list[RunSummary]:
    """The runs of which the history in a directory or beside checkpoints in an object store tells,
    summed up, oldest first; none where there is no history.

    Raises HistoryFormatUnknown, OSError.
    """
    return [run.summary for run in recorded_runs(place)]


def recorded_runs(place: str | ObjectStore) -> list[RecordedRun]:
    """The same, with what is kept of each event. Raises HistoryFormatUnknown, OSError."""
    if isinstance(place, str):
        return _runs_in(lines_in_directory(place), place)
    return _runs_in(lines_in_objects(place), f"{place.url}/{FOLDER}")


def _runs_in(lines: Iterable[bytes], where: str) -> list[RecordedRun]:
    runs: list[RecordedRun] = []
    for told in _events_in(lines):
        kind = told.get("event")
        if kind == "History" and told.get("format") != FORMAT:
            raise HistoryFormatUnknown(
                f"the history in {where} has format {told.get('format')!r}, and this epochgate "
                f"reads format {FORMAT}. Look at it with the epochgate that wrote it"
            )
        if kind == "JobStarted":
            runs.append(RecordedRun())
        elif kind == "RunSoFar":
            summary = RunSummary.from_json(told["run"])
            if not runs or runs[-1].summary.run_id != summary.run_id:
                runs.append(RecordedRun())
            runs[-1].go_on_with(summary)
        if runs:
            runs[-1].apply(told)
    return runs


def _events_in(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        # A line that was cut off, by a full disk or a killed driver, is passed over.
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict):
                yield told


def _line(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":"), default=str).encode() + b"\n"
