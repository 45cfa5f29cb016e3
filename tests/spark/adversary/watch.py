"""The cost of an attack to the driver: memory, descriptors, and the time between commits."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.spark.adversary.driver_program import HISTORY

SAMPLE_S = 0.02
RESET_PEAK = "5"
MB = 1_000_000


@dataclass
class Cost:
    """rss_mb, descriptors: the most beside what was there before; gap_s: between two commits, of
    which one may be before the attack and one after it.
    """

    rss_mb: float = 0.0
    descriptors: int = 0
    gap_s: float = 0.0


class Watch:
    """Measures from its beginning to its end, as a context manager."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._folder, self._pid = folder, pid
        self.cost = Cost()
        self._is_over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        self._rss_mb, self._descriptors = resident_mb(self._pid), descriptors_of(self._pid)
        Path(f"/proc/{self._pid}/clear_refs").write_text(RESET_PEAK)
        self._sampler.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._sampler.join()
        self.cost.rss_mb = resident_mb(self._pid, "VmHWM") - self._rss_mb
        times = [line["t"] for line in history(self._folder) if line["event"] == "Committed"]
        before = [at for at in times if at <= self._began_s][-1:]
        at = before + [at for at in times if at > self._began_s]
        self.cost.gap_s = max((later - earlier for earlier, later in pairwise(at)), default=inf)

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            more = descriptors_of(self._pid) - self._descriptors
            self.cost.descriptors = max(self.cost.descriptors, more)


def history(folder: Path) -> list[dict[str, Any]]:
    """Return what the job has told its listeners so far."""
    return [json.loads(line) for line in (folder / HISTORY).read_text().splitlines()]


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    """Of a process, now or (VmHWM) at most since the peak was reset."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kilobytes,) = [line.split()[1] for line in status.splitlines() if line.startswith(what)]
    return int(kilobytes) * 1024 / MB


def descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
