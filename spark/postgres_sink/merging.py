"""Merging staged rows into a table of PostgreSQL: the statements within one transaction.

Decides which of several rows of a key counts, and that a row of the table which is newer stays.
Keys are compared as the table's unique constraint compares them, and the order as the columns'
types do. Leaves the transaction and the ledger to the target. Runs on the driver.

    delete from STAGED ...                            all rows of a key but the last
    delete from TABLE using STAGED ...                what rows that delete find, and is not newer
    insert into TABLE ... on conflict do update ...   in the place of what is not newer
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from epochgate.spark.postgres_sink.database import Run
from epochgate.spark.postgres_sink.part import Part
from epochgate.spark.postgres_sink.rows import CHECKPOINT
from epochgate.spark.tables.merge import DELETED, Merge

_OF_KEYS = """
    select 1 from pg_index
    where indrelid = to_regclass(%(name)s) and indisunique and indisvalid and indimmediate
        and indpred is null and indexprs is null and array(
            select attname::text from unnest(indkey::int2[]) with ordinality as k (attnum, place)
            join pg_attribute a using (attnum)
            where attrelid = indrelid and place <= indnkeyatts order by attname
        ) = %(on)s::text[]"""
"""A unique constraint, or index, which the upsert of these keys, in the order of bytes, finds."""
_REQUIRED = """
    select attname from pg_attribute
    where attrelid = to_regclass(%(name)s) and attnum > 0 and not attisdropped and attnotnull
        and attidentity = '' and attname <> all(%(but)s)"""
"""Columns of the staging table that a row which deletes may leave out."""
_AMBIGUOUS = """
    select row({keys})::text from (
        select {names}, {deleted}, rank() over (partition by {keys}{newest}) as epochgate_rank
        from {staged} where {part} = any(%(parts)s)
    ) as given where epochgate_rank = 1
    group by {keys} having count(distinct row({names}, {deleted})::text) > 1 limit 1"""
_LEAVE_LAST = """
    delete from {staged} where ctid = any(array(
        select ctid from (
            select ctid, row_number() over (partition by {keys}{newest}) as epochgate_rank
            from {staged} where {part} = any(%(parts)s)
        ) as given where epochgate_rank > 1))"""
_DELETE = """
    delete from {table} as known using {staged} as given
    where given.{part} = any(%(parts)s) and given.{deleted} and {same_key} and {not_newer}"""
_MERGE = """
    insert into {{table}} as known ({{names}}{also}) overriding system value
    select {{names}}{value} from {{staged}} as given
    where {{part}} = any(%(parts)s) and not {{deleted}}
    on conflict ({{keys}}) do update set {{values}} where {{not_newer_excluded}}"""
_COUNT = """
    select count(*), count(known.{key}), count(*) filter (where known.{key} is null or {not_newer})
    from {staged} as given left join {table} as known on {same_key}
    where given.{part} = any(%(parts)s) and not given.{deleted}"""
_LEFT = """
    select count(*) from {staged} as given join {table} as known on {same_key}
    where given.{part} = any(%(parts)s) and given.{deleted} and {not_newer}"""
_SAME = """
    select count(*) from {staged} as given join {table} as known on {same_key}
    where given.{part} = any(%(parts)s) and not given.{deleted}
        and row({of_known})::text = row({of_given})::text"""


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge: how many rows were taken, new or in the place of others, how many
    should have been, how many rows were deleted, and how many more the table has.
    """

    taken: int
    expected: int
    deleted: int
    added: int


