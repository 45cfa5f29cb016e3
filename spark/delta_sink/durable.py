"""Files and entries of a local table that survive a power cut: the library, which has written them,
does not ask the device. Runs on the driver.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable


def make_durable(table: str, log_folder: str, after: int, files: Iterable[str]) -> None:
    """Entries of the log behind this version, and files of rows, by their paths in the table."""
    for path in (os.path.join(table, file) for file in files):
        _fsync(path)
        _fsync(os.path.dirname(path))
    log = os.path.join(table, log_folder)
    for version in itertools.count(after + 1):
        try:
            _fsync(os.path.join(log, f"{version:020d}.json"))
        except FileNotFoundError:
            break
        with contextlib.suppress(FileNotFoundError):
            _fsync(os.path.join(log, f"{version:020d}.checkpoint.parquet"))
    with contextlib.suppress(FileNotFoundError):
        _fsync(os.path.join(log, "_last_checkpoint"))
    _fsync(log)
    _fsync(table)


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
