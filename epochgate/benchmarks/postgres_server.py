"""A PostgreSQL server of one's own: the system's programs, in a directory and on a socket.

Decides how it is started, also by root, which PostgreSQL refuses to run as. Used by
`epochgate bench sinks` and by tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from epochgate.benchmarks.object_server import ports
from epochgate.errors import EpochgateError, UsageError

OTHER_USER = "postgres"


class PostgresMissing(UsageError):
    """A program that is needed is not installed: its name, the system's package that has it."""

    def __str__(self) -> str:
        return f"{self.args[0]!r} is not installed: apt-get install {self.args[1]}"


class ServerNotStarted(EpochgateError):
    """A program of PostgreSQL has failed: its name, what it said."""

    def __str__(self) -> str:
        return f"PostgreSQL's {self.args[0]} has failed: {self.args[1]}"


def programs() -> Path | None:
    """The directory of PostgreSQL's programs, the newest; Debian keeps them off PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class PostgresServer:
    """Started by `start`; without TCP, unless clients need a port (`has_port`). Keeps what a crash
    must keep, but for a power cut's where it does not `fsync`. Raises PostgresMissing and
    ServerNotStarted.
    """

    def __init__(self, *, fsync: bool = True, has_port: bool = False) -> None:
        self._fsync = "on" if fsync else "off"
        self._port = ports(1)[0] if has_port else None
        at = programs()
        if at is None:
            raise PostgresMissing("initdb", "postgresql")
        self._programs = at
        self._directory = Path(tempfile.mkdtemp(prefix="epochgate-postgres-"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:  # which PostgreSQL refuses
            shutil.chown(self._directory, OTHER_USER)
            self._as = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []}
        self._run("initdb", "-A", "trust", "-N", "-U", "tests", "-E", "UTF8")
        self.start()

    @property
    def dsn(self) -> str:
        """Of the server's first database."""
        return f"host={self._directory} port={self._port or 5432} user=tests dbname=postgres"

    @property
    def url(self) -> str:
        """Of the same database, for clients that need a port and a password, which is not asked."""
        return f"postgresql://tests:none@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = str(self._directory / "log")
        addresses = "''" if self._port is None else f"127.0.0.1 -p {self._port}"
        options = f"-k {self._directory} -c listen_addresses={addresses} -c max_connections=40"
        options += f" -c fsync={self._fsync}"
        self._run("pg_ctl", "start", "-w", "-l", log, "-o", options)

    def crash(self) -> None:
        """End it as a power cut does: nothing is flushed, connections break."""
        self._run("pg_ctl", "stop", "-m", "immediate")

    def remove(self) -> None:
        """End it, and remove its directory."""
        self.crash()
        shutil.rmtree(self._directory)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", f"{self._directory}/data"]
        ran = subprocess.run(
            [*command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            timeout=60,
            check=False,
            **self._as,
        )
        if ran.returncode != 0:
            raise ServerNotStarted(program, ran.stderr)
