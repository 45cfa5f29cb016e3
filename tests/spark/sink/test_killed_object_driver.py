"""The driver of an ingestion into an object store is killed (-9) between two requests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import epochgate
from epochgate.environment import set_in_environment
from epochgate.runtime.objects.client import is_url, open_url
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.spark.ingest.simulated import write_source

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

LATER_ENTRY = "_epochgate/log/00000000000000[3-9].json"
STEPS = [
    # Checkpoint or commit, whichever comes first: written, and its driver does not know it.
    ("create", LATER_ENTRY, "after"),
    # The checkpoint's object is there, and nothing refers to it.
    ("put", "checkpoints/*", "after"),
    # Nothing of the entry is there.
    ("create", LATER_ENTRY, "before"),
    # Both logs are claimed by a driver that never ran.
    ("create", "_epochgate/log/00000000000000[1-9].json", "after"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


def driver(
    tmp_path: Path, source: str, url: str, server: dict[str, str], *step: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.spark.sink.killed_object_driver"]
    return subprocess.run(
        [*command, source, url, *step],
        cwd=ROOT,
        env={**os.environ, **server, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def arrive_once(
    tmp_path: Path,
    source: str,
    url: str,
    server: dict[str, str],
    steps: list[tuple[str, str, str]],
) -> None:
    rows = write_source(tmp_path, files=6, rows=500)
    if is_url(source):
        with set_in_environment(server):
            bucket = open_url(source)
            for path in (tmp_path / "in").iterdir():
                bucket.put(path.name, path.read_bytes())
    for step in steps:
        killed = driver(tmp_path, source, url, server, *step)
        assert killed.returncode == -signal.SIGKILL, (step, killed.stdout, killed.stderr)
    last = driver(tmp_path, source, url, server)
    assert last.returncode == 0, last.stderr
    told, numbers = last.stdout.splitlines()
    assert told.startswith("finished from "), told
    assert [int(number) for number in numbers.split(",")] == rows, "as Spark reads it"
    with set_in_environment(server):
        assert sorted(epochgate.read(url)["x"].to_pylist()) == rows


@pytest.mark.deep
def test_every_row_once_from_a_bucket_into_it_although_the_driver_is_killed(
    tmp_path: Path, server: dict[str, str]
) -> None:
    source = f"s3://{BUCKET}/landing"
    arrive_once(tmp_path, source, f"s3://{BUCKET}/one", server, STEPS[:1])


@pytest.mark.deep
def test_every_row_once_although_the_driver_is_killed_at_each_named_request(
    tmp_path: Path, server: dict[str, str]
) -> None:
    arrive_once(tmp_path, str(tmp_path / "in"), f"s3://{BUCKET}/all", server, STEPS)
