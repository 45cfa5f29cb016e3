"""One way of a table through files into a target: each value arrives as it was, or is refused."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

from tests.spark.values import inferred
from tests.spark.values.cells import Rows, of_table
from tests.spark.values.sources import Source
from tests.spark.values.targets import Outcome, Target


def take(
    source: Source,
    target: Target,
    *,
    is_inferred: bool = False,
    starts_again: bool = False,
    found: Callable[[Rows], Rows] = lambda rows: rows,
    **options: Any,
) -> Outcome:
    """Ingest the files; raises AssertionError for a value that is another than it was, and for a
    refusal that names neither a file nor a column, comes after rows that are wrong, or is tried
    again and again. With `is_inferred` the values are those that were found in texts; with
    `starts_again` a second start follows, which is to change nothing. `found` puts the rows into
    the form of the source's.
    """
    target.prepare(source.table, is_inferred=is_inferred)
    source.options |= options
    outcome = target.ingest(**source.options)
    _compare(source, found(target.rows()), outcome, is_inferred=is_inferred)
    names = source.table.column_names
    named = (
        *(path.name for path in source.files),
        *(begin + name for name in names for begin in "'\""),
        *(f" {name}: " for name in names),
        str(target.place),
    )
    assert outcome.has_arrived or any(name in outcome.refusal for name in named), outcome.refusal
    if starts_again:
        again = target.ingest(**source.options)
        assert again.has_arrived == outcome.has_arrived, again.refusal
        _compare(source, found(target.rows()), outcome, is_inferred=is_inferred)
    return outcome


def _compare(source: Source, found: Rows, outcome: Outcome, *, is_inferred: bool) -> None:
    if is_inferred:
        _compare_texts(source, found, is_all=outcome.has_arrived)
        return
    expected = of_table(source.table)
    is_right = found == expected if outcome.has_arrived else found <= expected
    assert is_right, told(found - expected, expected - found)


def _compare_texts(source: Source, found: Rows, *, is_all: bool) -> None:
    rows, is_same = source.table.to_pylist(), inferred.may_be
    if source.format in ("jsonl", "json"):
        is_same = inferred.may_be_in_json
    seen: Counter[int] = Counter()
    hints = (source.options.get("schema_hints") or pa.schema([])).names
    for row, count in found.items():
        cells = dict(row)
        number = int(cells[inferred.ROW][1])
        seen[number] += count
        assert cells.keys() <= rows[number].keys(), cells
        for name, text in rows[number].items():
            assert is_same(text, cells.get(name)), (name, text, cells.get(name))
            assert name not in hints or cells.get(name) in (None, ("text", text)), name
    assert max(seen.values(), default=1) == 1, "a row has come twice"
    assert len(seen) == len(rows) or not is_all, "a row has not come"


def with_facts(
    source: Source, parts: Sequence[pa.Table], chance: random.Random, *, is_inferred: bool
) -> None:
    """Let each row say where it comes from; where types are inferred, all is compared as texts."""
    names, numbers = list[str](), list[int]()
    for path, part in zip(source.files, parts, strict=True):
        names += [path.name] * part.num_rows
        numbers += range(1, part.num_rows + 1)
    for fact, values in (("file.name", names), ("file.row", numbers)):
        if chance.random() < 0.7:
            told = pa.array(values).cast(pa.string()) if is_inferred else pa.array(values)
            source.table = source.table.append_column(f"its {fact}", told)
            added = source.options.get("add_columns", ())
            source.options["add_columns"] = (*added, f"its {fact}={fact}")


def told(surplus: Rows, missing: Rows) -> str:
    """The rows that differ."""
    lines = [f"+ {count} {row}" for row, count in surplus.items()]
    return "\n".join([*lines, *(f"- {count} {row}" for row, count in missing.items())])


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Let the clocks of this process go by a zone."""
    with mock.patch.dict(os.environ, {"TZ": zone}):
        time.tzset()
        yield
    time.tzset()
