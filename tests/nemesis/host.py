"""A host of the lab: namespaces of its own for network, processes, mounts and name.

They have no entry in the file system and live by their first process, which the kernel kills with
the process that made it: whatever ends the tests ends their hosts with all that runs on them, and
two labs never meet. Processes are looked up by their namespace, so that no other is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAMS = ("ip", "nft", "nsenter", "setpriv", "unshare")
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
KILL_S = 10.0
POLL_S = 0.1
PATIENCE = float(os.environ.get("NEMESIS_PATIENCE", "1"))
"""How many times as long everything is waited for, on a machine that is busy otherwise."""


class HostFailed(Exception):
    """A host could not be made, or a command on it has failed: what it said."""


class Process(NamedTuple):
    pid: int
    command: str


def what_is_missing() -> str | None:
    """Return why hosts cannot be made here, or none."""
    if os.geteuid() != 0:
        return "namespaces, links and packet filters take root"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(missing)} not found: apt-get install iproute2 nftables util-linux"
    made = subprocess.run(
        ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if made.returncode == 0 else f"no namespaces here: {made.stderr.strip()}"


class Host:
    """beside: a host whose mounts it begins with. Make it in the main thread, with which it ends.
    Raises HostFailed.
    """

    pid: int
    """Of the host's first process, as processes outside see it."""

    def __init__(self, name: str, beside: Host | None = None) -> None:
        self.name = name
        command = [*ENDS_WITH_US]
        if beside is not None:
            command += ["nsenter", f"--target={beside.pid}", "--mount"]
        command += ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child"]
        command += ["--mount-proc", "--propagation", "private"]
        command += ["sh", "-c", f"hostname {name} && echo made && exec sleep infinity"]
        self._started: list[subprocess.Popen[bytes]] = []
        self._maker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._maker.stdout is not None
        with self._maker.stdout as said:
            if said.readline() != "made\n":
                raise HostFailed(f"no host {name}: unshare ended with {self._maker.wait()}")
        children = Path(f"/proc/{self._maker.pid}/task/{self._maker.pid}/children")
        self.pid = int(children.read_text().split()[0])
        self._namespace = os.readlink(f"/proc/{self.pid}/ns/pid")
        self.run("ip", "link", "set", "lo", "up")

    def path(self, path: Path) -> Path:
        """A path of the host, as the test's own process sees it."""
        return Path(f"/proc/{self.pid}/root{path}")

    def run(self, *command: str, said: str = "") -> str:
        """Run a command to its end; said: on its standard input. Raises HostFailed."""
        ran = subprocess.run(
            [*self._enter(), *command],
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if ran.returncode != 0:
            raise HostFailed(f"{' '.join(command)} on {self.name}: {ran.stderr.strip()}")
        return ran.stdout

    def connect(self, other: Host, port: str) -> None:
        """Lay a cable from this host's eth0 to a new port of another host. Raises HostFailed."""
        ends = ["name", "eth0", "netns", str(self.pid), "type", "veth"]
        ends += ["peer", "name", port, "netns", str(other.pid)]
        laid = subprocess.run(
            ["ip", "link", "add", *ends], capture_output=True, text=True, check=False
        )
        if laid.returncode != 0:
            raise HostFailed(f"no cable from {self.name} to {other.name}: {laid.stderr.strip()}")

    def start(
        self, command: Sequence[str], log: Path, variables: Mapping[str, str], folder: Path
    ) -> None:
        """Start a process; what it says goes to the end of `log`."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*ENDS_WITH_US, *self._enter(), f"--wd={folder}", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(variables),
            )
        self._started = [*(one for one in self._started if one.poll() is None), process]

    def processes(self, *names: str) -> list[Process]:
        """Those of the host whose command has one of these texts in it, all of them without."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(entry / "ns" / "pid") != self._namespace:
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                is_wanted = not names or any(name in command for name in names)
                if int(entry.name) != self.pid and command and is_wanted:
                    found.append(Process(int(entry.name), command))
        return found

    def signal(self, number: int, *names: str) -> list[int]:
        """Send a signal to such processes, and return their ids."""
        return [one.pid for one in self.processes(*names) if self.send(one.pid, number)]

    def send(self, pid: int, number: int) -> bool:
        """Send a signal to a process if it is one of the host."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != self._namespace or pid == self.pid:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False  # it has ended meanwhile
        finally:
            os.close(descriptor)
        return True

    def kill(self, *names: str) -> int:
        """Kill such processes until there is none; how many there were."""
        killed: set[int] = set()

        def are_gone() -> bool:
            struck = self.signal(signal.SIGKILL, *names)
            killed.update(struck)
            return not struck

        wait_until(are_gone, KILL_S, f"the end of {names} on {self.name}")
        return len(killed)

    def close(self) -> None:
        """End the host and all that runs on it."""
        os.kill(self.pid, signal.SIGKILL)  # and with it all others; its maker sees it and ends
        for process in self._started:
            process.kill()  # one whose command was stopped has stopped too, and would not reap it
            process.wait()
        self._maker.wait()
        wait_until(lambda: not self.processes(), KILL_S, f"the end of {self.name}")

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--all"]


def wait_until(
    condition: Callable[[], bool],
    patience_s: float,
    what: str,
    more: Callable[[], str] = str,
) -> float:
    """Wait for something, and return how long it took; `more` is said where it was in vain. Raises
    AssertionError.
    """
    began_s = time.monotonic()
    while not condition():
        if (waited_s := time.monotonic() - began_s) > patience_s * PATIENCE:
            raise AssertionError(f"waited {waited_s:.0f} s in vain for {what}\n{more()}")
        time.sleep(POLL_S)
    return time.monotonic() - began_s
