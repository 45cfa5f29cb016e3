"""A flood of strangers, and what it leaves to the driver."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest

from epochgate.spark.wire.reception import ARRIVALS_MAX
from tests.spark.wire.harness import ROOT, WAIT_S

DESCRIPTORS = 200
FILES = 60
DRIVER = """
import resource, sys
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), hard))
from epochgate.spark.wire import TaskServer, new_key
server = TaskServer(
    key=new_key(), host="127.0.0.1", listener=None, handshake_timeout_s=60.0
)
with server:
    print(server.address[1], flush=True)
    for line in sys.stdin:
        try:
            files = [open("/dev/null") for _ in range(int(line))]
            print(f"opened {len(files)}", flush=True)
        except OSError as error:
            print(error, flush=True)
"""


def test_half_open_connections_leave_the_driver_descriptors_for_its_files() -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(DESCRIPTORS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    with driver, closing(driver.stdin), ExitStack() as stack:
        port = int(driver.stdout.readline())
        for _ in range(2 * DESCRIPTORS):
            stranger = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
            stack.enter_context(stranger).settimeout(WAIT_S)
            # Its greeting has come, so that it has been accepted.
            assert stranger.recv(1)
        driver.stdin.write(f"{FILES}\n")
        driver.stdin.flush()
        assert driver.stdout.readline() == f"opened {FILES}\n"


@pytest.mark.parametrize(("soft", "most"), [(64, 32), (1024, 512), (4096, ARRIVALS_MAX)])
def test_strangers_take_half_of_the_descriptors_at_most(soft: int, most: int) -> None:
    program = (
        "import resource, sys\n"
        "from epochgate.spark.wire.reception import arrivals_max_by_default\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), hard))\n"
        "print(arrivals_max_by_default())\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(soft)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert int(answer.stdout) == most
