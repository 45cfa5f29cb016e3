"""Names and connections: a table of PostgreSQL, and what lies beside it for this sink.

Decides what the ledger and the staging table are called, and that they are in the table's schema.
Runs in tasks and on the driver; needs psycopg.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.conninfo
from psycopg import sql

Connect = Callable[[str], psycopg.Connection[Any]]
LEDGER = "epochgate_ledger"
NAME_MAX = 63


def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection whose transactions are ended explicitly. Raises what psycopg raises."""
    return psycopg.connect(dsn, application_name="epochgate", connect_timeout=30)


def shown(dsn: str) -> str:
    """A connection string without its password.

    >>> shown("postgresql://me:secret@db/sales")
    'user=me dbname=sales host=db'
    """
    values = psycopg.conninfo.conninfo_to_dict(dsn)
    return " ".join(f"{key}={value}" for key, value in values.items() if key != "password")


@dataclass(frozen=True)
class Relation:
    """A table, `schema.name` or `name` in the first schema of the search path."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def table(self) -> sql.Identifier:
        """The table itself."""
        return self._beside(self._last)

    @property
    def staged(self) -> sql.Identifier:
        """The table in which rows wait for their commit."""
        return self._beside(shortened(f"epochgate_staged_{self._last}"))

    @property
    def ledger(self) -> sql.Identifier:
        """The table in which commits are recorded."""
        return self._beside(LEDGER)

    @property
    def ledger_name(self) -> str:
        """The same as a text, for `to_regclass`."""
        schema = self.name.rpartition(".")[0]
        return f'"{schema}".{LEDGER}' if schema else LEDGER

    @property
    def _last(self) -> str:
        return self.name.rpartition(".")[2]

    def _beside(self, name: str) -> sql.Identifier:
        schema = self.name.rpartition(".")[0]
        return sql.Identifier(*([schema] if schema else []), name)


def shortened(name: str) -> str:
    """A name that PostgreSQL does not cut off, and that is another one for each long name.

    >>> len(shortened("x" * 100))
    63
    """
    if len(name.encode()) <= NAME_MAX:
        return name
    kept = name.encode()[:40].decode(errors="ignore")
    return f"{kept}_{hashlib.sha256(name.encode()).hexdigest()}"[:NAME_MAX]
