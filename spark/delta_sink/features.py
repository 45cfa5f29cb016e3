"""The features of Delta tables that an append has to heed, and those that it cannot.

Decides which tables are refused at the start, by name and with what to do: a table is taken if the
files and the entries that this sink writes are whole to every reader of it. Leaves reading the
table to `DeltaLog`. A feature that a table may use, and does not, is no hindrance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

TAKEN: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
    }
)
"""What a table may have: of some the use is looked at (`_USES`); readers make the change feed of
appended files by themselves; and files without deletion vectors may lie beside those with them. The
library writes to no table with identity columns, used or not.
"""
NOT_WIDENED: Final = (
    "a Delta table has wider types by its feature typeWidening, and deltalake writes to "
    "no table with it. Take --schema-evolution add (schema_evolution in Python): a column then "
    "keeps its type and takes what fits. Or declare the wider type by --schema (schema) for a "
    "new table; or have an engine rewrite the table with wider columns, between two runs"
)
PARTITIONED: Final = (pa.types.is_timestamp,)
"""Kinds of columns by which a table can be partitioned, beside those of Parquet files. The library
misreads decimals between 0 and -1.
"""
NEW_TABLE: Final = {"delta.logRetentionDuration": "interval 1 days"}
"""Properties of a table that a job creates. The library lists all entries of the log for each
commit, and by default entries are kept for thirty days.
"""
OF_VERSIONS: Final = 5
"""Up to this version of writers, a table has no list of features, and any of the above."""
APPEND_ONLY: Final = "delta.appendOnly"
_FORGETS: Final = "delta.setTransactionRetentionDuration"
_MAPPING: Final = "delta.columnMapping.mode"
_OTHER: Final = "Write to a table without it, or let an engine that supports it write"
_USES: Final = {
    "delta.constraints.": ("a constraint", "drop it (ALTER TABLE ... DROP CONSTRAINT)"),
    "delta.invariants": ("a rule for a column", "write to a table without it"),
    "delta.generationExpression": (
        "a generated column",
        "make it in the query or the --transform and write to a table without the expression",
    ),
}
_WAYS_ON: Final = {
    "rowTracking": "turn it off (delta.enableRowTracking) and drop the feature",
    "clustering": "end it (ALTER TABLE ... CLUSTER BY NONE) and drop the feature",
    "domainMetadata": "drop the feature, if nothing uses it any more",
    "inCommitTimestamp": "turn it off (delta.enableInCommitTimestamps) and drop the feature",
    "typeWidening": "drop the feature, which rewrites files",
    "vacuumProtocolCheck": "drop the feature",
    "allowColumnDefaults": "drop the defaults and the feature",
}


def hindrance(
    features: Iterable[str], configuration: Mapping[str, str], column_rules: Iterable[str]
) -> tuple[str, str] | None:
    """Return why a table cannot be written to, and the way on; None if it can.

    features: that it demands of writers. column_rules: keys of the metadata of its columns.
    """
    if foreign := sorted(set(features) - TAKEN):
        ways = [f"{one}: {_WAYS_ON[one]}" for one in foreign if one in _WAYS_ON]
        # ALTER TABLE ... DROP FEATURE takes one at a time.
        way_on = "; ".join([_OTHER, *ways])
        return f"it demands {', '.join(foreign)} of its writers", f"{way_on}."
    if configuration.get(_MAPPING, "none") != "none":
        way_on = f"{_OTHER}; or rewrite it without ({_MAPPING} = 'none')"
        return "its columns have other names in its files (column mapping)", f"{way_on}."
    for key in sorted({*configuration, *column_rules}):
        for use, (kind, way_on) in _USES.items():
            if key.startswith(use):
                return f"this sink cannot keep {kind}, {key}", f"{_OTHER}; or {way_on}."
    if _FORGETS in configuration:
        found = f"it forgets its applications after a while ({_FORGETS})"
        return found, "The job could not tell what it has committed; remove that property."
    return None
