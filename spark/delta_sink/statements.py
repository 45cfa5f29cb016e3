"""The statement by which the library `deltalake` merges rows into a table.

Decides nothing: of each key one row is given, and a row of the table that is newer stays. Names of
columns are quoted, since the library reads them as SQL. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from epochgate.spark.tables.merge import DELETED, Merge


def carry_out(
    table: Any, rows: pa.RecordBatchReader, merge: Merge, properties: Any, hooks: Any
) -> None:
    """Merge rows into the snapshot of a table of the library. Raises what that raises."""
    merger = table.merge(
        rows,
        " and ".join(f"known.{_sql(name)} = given.{_sql(name)}" for name in merge.on),
        source_alias="given",
        target_alias="known",
        commit_properties=properties,
        post_commithook_properties=hooks,
    )
    deletes, is_older = f"given.{_sql(DELETED)}", not_newer(merge.order)
    merger.when_matched_delete(f"{deletes} and {is_older}")
    merger.when_matched_update_all(f"not {deletes} and {is_older}", [DELETED])
    merger.when_not_matched_insert_all(f"not {deletes}", [DELETED])
    merger.execute()


def not_newer(order: Sequence[str]) -> str:
    """A row of the table is not newer; one of which that is not known counts as older.

    >>> not_newer(["at"])
    '((known.`at` < given.`at` or known.`at` = given.`at`) is not false)'
    """
    if not order:
        return "true"
    compared = ""
    for name in reversed(order):
        known, given = f"known.{_sql(name)}", f"given.{_sql(name)}"
        same = f"{known} = {given}"
        compared = f"({known} < {given} or {f'({same} and {compared})' if compared else same})"
    return f"({compared} is not false)"


def _sql(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
