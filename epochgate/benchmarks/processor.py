"""The processor time of this process and of everything that it has started.

Processes are looked at again and again, since what has ended tells no time any more: what one of
them uses between the last look and its end is missed.
"""

from __future__ import annotations

import os
import threading
from typing import Self

import psutil

LOOK_EVERY_S = 0.25


class ProcessorTime:
    """Measures while its block runs; `seconds` is there afterwards, in steps of 10 ms.

    >>> import time
    >>> with ProcessorTime() as used:
    ...     began_s = time.process_time()
    ...     while time.process_time() < began_s + 0.05:
    ...         pass
    >>> used.seconds > 0.02
    True
    """

    def __init__(self) -> None:
        self._before: dict[psutil.Process, float] = {}
        self._newest: dict[psutil.Process, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._before = _times()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._newest.update(_times())
        self.seconds = sum(
            now_s - self._before.get(process, 0.0) for process, now_s in self._newest.items()
        )

    def _look_on(self) -> None:
        while not self._is_over.wait(LOOK_EVERY_S):
            self._newest.update(_times())


def _times() -> dict[psutil.Process, float]:
    own = psutil.Process(os.getpid())
    times = {}
    for process in (own, *own.children(recursive=True)):
        try:
            found = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        times[process] = found.user + found.system
    return times
