"""One way of a table through files into a target: each value arrives as it was, or is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from epochgate.errors import EpochgateError
from tests.spark.values import inferred
from tests.spark.values.cells import Rows, of_table
from tests.spark.values.sources import Source
from tests.spark.values.targets import Target

RESTARTS_MAX = 3


@dataclass(frozen=True)
class Outcome:
    """Whether all rows arrived; if not, the reason that was told."""

    refusal: str = ""

    @property
    def has_arrived(self) -> bool:
        """Whether nothing was refused."""
        return not self.refusal


def take(source: Source, target: Target, *, is_inferred: bool = False, **options: Any) -> Outcome:
    """Ingest the files; raises AssertionError for a value that is another than it was, and for a
    refusal that names neither a file nor a column, comes after rows that are wrong, or is tried
    again and again. With `is_inferred` the values are those that were found in texts.
    """
    if not is_inferred:
        target.prepare(source.table.schema)
    outcome = _ingested(source, target, options)
    found = target.rows()
    if is_inferred:
        _compare_texts(source.table, found, is_all=outcome.has_arrived)
    else:
        expected = of_table(source.table)
        is_right = found == expected if outcome.has_arrived else found <= expected
        assert is_right, told(found - expected, expected - found)
    named = (*(path.name for path in source.files), *source.table.column_names)
    assert outcome.has_arrived or any(name in outcome.refusal for name in named), outcome.refusal
    return outcome


def _ingested(source: Source, target: Target, options: dict[str, Any]) -> Outcome:
    try:
        simulated = target.start("one", **source.options, **options)
    except EpochgateError as error:
        return Outcome(str(error))
    simulated.run()
    result = simulated.leave()
    if result.state == "finished":
        return Outcome()
    restarts = result.report.regional_restarts + result.report.global_restarts
    assert restarts <= RESTARTS_MAX, f"{restarts} restarts: {result.reason}"
    return Outcome(result.reason or "it has failed without a reason")


def _compare_texts(table: pa.Table, found: Rows, *, is_all: bool) -> None:
    rows = table.to_pylist()
    seen: Counter[int] = Counter()
    for row, count in found.items():
        cells = dict(row)
        number = int(cells[inferred.ROW][1])
        seen[number] += count
        for name, text in rows[number].items():
            assert inferred.may_be(text, cells.get(name)), (name, text, cells.get(name))
    assert max(seen.values(), default=1) == 1, "a row has come twice"
    assert len(seen) == table.num_rows or not is_all, "a row has not come"


def told(surplus: Rows, missing: Rows) -> str:
    """The rows that differ."""
    lines = [f"+ {count} {row}" for row, count in surplus.items()]
    return "\n".join([*lines, *(f"- {count} {row}" for row, count in missing.items())])
