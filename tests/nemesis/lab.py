"""The lab: a driver's host and two workers' on a bridge, with a standalone cluster and its jobs.

Everything that runs here runs on its hosts, and ends with them; the disk of the cluster, on which
targets and checkpoints lie, is in memory, and its mount is seen by the hosts alone. Spark's RPC is
encrypted as docs/security.md says, and so the wires are private.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from epochgate.spark.java import archive_options, ensure_java
from epochgate.spark.session import QUICK_JVM
from tests.nemesis import jobs_program
from tests.nemesis.host import PATIENCE, Host, wait_until
from tests.nemesis.host_library import HostLibrary
from tests.nemesis.jobs_program import EXECUTOR_CORES, INGEST, UPDATES, Locks
from tests.nemesis.updates import Record

ROOT = Path(__file__).parents[2]
NET = "10.77.0"
WORKER_MEMORY = "1024M"
"""For one executor on each host, so that the other host has free slots when one is lost."""
DISK = "256m"
START_S = 60.0
PROCESS_TIMEOUT_S = 60.0
FRESH_S = 5.0
EXECUTOR, PYTHON, DRIVER = "CoarseGrainedExecutorBackend", "pyspark.daemon", "jobs_program"
MASTER, WORKER = "deploy.master.Master", "deploy.worker.Worker"
MASTER_URL = f"spark://{NET}.1:7077"


class Lab:
    """Made by `lab_in`. Raises HostFailed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.disk = folder, folder / "disk"
        for name in ("disk", "source", "history", "traces", "recovery", "logs", "set-back"):
            (folder / name).mkdir()
        self.preloaded = HostLibrary(folder / "library", self.disk)
        self.python = _executors_python(folder, self.preloaded.variables("$host"))
        self._java = QUICK_JVM + _class_archive()
        self._conf = _private_configuration(folder)
        self._drivers = 0
        self.record = Record(folder / "history" / "lab.jsonl")
        self.switch = Host(f"switch-{os.getpid()}")
        self.hosts: list[Host] = []

    def make_hosts(self) -> None:
        """Make disk, hosts and network."""
        disk = str(self.disk)
        self.switch.run("mount", "-t", "tmpfs", "-o", f"size={DISK}", "disk", disk)
        self.switch.run("ip", "link", "add", "br0", "type", "bridge")
        self.switch.run("ip", "link", "set", "br0", "up")
        names = [f"{name}-{os.getpid()}" for name in ("driver", "worker1", "worker2")]
        known = "".join(f"{NET}.{n} {name}\n" for n, name in enumerate(names, 1))
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{known}")
        for number, name in enumerate(names, 1):
            self.preloaded.begin(name)
            host = Host(name, self.switch)
            self.hosts.append(host)
            host.run("mount", "--bind", str(self.folder / "hosts"), "/etc/hosts")
            port = f"p{number}"
            host.connect(self.switch, port)
            self.switch.run("ip", "link", "set", port, "master", "br0", "up")
            host.run("ip", "address", "add", f"{NET}.{number}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")

    def start_cluster(self) -> None:
        self.start_master()
        self.start_workers(*self.workers)

    def close(self) -> None:
        for host in (*self.hosts, self.switch):
            host.close()
        self.record.close()

    @property
    def driver(self) -> Host:
        return self.hosts[0]

    @property
    def workers(self) -> list[Host]:
        return self.hosts[1:]

    def port_of(self, host: Host) -> str:
        """The bridge's port to a host."""
        return f"p{self.hosts.index(host) + 1}"

    def on_disk(self, name: str) -> Path:
        """Return what lies on the disk of the cluster, as the test's own process sees it."""
        return self.switch.path(self.disk / name)

    def start_master(self) -> None:
        """A master that goes on with what lies in the folder `recovery`."""
        recovery = self.folder / "recovery"
        options = "-Dspark.deploy.recoveryMode=FILESYSTEM "
        options += f"-Dspark.deploy.recoveryDirectory={recovery}"
        log = self._daemon(self.driver, "master.Master", ["--port", "7077"], options)
        said = "Starting Spark master at"
        wait_until(partial(_has_said, log, said), START_S, f"{said!r} in {log}")

    def start_workers(self, *hosts: Host, kind: str = "work") -> None:
        """Start workers' daemons on these hosts, side by side; kind: what their folders are called,
        where there are more than one on a host.
        """
        logs = []
        for host in hosts:
            work = self.folder / f"{kind}-{host.name}"
            work.mkdir(exist_ok=True)
            asked = ["--cores", str(EXECUTOR_CORES), "--memory", WORKER_MEMORY]
            asked += ["--work-dir", str(work), MASTER_URL]
            logs.append(self._daemon(host, "worker.Worker", asked, ""))
        said = "Successfully registered with master"
        for log in logs:
            wait_until(partial(_has_said, log, said), START_S, f"{said!r} in {log}")

    def _daemon(self, host: Host, name: str, arguments: list[str], options: str) -> Path:
        address = f"{NET}.{self.hosts.index(host) + 1}"
        log = self.folder / "logs" / f"{name}-{host.name}-{time.monotonic_ns()}.txt"
        variables = {
            **self._variables(address),
            "SPARK_HOME": str(_spark_home()),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{self._java} {options} "
            "-Dspark.master.rest.enabled=false -Dspark.ui.enabled=false",
        }
        command = [str(_spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        command += ["--host", address, "--webui-port", "0"]
        # Not by SPARK_CONF_DIR: with a folder on their class path JVMs begin without the archive.
        command += ["--properties-file", str(self._conf / "spark-defaults.conf"), *arguments]
        host.start(command, log, variables, self.folder)
        return log

    def _variables(self, address: str) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder),
            "JAVA_HOME": str(ensure_java()),
            "SPARK_LOCAL_IP": address,
        }

    # the jobs

    def start_driver(
        self, *, locks: Locks = "held", ports_on: int = 0, work_timeout_s: float = 600.0
    ) -> Path:
        """Start a driver with both jobs, and return its log; ports_on: beside another driver;
        work_timeout_s: for a save or a commit.
        """
        self._drivers += 1
        (self.folder / "stop").unlink(missing_ok=True)
        log = self.folder / "logs" / f"driver-{self._drivers}.txt"
        settings = jobs_program.Settings(
            str(self.folder),
            str(self.disk),
            MASTER_URL,
            f"{NET}.1",
            str(self.python),
            self._java,
            locks,
            ports_on,
            PROCESS_TIMEOUT_S * PATIENCE,
            work_timeout_s,
        )
        variables = {
            **self._variables(f"{NET}.1"),
            "SPARK_CONF_DIR": str(self._conf),
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": str(self.python),
            "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
            **self.preloaded.variables(self.driver.name),
        }
        command = [sys.executable, "-m", "tests.nemesis.jobs_program", settings.to_json()]
        self.driver.start(command, log, variables, ROOT)
        return log

    def kill_driver(self) -> None:
        """Kill it; its JVM ends by itself."""
        self.driver.kill(DRIVER)
        (self.folder / "status.json").unlink(missing_ok=True)

    def status(self) -> dict[str, Any] | None:
        """Return how the jobs are, if a driver has told it just now."""
        try:
            told: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        except FileNotFoundError:
            return None
        return told if time.monotonic() - told["t"] < FRESH_S else None

    def are_running(self) -> bool:
        """Return whether all subtasks of both jobs run."""
        status = self.status()
        if status is None:
            return False
        return all(
            task[0] == "running" for name in (INGEST, UPDATES) for task in status[name]["tasks"]
        )

    def is_over(self) -> bool:
        """Return whether a job has ended, or there is no driver."""
        status = self.status()
        return status is None or any(status[name]["over"] for name in (INGEST, UPDATES))

    def busiest(self) -> Host:
        """The worker's host with the most subtasks, the first of equals; of a driver that is just
        starting nothing is known.
        """
        status = self.status()
        jobs = [] if status is None else [status[INGEST], status[UPDATES]]
        tasks = [task for job in jobs for task in job["tasks"]]
        count = Counter(task[1] for task in tasks if task[0] == "running")
        return max(self.workers, key=lambda host: count[host.name])

    def wait_until_well(self, patience_s: float) -> float:
        """Wait until all subtasks run, and both jobs have completed two checkpoints more."""
        waited_s = wait_until(self.are_running, patience_s, "all subtasks", self.told)
        before = self._last_checkpoints()
        goal = {name: last + 2 for name, last in before.items()}

        def have_grown() -> bool:
            last = self._last_checkpoints()
            return bool(last) and all(last[name] >= goal[name] for name in goal)

        what = f"checkpoints beyond {before}"
        return waited_s + wait_until(have_grown, patience_s, what, self.told)

    def _last_checkpoints(self) -> dict[str, int]:
        status = self.status()
        return {} if status is None else {name: status[name]["last"] for name in (INGEST, UPDATES)}

    def stop(self) -> None:
        """Let both jobs take a last checkpoint and end."""
        (self.folder / "stop").touch()
        wait_until(
            lambda: not self.driver.processes(DRIVER), START_S, "the driver's end", self.told
        )

    def told(self) -> str:
        """Return how the jobs are, what the driver said last, and where everything is kept."""
        log = self.folder / "logs" / f"driver-{self._drivers}.txt"
        said = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        return f"status: {self.status()}\nthe driver said:\n{said}\nkept in {self.folder}"


