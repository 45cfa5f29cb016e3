"""Names and connections: a table of PostgreSQL, and what lies beside it for this sink.

Decides what the ledger and the staging table are called, that they are in the table's schema, how
names get into statements, and which parts of a connection string a message may show. Runs in tasks
and on the driver; needs psycopg.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.conninfo
from psycopg import pq, sql

from epochgate.spark.postgres_sink.errors import DsnUnreadable
from epochgate.spark.postgres_sink.rows import CHECKPOINT, PART
from epochgate.spark.values.relations import ColumnType

DatabaseError = psycopg.Error
Connect = Callable[[str], psycopg.Connection[Any]]
Run = Callable[..., Any]
"""Executes a statement, in which `{table}` and others stand for names, with values by name."""
LEDGER = "epochgate_ledger"
MOVED = "epochgate_moved"
NAME_MAX = 63


_URL_WITH_TWO_ENDS = re.compile(r"postgres(ql)?://([^/?]*@[^/?]*@|[^@/?]*/[^?]*@).*", re.DOTALL)
"""A user and password that an `@` or `/` of the password ends too early."""
_QUOTED = re.compile(r'(?:(?P<schema>.+)\.)?(?P<name>"(?:[^"]|"")+")', re.DOTALL)


def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection for one transaction, which is ended explicitly, and in which clocks go by UTC.

    Raises DsnUnreadable, and what psycopg raises.
    """
    conninfo(dsn)
    connection = psycopg.connect(dsn, application_name="epochgate", connect_timeout=30)
    connection.execute("set local timezone to 'UTC'")
    return connection


_COLUMNS = """
    with recursive columns as (
        select attname, format_type(atttypid, atttypmod) as shown, atttypid as type,
            atttypmod as modifier
        from pg_attribute
        where attrelid = to_regclass(%(of)s) and attnum > 0 and not attisdropped
        union all
        select attname, shown, typbasetype, typtypmod
        from columns join pg_type on pg_type.oid = type where typtype = 'd'
    )
    select attname, shown, case when own.typnamespace = 'pg_catalog'::regnamespace
        then own.typname else '' end, modifier, coalesce(element.typname, '')
    from columns join pg_type own on own.oid = type
    left join pg_type element on element.oid = own.typelem and own.typcategory = 'A'
    where own.typtype <> 'd'"""
"""With the types below domains."""


def types_of(dsn: str, relation: Relation) -> dict[str, ColumnType]:
    """The columns of a table, by name; none if there is no table. Raises DsnUnreadable, and what
    psycopg raises.
    """
    with connect(dsn) as connection:
        return columns_of(running(connection, relation), relation.table)


def columns_of(run: Run, table: sql.Identifier) -> dict[str, ColumnType]:
    """The same, as a transaction sees them. Raises what psycopg raises."""
    found = run(_COLUMNS, of=table.as_string(None)).fetchall()
    return {name: ColumnType(*told) for name, *told in found}


def conninfo(dsn: str) -> dict[str, Any]:
    """The parts of a connection string, with its secrets. Raises DsnUnreadable."""
    try:
        values = dict(psycopg.conninfo.conninfo_to_dict(dsn))
    except psycopg.Error:
        # The library's message shows the text at which it stopped, which may be the password.
        raise DsnUnreadable from None
    if _URL_WITH_TWO_ENDS.fullmatch(dsn):
        raise DsnUnreadable
    return values


def shown(dsn: str) -> str:
    """A connection string without its secrets. Raises DsnUnreadable.

    >>> shown("postgresql://me:secret@db/sales?sslpassword=secret")
    'user=me dbname=sales host=db'
    """
    secret = _secret_options()
    return " ".join(f"{key}={value}" for key, value in conninfo(dsn).items() if key not in secret)


@functools.cache
def _secret_options() -> frozenset[str]:
    """The options that libpq itself shows as stars, and keys that stand for a password."""
    return frozenset(
        option.keyword.decode()
        for option in pq.Conninfo.get_defaults()
        if option.dispchar == b"*" or option.keyword.startswith(b"scram_")
    )


def with_names(text: str, **names: sql.Composable) -> sql.SQL:
    """A statement for `execute` with parameters, with names in it: each `%` of a name is doubled,
    since psycopg looks for placeholders in the whole text.

    >>> with_names("select {x} from t where y = %s", x=sql.Identifier("a%")).as_string(None)
    'select "a%%" from t where y = %s'
    """
    written = {key: _doubled(name) for key, name in names.items()}
    return sql.SQL(sql.SQL(text).format(**written).as_string(None))


def _doubled(name: sql.Composable) -> sql.SQL:
    return sql.SQL(name.as_string(None).replace("%", "%%"))


@dataclass(frozen=True)
class Relation:
    """A table, `schema.name` or `name` in the first schema of the search path. A part in double
    quotes is read as SQL reads it, so that it may hold dots; any other part is taken as it is.

    >>> Relation("sales.events").table.as_string(None)
    '"sales"."events"'
    >>> Relation('"a.b"."c""d"').table.as_string(None)
    '"a.b"."c""d"'
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def table(self) -> sql.Identifier:
        """The table itself."""
        return self.beside(self._parts[1])

    @property
    def staged(self) -> sql.Identifier:
        """The table in which rows wait for their commit."""
        return self.beside(shortened(f"epochgate_staged_{self._parts[1]}"))

    @property
    def ledger(self) -> sql.Identifier:
        """The table in which commits are recorded."""
        return self.beside(LEDGER)

    @property
    def moved(self) -> sql.Identifier:
        """The table in which it is recorded what tasks have moved, until the ledger knows it."""
        return self.beside(MOVED)

    def beside(self, name: str) -> sql.Identifier:
        """A table in the same schema."""
        schema = self._parts[0]
        return sql.Identifier(*([schema] if schema else []), name)

    @property
    def _parts(self) -> tuple[str, str]:
        """Schema, or nothing, and name."""
        quoted = _QUOTED.fullmatch(self.name)
        schema, _, name = self.name.rpartition(".")
        if quoted is not None:
            schema, name = quoted["schema"] or "", quoted["name"]
        return _unquoted(schema), _unquoted(name)


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if re.fullmatch(r'"(?:[^"]|"")+"', part) else part


def shortened(name: str) -> str:
    """A name that PostgreSQL does not cut off, and that is another one for each long name.

    >>> len(shortened("x" * 100))
    63
    """
    if len(name.encode()) <= NAME_MAX:
        return name
    kept = name.encode()[:40].decode(errors="ignore")
    return f"{kept}_{hashlib.sha256(name.encode()).hexdigest()}"[:NAME_MAX]


_NOTHING = sql.SQL("")


def running(
    connection: psycopg.Connection[Any], relation: Relation, known: Mapping[str, Any] | None = None
) -> Run:
    """A function that executes statements about a table and what lies beside it; `known`: values
    that each statement may name.
    """

    def run(text: str, names: sql.Composable | Mapping[str, Any] = _NOTHING, **values: Any) -> Any:
        statement = with_names(
            text,
            table=relation.table,
            staged=relation.staged,
            ledger=relation.ledger,
            moved=relation.moved,
            part=sql.Identifier(PART),
            told=sql.Identifier(CHECKPOINT),
            **(names if isinstance(names, Mapping) else {"names": names}),
        )
        return connection.execute(statement, {**(known or {}), **values})

    return run
