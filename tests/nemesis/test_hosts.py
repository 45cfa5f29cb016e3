"""The faults of links, disks and processes do to the hosts of a lab what they say."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.nemesis import faults
from tests.nemesis.faults import DELAY_MS, Begin
from tests.nemesis.host import PATIENCE, Host, HostFailed, Process, wait_until
from tests.nemesis.jobs_program import INGEST, PORTS
from tests.nemesis.lab import NET, Lab, lab_in

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(300)]
WIRE, OTHER = PORTS[INGEST], 7777
TRY_S, HEALED_S, SLOW_S = 1.0 * PATIENCE, 10.0, 60.0
SERVER = f"""
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
import threading
for port in ({WIRE}, {OTHER}):
    server = Server(("0.0.0.0", port), Echo)
    threading.Thread(target=server.serve_forever).start()
print("listening", flush=True)
"""
LARGE = 200_000
CLIENT = f"""
import socket, sys
port, patience_s, left = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with socket.create_connection(("{NET}.1", port), patience_s) as sock:
    sock.sendall(bytes(left))
    while left:
        left -= len(sock.recv(1 << 16))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("hosts")) as lab:
        log = lab.folder / "logs" / "server.txt"
        command = [sys.executable, "-c", SERVER]
        lab.driver.start(command, log, {"PATH": os.environ["PATH"]}, lab.folder)
        wait_until(lambda: "listening" in log.read_text(), 20.0, "the server", log.read_text)
        yield lab


def call(host: Host, port: int, patience_s: float, size: int) -> None:
    host.run(sys.executable, "-S", "-c", CLIENT, str(port), str(patience_s), str(size))


def reach(host: Host, port: int) -> str:
    """Return how a host's call to the driver's ends: "" for an answer."""
    try:
        call(host, port, TRY_S, LARGE)
    except HostFailed as error:
        last = str(error).rpartition("\n")[2]
        # No host answered to the address for three seconds, which are over sooner or later.
        return "TimeoutError" if "No route to host" in last else last.partition(":")[0]
    return ""


@pytest.mark.parametrize(
    ("begin", "by_wire", "by_other"),
    [
        (faults.cut, "TimeoutError", "TimeoutError"),
        (faults.deaf, "TimeoutError", "TimeoutError"),
        (faults.mute, "TimeoutError", "TimeoutError"),
        (faults.wire_deaf, "TimeoutError", ""),
        (faults.wire_mute, "TimeoutError", ""),
        (faults.wire_dropped, "TimeoutError", ""),
        (faults.wire_reset, "ConnectionRefusedError", ""),
    ],
    ids=["cut", "deaf", "mute", "wire deaf", "wire mute", "wire dropped", "wire reset"],
)
def test_a_link_fails_for_one_host_until_it_is_healed(
    begin: Begin, by_wire: str, by_other: str, lab: Lab
) -> None:
    struck, other = lab.workers
    assert reach(struck, WIRE) == ""
    heal = begin(lab, struck)
    try:
        assert (reach(struck, WIRE), reach(struck, OTHER)) == (by_wire, by_other)
        assert reach(other, WIRE) == ""
    finally:
        heal()
    # A first packet may be lost while the hosts learn each other's addresses again.
    wait_until(lambda: reach(struck, WIRE) == reach(struck, OTHER) == "", HEALED_S, "the healing")


def test_a_slow_link_delays_every_round_trip_and_carries_large_frames(lab: Lab) -> None:
    struck = lab.workers[0]
    heal = faults.slow(lab, struck)
    try:
        began = time.monotonic()
        call(struck, OTHER, SLOW_S, 1)
        assert time.monotonic() - began > 4 * DELAY_MS / 1000  # of the handshake, and of a byte
        call(struck, OTHER, SLOW_S, LARGE)
    finally:
        heal()
    assert reach(struck, OTHER) == ""


def test_a_disk_is_read_only_for_one_host_and_full_for_all(lab: Lab) -> None:
    struck, other = lab.workers
    path = str(lab.disk / "file")
    for begin, others, said in (
        (faults.read_only, True, "Read-only file system"),
        (faults.disk_full, False, "No space left on device"),
    ):
        heal = begin(lab, struck)
        with pytest.raises(HostFailed, match=said):
            struck.run("dd", "if=/dev/zero", f"of={path}", "bs=4096", "count=4")
        if others:
            other.run("dd", "if=/dev/zero", f"of={path}", "bs=4096", "count=4")
        heal()
        struck.run("dd", "if=/dev/zero", f"of={path}", "bs=4096", "count=4")
        lab.on_disk("file").unlink()


@pytest.mark.skipif(bool(faults.NO_LIBRARY), reason=faults.NO_LIBRARY)
def test_a_disk_hangs_for_the_tasks_of_one_host_until_it_is_healed(lab: Lab) -> None:
    struck, other = lab.workers
    writing = f"open({str(lab.disk / 'hangs')!r}, 'w').close()"
    command = ["timeout", str(TRY_S), str(lab.python), "-c", writing]
    heal = faults.hanging(lab, struck)
    try:
        with pytest.raises(HostFailed):
            struck.run(*command)
        other.run(*command)
    finally:
        heal()
    struck.run(*command)


def _has(processes: Callable[[str], list[Process]]) -> bool:
    return bool(processes("sleep 100"))


def test_only_processes_of_a_host_are_struck_and_all_of_them(lab: Lab, tmp_path: Path) -> None:
    struck, other = lab.workers
    for host in (struck, other):
        host.start(["sleep", "100"], tmp_path / "log", {"PATH": os.environ["PATH"]}, tmp_path)
    for names in (struck.processes, other.processes):
        wait_until(partial(_has, names), 10.0, "a process on each host")
    assert not struck.send(os.getpid(), 0)
    assert not struck.send(struck.pid, 0)
    heal = faults.stopped()(lab, struck)
    [stopped] = struck.processes("sleep 100")
    status = Path(f"/proc/{stopped.pid}/status")
    wait_until(lambda: "T (stopped)" in status.read_text(), 5.0, "its stop")
    heal()
    wait_until(lambda: "T (stopped)" not in status.read_text(), 5.0, "its going on")
    assert struck.kill() == 1
    assert len(other.processes("sleep 100")) == 1


def test_hosts_end_with_the_lab_and_leave_nothing_behind(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    folder = tmp_path / "lab"
    folder.mkdir()
    with lab_in(folder) as lab:
        hosts = [lab.switch, *lab.hosts]
        assert str(lab.disk) not in Path("/proc/self/mounts").read_text()
    assert Path("/proc/self/mounts").read_text() == mounts
    assert not [host.name for host in hosts if Path(f"/proc/{host.pid}").exists()]
