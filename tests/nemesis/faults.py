"""The faults of a host of the lab, its links, processes, disk and clock: begun, and healed.

Each `begin` strikes a host and returns what heals it. What a host recovers from by itself is healed
by doing nothing.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tests.nemesis.host import Host, HostFailed, wait_until
from tests.nemesis.host_library import COMPILER
from tests.nemesis.jobs_program import PORTS
from tests.nemesis.lab import EXECUTOR, MASTER, PYTHON, ROOT, Lab
from tests.nemesis.set_back import SET_BACK_BY, set_target_back

DELAY_MS, LOSS_PERCENT = 100, 5
MASTER_AWAY_S = 5.0
BALLAST_BYTES = 1 << 20
CLOCK_JUMP_S = 3600
UNMOUNT_S = 10.0
WIRE = f"{{ {', '.join(str(port) for port in PORTS.values())} }}"
Heal = Callable[[], object]
Begin = Callable[[Lab, Host], Heal]
Place = Literal["worker", "driver"]
_numbers = itertools.count(1)


def nothing() -> None:
    """Do nothing: a fault that heals itself is left alone."""


# links


def cut(lab: Lab, host: Host) -> Heal:
    port = lab.port_of(host)
    lab.switch.run("ip", "link", "set", port, "down")
    return partial(lab.switch.run, "ip", "link", "set", port, "up")


def filtered(*, coming: str = "", going: str = "") -> Begin:
    """A packet filter on the host, with a rule for what comes in and one for what goes out."""

    def begin(lab: Lab, host: Host) -> Heal:
        table = f"fault{next(_numbers)}"
        chain = "chain {0} {{ type filter hook {0} priority 0; {1} }}"
        chains = f"{chain.format('input', coming)}\n{chain.format('output', going)}"
        host.run("nft", "-f", "-", said=f"table inet {table} {{\n{chains}\n}}\n")
        return partial(host.run, "nft", "delete", "table", "inet", table)

    return begin


deaf = filtered(coming='iifname "eth0" drop;')
mute = filtered(going='oifname "eth0" drop;')
wire_deaf = filtered(coming=f"tcp sport {WIRE} drop;")
wire_mute = filtered(going=f"tcp dport {WIRE} drop;")
wire_dropped = filtered(coming=f"tcp sport {WIRE} drop;", going=f"tcp dport {WIRE} drop;")
# What resets a connection may pass, on its way to the driver too.
wire_reset = filtered(
    # From the link alone: the host's own resets come to it from the same ports.
    coming=f'iifname "eth0" tcp sport {WIRE} reject with tcp reset;',
    going=f"tcp dport {WIRE} tcp flags & rst != rst reject with tcp reset;",
)


def slow(lab: Lab, host: Host) -> Heal:
    """Every frame between the host and the bridge passes a relay, late, and some are lost."""
    switch, port = lab.switch, lab.port_of(host)
    near, far = f"n{port}", f"f{port}"
    switch.run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    switch.run("ip", "link", "set", far, "master", "br0", "up")
    switch.run("ip", "link", "set", near, "up")
    switch.run("ip", "link", "set", port, "nomaster")
    command = [sys.executable, "-m", "tests.nemesis.relay", port, near]
    command += [str(DELAY_MS), str(LOSS_PERCENT), "1"]
    log = lab.folder / "logs" / f"relay-{port}.txt"
    switch.start(command, log, {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}, ROOT)

    def heal() -> None:
        switch.kill(f"nemesis.relay {port} ")
        switch.run("ip", "link", "set", port, "master", "br0")
        switch.run("ip", "link", "delete", near)

    return heal


# processes


def host_killed(lab: Lab, host: Host) -> Heal:
    host.kill()
    return partial(lab.start_workers, host)


def killed(*names: str) -> Begin:
    def begin(lab: Lab, host: Host) -> Heal:
        host.signal(signal.SIGKILL, *names)
        return nothing

    return begin


def stopped(*names: str) -> Begin:
    def begin(lab: Lab, host: Host) -> Heal:
        pids = host.signal(signal.SIGSTOP, *names)

        def heal() -> None:
            for pid in pids:
                host.send(pid, signal.SIGCONT)

        return heal

    return begin


def driver_killed(lab: Lab, host: Host) -> Heal:
    lab.kill_driver()
    lab.start_driver()
    return nothing


def driver_killed_beside_zombies(lab: Lab, host: Host) -> Heal:
    """The tasks of the old driver live on behind a cut, while the new driver runs."""
    heal = cut(lab, host)
    driver_killed(lab, host)
    return heal


def master_killed(lab: Lab, host: Host) -> Heal:
    lab.driver.kill(MASTER)
    return lab.start_master


# disks and clocks


def disk_full(lab: Lab, host: Host) -> Heal:
    ballast = lab.on_disk("ballast")
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(BALLAST_BYTES)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    return ballast.unlink


def read_only(lab: Lab, host: Host) -> Heal:
    """The host sees its disk read-only; what it has open stays as it is."""
    disk = str(lab.disk)
    host.run("mount", "--bind", disk, disk)
    host.run("mount", "-o", "remount,bind,ro", disk)

    def is_unmounted() -> bool:
        try:
            host.run("umount", disk)
        except HostFailed as error:
            if "busy" not in str(error):
                raise
            return False
        return True

    return partial(wait_until, is_unmounted, UNMOUNT_S, "unmounting the disk")


def hanging(lab: Lab, host: Host) -> Heal:
    """Calls of the host's Python processes about files of the disk hang until it is healed."""
    lab.preloaded.set_hanging(host.name, is_hanging=True)
    return partial(lab.preloaded.set_hanging, host.name, is_hanging=False)