class Merging:
    """The statements of an upsert, for a `run` that puts in the names of the relations."""

    def __init__(self, merge: Merge) -> None:
        self._merge = merge

    def has_constraint(self, run: Run, table: str) -> bool:
        """Return whether the keys are those of a unique constraint of the table."""
        found = run(_OF_KEYS, name=table, on=sorted(self._merge.on, key=str.encode))
        return found.fetchone() is not None

    def prepare(self, run: Run, staged: str, part: str) -> None:
        """Let the staging table have rows that delete, which need no values but those of keys."""
        run(
            "alter table {staged} add column if not exists {deleted}"
            " boolean not null default false",
            {"deleted": _id(DELETED)},
        )
        but = [part, DELETED, *self._merge.columns]
        for (name,) in run(_REQUIRED, name=staged, but=but).fetchall():
            run(
                "alter table {staged} alter column {name} drop not null,"
                " add check ({name} is not null or {deleted})",
                {"name": _id(name), "deleted": _id(DELETED)},
            )

    def ambiguous(self, run: Run, parts: Sequence[Part]) -> str:
        """Return a key of which no row is the last, as PostgreSQL writes it; "" if there is none.
        Rows that are the same count once.
        """
        columns = sorted({name for part in parts for name in part.columns} - {DELETED})
        names = [part.name for part in parts]
        found = run(_AMBIGUOUS, self._names(columns), parts=names).fetchone()
        return "" if found is None else f"({', '.join(self._merge.on)}) = {found[0]}"

    def explain(self, run: Run, columns: Sequence[str], *, is_told: bool) -> None:
        """Let the server plan the statements, which are not carried out."""
        names = self._names(columns, is_told=is_told)
        run(f"explain {_DELETE}", names, parts=[""])
        run(f"explain {_merge(is_told)}", names, parts=[""], checkpoint=0)

    def carry_out(
        self, run: Run, groups: Iterable[Sequence[Part]], checkpoint: int, *, is_told: bool
    ) -> Merged:
        """Merge the rows of parts, in groups of the same columns."""
        some = [list(parts) for parts in groups]
        names = {"parts": [part.name for parts in some for part in parts]}
        of_keys = self._names()
        run(_LEAVE_LAST, of_keys, **names)
        deleted = run(_DELETE, of_keys, **names).rowcount
        given, found, _ = run(_COUNT, of_keys, **names).fetchone()
        taken = 0
        for parts in some:
            taken += run(
                _merge(is_told),
                self._names(parts[0].columns, is_told=is_told),
                parts=[part.name for part in parts],
                checkpoint=checkpoint,
            ).rowcount
        expected = given
        if taken != given:
            # Other writers may have put newer rows there in the meantime.
            _, _, expected = run(_COUNT, of_keys, **names).fetchone()
        return Merged(taken, expected, deleted, given - found - deleted)

    def left(self, run: Run, parts: Sequence[Part]) -> int:
        """Return how many rows are in the table that these should have deleted."""
        found = run(_LEFT, self._names(), parts=[part.name for part in parts]).fetchone()
        return int(found[0])

    def unchanged(self, run: Run, groups: Iterable[Sequence[Part]]) -> int:
        """Return how many rows are in the table as they were given."""
        return sum(
            run(
                _SAME, self._names(parts[0].columns), parts=[part.name for part in parts]
            ).fetchone()[0]
            for parts in groups
        )

    def _names(self, columns: Sequence[str] = (), *, is_told: bool = False) -> dict[str, Any]:
        on, order = self._merge.on, self._merge.order
        own = [name for name in columns if name != DELETED]
        told = [CHECKPOINT] if is_told else []
        changed = [name for name in own if name not in on] + told or [on[0]]
        return {
            "names": _listed(map(_id, own)),
            "key": _id(on[0]),
            "keys": _listed(map(_id, on)),
            "deleted": _id(DELETED),
            "newest": _newest(order),
            "same_key": sql.SQL(" and ").join(
                sql.SQL("known.{0} = given.{0}").format(_id(name)) for name in on
            ),
            "not_newer": _not_newer(order, "given"),
            "not_newer_excluded": _not_newer(order, "excluded"),
            "values": _listed(sql.SQL("{0} = excluded.{0}").format(_id(one)) for one in changed),
            "of_known": _listed(sql.Identifier("known", name) for name in own),
            "of_given": _listed(sql.Identifier("given", name) for name in own),
        }


def _merge(is_told: bool) -> str:
    also, value = (", {told}", ", %(checkpoint)s") if is_told else ("", "")
    return _MERGE.format(also=also, value=value)


def _id(name: str) -> sql.Identifier:
    return sql.Identifier(name)


def _listed(of: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(of)


def _newest(order: Sequence[str]) -> sql.Composable:
    """The last row of a key comes first."""
    if not order:
        return sql.SQL("")
    return sql.SQL(" order by {}").format(
        _listed(sql.SQL("{} desc").format(_id(name)) for name in order)
    )


def _not_newer(order: Sequence[str], other: str) -> sql.Composable:
    """The row in the table is not newer; one of which that is not known counts as older."""
    if not order:
        return sql.SQL("true")
    return sql.SQL("(({}) <= ({})) is not false").format(
        _listed(sql.Identifier("known", name) for name in order),
        _listed(sql.Identifier(other, name) for name in order),
    )
