"""The history beside the checkpoints of a job, read again for each request, or a moment ago.

Decides how old an answer may be: reading a history takes some tenths of a second, from an object
store longer, and a page with its JSON asks several times. Reads alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from epochgate.pages.serving import NotThere
from epochgate.runtime.observing.recorded_run import RecordedRun
from epochgate.runtime.observing.status import RunStatus, checkpoints_in, status_of

FRESH_S: Final = 1.0


@dataclass(frozen=True)
class Seen:
    """One start of the job: its events, its state, and when that was looked at."""

    record: RecordedRun
    state: str
    at: float

    @property
    def until(self) -> float:
        """The end of the run, the last that is known of a killed one, or now."""
        run = self.record.summary
        if run.ended_at is not None:
            return run.ended_at
        return run.last_at if self.state == "killed" else self.at

    @property
    def is_live(self) -> bool:
        """Return whether more may come."""
        return self.state in ("starting", "running", "restarting")


@dataclass
class Job:
    """The job whose checkpoints are at a place, as `epochgate status` finds it."""

    place: str
    read: Callable[[], RunStatus] = field(init=False)

    def __post_init__(self) -> None:
        self.read = lambda: status_of(checkpoints_in(self.place), now=time.time())
        self._lock = threading.Lock()
        self._status: RunStatus | None = None
        self._read_s = 0.0

    def status(self) -> RunStatus:
        """The status, at most `FRESH_S` old. Raises what `status_of` raises."""
        with self._lock:
            now_s = time.monotonic()
            if self._status is None or now_s - self._read_s > FRESH_S:
                self._status = self.read()
                self._read_s = now_s
            return self._status

    def runs(self) -> list[Seen]:
        """Each start that the history holds, the newest first."""
        status = self.status()
        newest = [] if status.record is None else [Seen(status.record, status.state, status.at)]
        return newest + [
            Seen(one, "killed" if one.summary.ended_at is None else one.summary.state, status.at)
            for one in status.earlier_records
        ]

    def run(self, run_id: str) -> Seen:
        """The start with this id; raises NotThere."""
        found = next((one for one in self.runs() if one.record.summary.run_id == run_id), None)
        if found is None:
            raise NotThere(f"the history holds no run {run_id[:40]!r}; GET /jobs lists the runs")
        return found
