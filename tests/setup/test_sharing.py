"""`make test` shares the tests among processes so that no file's session or build is made twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("tests/fsm/test_queue.py", "tests/fsm/test_rows.py", "tests/fsm/test_ports.py")


def test_the_tests_of_a_file_run_in_one_process() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [shared] = re.findall(r"^SHARED = (.*)$", makefile, re.MULTILINE)
    options = shared.replace("$(TEST_PROCESSES)", "2").split()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options, *FILES],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    processes = defaultdict(set)
    for process, file in re.findall(r"^\[(gw\d)\].* PASSED (\S+?)::", ran.stdout, re.MULTILINE):
        processes[file].add(process)
    assert {file: len(found) for file, found in processes.items()} == dict.fromkeys(FILES, 1)
    assert set.union(*processes.values()) == {"gw0", "gw1"}
