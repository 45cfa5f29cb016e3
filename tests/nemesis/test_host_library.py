"""The clock of a host jumps, and its disk hangs, in its running processes and in no others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.nemesis.host_library import COMPILER, HostLibrary

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
TELLS_TIME = """
import subprocess, sys, time
subprocess.run(["true"], timeout=5, check=True)
for line in sys.stdin:
    print(int(time.time()), int(time.monotonic()), flush=True)
"""
CALLS = """
import os, sys
disk, elsewhere = sys.argv[1:]
written = open(f"{disk}/written", "w")
calls = {
    "open": lambda: open(f"{disk}/new", "w").close(),
    "read": lambda: open(f"{disk}/written").read(),
    "fsync": lambda: os.fsync(written.fileno()),
    "rename": lambda: os.rename(f"{disk}/written", f"{disk}/renamed"),
    "mkdir": lambda: os.mkdir(f"{disk}/folder"),
    "list": lambda: os.listdir(disk),
    "unlink": lambda: os.unlink(f"{disk}/written"),
    "elsewhere": lambda: open(f"{elsewhere}/new", "w").close(),
}
print("ready", flush=True)
for line in sys.stdin:
    calls[line.strip()]()
    print("done", flush=True)
"""
HANGS_S = 0.3


@contextlib.contextmanager
def process_of(
    library: HostLibrary, program: str, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=dict(library.variables("host")),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_jumps_while_its_process_runs(jump_s: int, tmp_path: Path) -> None:
    library = HostLibrary(tmp_path / "library", tmp_path / "disk")
    library.begin("host")
    with process_of(library, TELLS_TIME) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset_s in (0, jump_s, 0):
            library.set_clock("host", offset_s)
            process.stdin.write("now?\n")
            day_s, since_start_s = map(int, process.stdout.readline().split())
            assert abs(day_s - offset_s - time.time()) < 60
            assert abs(since_start_s - time.monotonic()) < 60


@pytest.mark.parametrize(
    "call", ["open", "read", "fsync", "rename", "mkdir", "list", "unlink", "elsewhere"]
)
def test_a_call_about_a_file_of_a_disk_that_hangs_goes_on_once_it_answers(
    call: str, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    library = HostLibrary(tmp_path / "library", tmp_path / "disk")
    library.begin("host")
    with process_of(library, CALLS, str(tmp_path / "disk"), str(tmp_path)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = process.stdout
        assert said.readline() == "ready\n"
        library.set_hanging("host", is_hanging=True)
        process.stdin.write(f"{call}\n")
        answers: list[str] = []
        reading = Thread(target=lambda: answers.append(said.readline()))
        reading.start()
        reading.join(None if call == "elsewhere" else HANGS_S)
        assert reading.is_alive() == (call != "elsewhere"), "files elsewhere are not held"
        library.set_hanging("host", is_hanging=False)
        reading.join()
        assert answers == ["done\n"]


def test_a_process_that_hangs_can_be_killed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    library = HostLibrary(tmp_path / "library", tmp_path / "disk")
    library.begin("host")
    with process_of(library, CALLS, str(tmp_path / "disk"), str(tmp_path)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        library.set_hanging("host", is_hanging=True)
        process.stdin.write("fsync\n")
        process.kill()
        assert process.stdout.readline() == ""
