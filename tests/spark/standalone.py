"""A standalone Spark cluster on the loopback address whose Python has nothing but itself.

One master and two workers with two cores each, as processes of the test, in a folder of their own.
Their executors run a Python without any installed package, so that neither epochgate nor what it
depends on is there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from epochgate.spark.java import ensure_java
from epochgate.spark.session import local_session

START_S = 60.0


class Cluster(NamedTuple):
    master: str
    python: Path


@contextlib.contextmanager
def standalone_cluster(
    folder: Path,
    hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.1"),
    variables: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """`hosts`: where the workers listen, addresses of the loopback interface. `variables`: what the
    environment of master and workers has beside what they need.
    """
    python = bare_python(folder)
    processes: list[subprocess.Popen[str]] = []
    more = dict(variables or {})
    try:
        master = _daemon(folder, "master.Master", [], processes, more)
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        for number, host in enumerate(hosts):
            work = folder / f"work-{number}"
            work.mkdir()
            arguments = ["--cores", "2", "--memory", "1024M", "--work-dir", str(work), address]
            worker = _daemon(folder, "worker.Worker", arguments, processes, more, host)
            _said(worker, r"(Successfully registered) with master")
        yield Cluster(address, python)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def bare_python(folder: Path) -> Path:
    """A Python that sees its standard library, and what Spark itself puts on its path."""
    base = getattr(sys, "_base_executable", sys.executable)
    script = folder / "bare-python"
    script.write_text(f'#!/bin/sh\nexec "{base}" -S "$@"\n')
    script.chmod(0o755)
    return script


def _daemon(
    folder: Path,
    name: str,
    arguments: list[str],
    processes: list[subprocess.Popen[str]],
    variables: Mapping[str, str],
    host: str = "127.0.0.1",
) -> subprocess.Popen[str]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        "-Dspark.master.rest.enabled=false -Dspark.ui.enabled=false",
        **variables,
    }
    listening = ["--host", host, "--port", "0", "--webui-port", "0"]
    launcher = str(home / "bin" / "spark-class")
    process = subprocess.Popen(
        [launcher, f"org.apache.spark.deploy.{name}", *listening, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    processes.append(process)
    return process


def _said(process: subprocess.Popen[str], pattern: str) -> str:
    """Wait for a line of the daemon's log; what follows is read too, lest it block."""
    found: queue.Queue[str] = queue.Queue()
    lines: list[str] = []

    def read() -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                lines.append(line)
                if match := re.search(pattern, line):
                    found.put(match.group(1))

    threading.Thread(target=read, daemon=True).start()
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(queue.Empty):
            return found.get(timeout=0.1)
    raise AssertionError(f"the daemon did not say {pattern!r}:\n{''.join(lines[-20:])}")


@contextlib.contextmanager
def session_on(cluster: Cluster, more: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session whose driver listens on the loopback address, for the cluster's own Python; `more`
    settings go over the others.
    """
    settings = {
        "spark.pyspark.python": str(cluster.python),
        "spark.pyspark.driver.python": str(cluster.python),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        **(more or {}),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", str(cluster.python))
        patch.delenv("PYTHONPATH", raising=False)
        with local_session(cluster.master, settings=settings) as session:
            yield session
