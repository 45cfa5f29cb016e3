"""A driver is suspended (SIGSTOP) while another starts on its checkpoints: exactly one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate import cli
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.spark.ingest.simulated import visible, write_source
from tests.spark.running import wait_for

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(400)]


def started(tmp_path: Path, *line: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *line],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_driver_that_is_suspended_keeps_its_directory_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_source(tmp_path, files=6, rows=500)
    line = ("epochgate", "ingest", "in", "out", "--parallelism", "1", "--checkpoint-every", "300ms")
    first = started(tmp_path, *line, "--rows-per-second", "500")
    try:
        wait_for(lambda: len(visible(tmp_path / "out")) > 0, "the first rows", 90)
        first.send_signal(signal.SIGSTOP)
        second = started(tmp_path, *line)
        _, err = second.communicate(timeout=60)
        assert second.returncode == 2
        assert f"is in use by process {first.pid}" in err
        place = str(tmp_path / "out")
        assert cli.main(["savepoint", place, "--timeout", "2s"]) == 1
        assert "has not answered within 2 s" in capsys.readouterr().err
        first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=120)
    finally:
        first.kill()
        first.communicate()
    assert first.returncode == 0, err
    assert out.startswith("finished: 3,000 rows committed")
    assert visible(tmp_path / "out") == rows


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_that_is_suspended_in_a_save_is_replaced_and_shows_nothing_more(
    tmp_path: Path, server: dict[str, str], when: str
) -> None:
    rows = write_source(tmp_path, files=6, rows=500)
    url = f"s3://{BUCKET}/two-drivers-{when}"
    line = ("tests.spark.sink.killed_object_driver", str(tmp_path / "in"), url)
    first = started(tmp_path, *line, "put", "checkpoints/*", when, "SIGSTOP", **server)
    try:
        _, status = os.waitpid(first.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), first.communicate()
        second = started(tmp_path, *line, **server)
        out, err = second.communicate(timeout=150)
        assert second.returncode == 0, err
        told, numbers = out.splitlines()
        assert told.startswith("finished from "), told
        assert [int(number) for number in numbers.split(",")] == rows
        first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=150)
    finally:
        first.kill()
        first.communicate()
    told, numbers = out.splitlines()
    assert told.startswith("failed from None: "), told
    assert "lost the checkpoints" in told
    assert [int(number) for number in numbers.split(",")] == rows, "as the target is afterwards"