def target_set_back(lab: Lab, host: Host) -> Heal:
    set_target_back(lab)
    return nothing


def clock(seconds: int) -> Begin:
    """The clock of the host's Python processes jumps, and jumps back."""

    def begin(lab: Lab, host: Host) -> Heal:
        lab.preloaded.set_clock(host.name, seconds)
        return partial(lab.preloaded.set_clock, host.name, 0)

    return begin


@dataclass(frozen=True)
class Fault:
    """what: as the table of recoveries tells it. place: which host it strikes, of the workers' the
    busiest. hold_s: how long it lasts; none: until both jobs have recovered beside it. before_s and
    aim_s: how long the recovery of an ingestion took when it was first tried, and is to take.
    missing: what it needs and this machine lacks. is_mixed: whether it takes part in random
    mixtures.
    """

    name: str
    what: str
    begin: Begin
    hold_s: float | None = None
    place: Place = "worker"
    before_s: float | None = None
    aim_s: float | None = None
    missing: str = ""
    is_mixed: bool = True


NO_LIBRARY = "clocks and hanging disks take a C compiler, cc" if COMPILER is None else ""
ALONE = False
"""Of faults that last too long, or leave too little, to be mixed with others."""
FAULTS = (
    Fault("cut_5_s", "host cut off, 5 s", cut, 5.0, before_s=7.2),
    Fault("cut_30_s", "host cut off, 30 s", cut, 30.0, before_s=20.8, aim_s=8.0, is_mixed=ALONE),
    Fault("cut_for_good", "host cut off, for good", cut, before_s=20.8, aim_s=8.0, is_mixed=ALONE),
    Fault("deaf", "host hears nothing, 30 s", deaf, 30.0, before_s=27.0),
    Fault("mute", "host says nothing, 30 s", mute, 30.0, before_s=20.9),
    Fault("wire_deaf", "host deaf on the wire's ports, 30 s", wire_deaf, 30.0, before_s=30.5),
    Fault("wire_mute", "host mute on the wire's ports, 30 s", wire_mute, 30.0, before_s=32.4),
    Fault("wire_reset", "wire's ports refused on a host, 15 s", wire_reset, 15.0, before_s=5.3),
    Fault("wire_reset_for_good", "the same, for good", wire_reset, is_mixed=ALONE),
    Fault("wire_dropped_for_good", "wire's ports dropped on a host, for good", wire_dropped,
          is_mixed=ALONE),
    Fault("slow", f"host's link: {2 * DELAY_MS} ms round trip, {LOSS_PERCENT} % loss, 20 s", slow,
          20.0, before_s=2.6),
    Fault("host_killed", "kill -9 of all processes of a host", host_killed, 5.0, before_s=1.1),
    Fault("executor_killed", "kill -9 of an executor", killed(EXECUTOR), 0.0, aim_s=2.5),
    Fault("workers_killed", "kill -9 of a host's Python workers", killed(PYTHON), 0.0, aim_s=0.4),
    Fault("executor_stopped", "SIGSTOP of an executor, 30 s", stopped(EXECUTOR), 30.0,
          before_s=0.2),
    Fault("workers_stopped", "SIGSTOP of a host's Python workers, 25 s", stopped(PYTHON), 25.0,
          before_s=26.7),
    Fault("host_stopped", "SIGSTOP of a whole host, 30 s", stopped(), 30.0, before_s=20.8),
    Fault("driver_killed", "kill -9 of the driver, started again", driver_killed, 0.0, "driver"),
    Fault("zombies", "the same beside tasks behind a cut", driver_killed_beside_zombies,
          before_s=8.3, is_mixed=ALONE),
    Fault("master_killed", f"kill -9 of the master, back after {MASTER_AWAY_S:g} s with recovery",
          master_killed, MASTER_AWAY_S, "driver", before_s=0.15),
    Fault("driver_read_only", "disk read-only for the driver, 6 s", read_only, 6.0, "driver",
          before_s=6.9),
    Fault("tasks_read_only", "disk read-only for a host's tasks, 6 s", read_only, 6.0),
    Fault("driver_hangs", "disk hangs for the driver, 6 s", hanging, 6.0, "driver",
          missing=NO_LIBRARY),
    Fault("tasks_hang", "disk hangs for a host's tasks, 6 s", hanging, 6.0, missing=NO_LIBRARY),
    Fault("target_set_back", f"target set back by {SET_BACK_BY} commits, refused, given up",
          target_set_back, 0.0, "driver"),
    Fault("driver_clock_on", "driver's clock an hour ahead, 6 s", clock(CLOCK_JUMP_S), 6.0,
          "driver", missing=NO_LIBRARY),
    Fault("driver_clock_back", "driver's clock an hour back, 6 s", clock(-CLOCK_JUMP_S), 6.0,
          "driver", missing=NO_LIBRARY),
    Fault("tasks_clock_on", "clocks of a host's tasks an hour ahead, 6 s", clock(CLOCK_JUMP_S),
          6.0, missing=NO_LIBRARY),
)  # fmt: skip