@contextlib.contextmanager
def lab_in(folder: Path) -> Iterator[Lab]:
    """A lab until the end of the block, without cluster and jobs."""
    lab = Lab(folder)
    try:
        lab.make_hosts()
        yield lab
    finally:
        lab.close()


def _has_said(log: Path, text: str) -> bool:
    return text in log.read_text(errors="replace")


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _class_archive() -> str:
    archive = Path(sys.prefix) / "spark-classes.jsa"
    return f" {archive_options(archive)}" if archive.exists() else ""


def _executors_python(folder: Path, library: Mapping[str, str]) -> Path:
    """A Python that has pyarrow and numpy beside its standard library, and its host's clock and
    disk.
    """
    packages = folder / "packages"
    packages.mkdir()
    for name in ("pyarrow", "numpy"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        for part in Path(spec.origin).parents[1].glob(f"{name}*"):
            (packages / part.name).symlink_to(part)
    base = getattr(sys, "_base_executable", sys.executable)
    script = folder / "executors-python"
    lines = ["#!/bin/sh", "read host < /proc/sys/kernel/hostname"]
    lines += [f'export {name}="{value}"' for name, value in library.items()]
    lines += [f'export PYTHONPATH="{packages}:$PYTHONPATH"', f'exec "{base}" -S "$@"', ""]
    script.write_text("\n".join(lines))
    script.chmod(0o755)
    return script


def _private_configuration(folder: Path) -> Path:
    """The directory for SPARK_CONF_DIR of docs/security.md."""
    conf = folder / "spark-conf"
    conf.mkdir(mode=0o700)
    settings = conf / "spark-defaults.conf"
    settings.touch(mode=0o600)
    settings.write_text(
        "spark.authenticate true\nspark.network.crypto.enabled true\n"
        f"spark.authenticate.secret {secrets.token_hex(32)}\n"
    )
    return conf
