"""The clock of a host jumps in its running processes, and in no others."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nemesis.clocks import COMPILER, Clocks

PROGRAM = """
import subprocess, sys, time
subprocess.run(["true"], timeout=5, check=True)
for line in sys.stdin:
    print(int(time.time()), int(time.monotonic()), flush=True)
"""


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_jumps_while_its_process_runs(jump_s: int, tmp_path: Path) -> None:
    clocks = Clocks(tmp_path / "clocks")
    clocks.set("host", 0)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=dict(clocks.variables("host")),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset_s in (0, jump_s, 0):
            clocks.set("host", offset_s)
            process.stdin.write("now?\n")
            day_s, since_start_s = map(int, process.stdout.readline().split())
            assert abs(day_s - offset_s - time.time()) < 60
            assert abs(since_start_s - time.monotonic()) < 60
        process.stdin.close()
