"""The command line on real Spark: it follows, stops at Ctrl-C, goes on, and says what fails."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from epochgate.spark.errors import SessionStopped
from epochgate.spark.ingest import IngestOptions, start_ingest
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.session import local_session
from tests.spark.ingest.simulated import visible, write_source
from tests.spark.running import is_gone, wait_for

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow, pytest.mark.timeout(300)]


def command(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """`epochgate ingest in out` in a process group of its own, as a shell starts it."""
    line = ["ingest", "in", "out", "--parallelism", "2", "--checkpoint-every", "300ms", *arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "epochgate", *line],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.programs
def test_a_followed_source_until_ctrl_c_and_on_from_there(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=2, rows=100)
    (tmp_path / "in" / "_SUCCESS").touch()
    process = command(tmp_path, "--follow")
    try:
        wait_for(lambda: visible(tmp_path / "out") == rows, "the first files", 90)
        rows += write_source(tmp_path, files=1, rows=100, first=1000)
        wait_for(lambda: visible(tmp_path / "out") == rows, "the new file", 30)
        family = psutil.Process(process.pid).children(recursive=True)
        # As a terminal does: everything in the foreground gets it.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, err
    assert "stopping after a last checkpoint" in err
    assert err.count("waiting for new files") <= 2
    assert err.count("checkpoint ") <= 6
    assert "Traceback" not in err
    assert out.startswith("finished: 300 rows committed")
    assert "not read: 1 hidden (`epochgate unread " in out
    wait_for(lambda: all(is_gone(one.pid) for one in family), "every process is gone", 20)

    rows += write_source(tmp_path, files=1, rows=100, first=2000)
    # A transform that fails: the job says where, and takes nothing of it.
    (tmp_path / "rules.py").write_text(
        "def clean(batch):\n    raise LookupError('no such carrier')\n"
    )
    failing = command(tmp_path, "--transform", "rules:clean")
    _, err = failing.communicate(timeout=90)
    assert failing.returncode == 1
    assert "Traceback" not in err
    for word in ("the transform failed on rows 0 to 99", "002000.csv", "no such carrier"):
        assert word in err
    again = command(tmp_path, "--quiet", "--json")
    out, err = again.communicate(timeout=90)
    assert again.returncode == 0, err
    result = json.loads(out)
    assert (result["state"], result["rows_committed"], result["files_found"]) == (
        "finished",
        100,
        4,
    )
    assert result["unread"] == {"hidden": 1}
    assert [line for line in err.splitlines() if "incubator" not in line] == []
    assert visible(tmp_path / "out") == rows


@pytest.mark.deep
def test_the_driver_listens_on_the_port_that_it_is_given(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=1, rows=100)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command(tmp_path, "--port", str(port))
        _, err = refused.communicate(timeout=90)
    assert refused.returncode == 2
    assert "Traceback" not in err
    assert f"cannot listen on 127.0.0.1:{port}" in err
    again = command(tmp_path, "--port", str(port))
    _, err = again.communicate(timeout=90)
    assert again.returncode == 0, err
    assert visible(tmp_path / "out") == rows


def test_a_stopped_session_is_refused_and_nothing_is_claimed(tmp_path: Path) -> None:
    write_source(tmp_path)
    options = IngestOptions(str(tmp_path / "in"), str(tmp_path / "out"), parallelism=1)
    with local_session("local[1]") as spark:
        spark.stop()
        with pytest.raises(SessionStopped):
            start_ingest(spark, options)
    assert not (tmp_path / "out").exists()
    plan_ingest(options).release()
