"""The tally of a run's tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tests.spark.values.targets import Outcome

SHOWN_MAX = 90
_VALUE = re.compile(r"""'(?:[^'\\]|\\.)*'|"[^"]*"|/\S+|-?\d+""")


@dataclass
class Tally:
    """Tables by target, format and outcome, rows and values by target, and the reasons that were
    told with values left out.
    """

    tables: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, target: str, form: str, table: pa.Table, outcome: Outcome) -> None:
        """Count one table."""
        self.tables[target, form, outcome.has_arrived] += 1
        self.rows[target] += table.num_rows
        self.values[target] += table.num_rows * table.num_columns
        if outcome.refusal:
            self.refusals[_VALUE.sub("~", outcome.refusal.split("\n")[0])[:SHOWN_MAX]] += 1

    def count(self, target: str, *, has_arrived: bool) -> int:
        """The tables of a target with this outcome."""
        return sum(
            count
            for (of, _, arrived), count in self.tables.items()
            if (of, arrived) == (target, has_arrived)
        )

    def lines(self) -> Iterator[str]:
        """A report."""
        yield f"{'target':10} {'format':18} {'arrived':>8} {'refused':>8}"
        for target, form in sorted({(target, form) for target, form, _ in self.tables}):
            arrived, refused = (self.tables[target, form, has] for has in (True, False))
            yield f"{target:10} {form:18} {arrived:8,} {refused:8,}"
        yield f"{'target':10} {'tables':>8} {'rows':>9} {'values':>9}"
        for target in sorted(self.rows):
            tables = sum(self.count(target, has_arrived=has) for has in (True, False))
            yield f"{target:10} {tables:8,} {self.rows[target]:9,} {self.values[target]:9,}"
        yield (
            f"{'all':10} {self.tables.total():8,} {self.rows.total():9,} {self.values.total():9,}"
        )
        yield "refusals, with values left out:"
        for kind, count in self.refusals.most_common():
            yield f"{count:8,} {kind}"
