"""A PostgreSQL server of the tests' own: Debian's, in a directory and on a socket of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

OTHER_USER = "postgres"


def programs() -> Path | None:
    """The directory of PostgreSQL's programs, the newest; Debian keeps them off PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Server:
    """Started by `start`; without TCP, so that it needs no port. Keeps what a crash must keep, but
    for a power cut's where it does not `fsync`.
    """

    def __init__(self, *, fsync: bool = True) -> None:
        self._fsync = "on" if fsync else "off"
        at = programs()
        if at is None:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql (make venv tries)")
        self._programs = at
        self._directory = Path(tempfile.mkdtemp(prefix="epochgate-postgres-"))
        self._as: list[str] = []
        if os.getuid() == 0:  # which PostgreSQL refuses
            if shutil.which("setpriv") is None or shutil.which("id") is None:
                pytest.skip("PostgreSQL cannot run as root, and setpriv is not installed")
            shutil.chown(self._directory, OTHER_USER)
            self._as = ["setpriv", f"--reuid={OTHER_USER}", "--regid=postgres", "--clear-groups"]
        self._run("initdb", "-A", "trust", "-N", "-U", "tests", "-E", "UTF8")
        self.start()

    @property
    def dsn(self) -> str:
        """Of the server's first database."""
        return f"host={self._directory} user=tests dbname=postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = str(self._directory / "log")
        options = f"-k {self._directory} -c listen_addresses='' -c max_connections=40"
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
        command = [*self._as, str(self._programs / program), "-D", f"{self._directory}/data"]
        ran = subprocess.run(
            [*command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
