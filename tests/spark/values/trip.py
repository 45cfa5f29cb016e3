"""One way of a table through files into a target: each value arrives as it was, or is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from epochgate.errors import EpochgateError
from tests.spark.values.cells import of_table
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


def take(source: Source, target: Target, **options: Any) -> Outcome:
    """Ingest the files; raises AssertionError for a value that is another than it was, and for a
    refusal that names neither a file nor a column, comes after rows that are wrong, or is tried
    again and again.
    """
    expected = of_table(source.table)
    target.prepare(source.table.schema)
    try:
        simulated = target.start("one", **source.options, **options)
    except EpochgateError as error:
        refusal = str(error)
    else:
        simulated.run()
        result = simulated.leave()
        if result.state == "finished":
            rows = target.rows()
            assert rows == expected, told(rows - expected, expected - rows)
            return Outcome()
        restarts = result.report.regional_restarts + result.report.global_restarts
        assert restarts <= RESTARTS_MAX, f"{restarts} restarts: {result.reason}"
        refusal = result.reason or ""
    found = target.rows()
    assert found <= expected, told(found - expected, Counter())
    named = (*(path.name for path in source.files), *source.table.column_names)
    assert any(name in refusal for name in named), refusal
    return Outcome(refusal)


def told(surplus: Counter[Any], missing: Counter[Any]) -> str:
    """The rows that differ."""
    lines = [f"+ {count} {row}" for row, count in surplus.items()]
    return "\n".join([*lines, *(f"- {count} {row}" for row, count in missing.items())])
