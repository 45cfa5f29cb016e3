"""A PostgreSQL server of the tests' own; where none is installed, what needs it is skipped."""

from __future__ import annotations

import pytest

from epochgate.benchmarks.postgres_server import PostgresMissing, PostgresServer


class Server(PostgresServer):
    """Of Debian, in a directory and on a socket of its own."""

    def __init__(self, *, fsync: bool = True) -> None:
        try:
            super().__init__(fsync=fsync)
        except PostgresMissing as missing:
            pytest.skip(f"{missing} (make venv tries)")
