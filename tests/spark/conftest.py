"""One PostgreSQL server for all tests of a process, and a database for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.spark.tables.postgres_server import Server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def dsn(server: Server) -> str:
    """Of a database of the test's own."""
    import psycopg

    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    return server.dsn.replace("dbname=postgres", f"dbname={name}")
