"""Texts of declared types of which some are of no such value, and are to be rescued."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa

from tests.spark.values import sources
from tests.spark.values.cells import Rows, of_row
from tests.spark.values.sources import Format, Source
from tests.spark.values.texts import text_of

COLUMN, PATH = "_rescued", "_file_path"
OF_NO_VALUE = (
    "12,5",
    "soon",
    "1 2",
    "0x",
    '{"a": 1}',
    "é\U0001f600",
    '"',
    "--5",
    "2024-13-01",
    " ",
)
"""Texts that denote no number, truth value, day or moment."""
TORN = 0.3
"""The share of values that do not fit."""
Odd = dict[int, dict[str, str]]
"""By the number of a row and the column, the text in the place of the value."""


def write(folder: Path, table: pa.Table, kind: Format, chance: random.Random) -> Source:
    """One file with the rows; the source's table is what is to be found in `_rescued`, too."""
    odd: Odd = {number: {} for number in range(table.num_rows)}
    for column in table.schema:
        for number in range(table.num_rows):
            if not pa.types.is_string(column.type) and chance.random() < TORN:
                odd[number][column.name] = chance.choice(OF_NO_VALUE)
    source = (_csv if kind == "csv" else _jsonl)(folder, table, odd, chance)
    (path,) = source.files
    columns = [
        pa.array(
            [None if name in odd[n] else one.as_py() for n, one in enumerate(column)], column.type
        )
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    told = [_told({**texts, PATH: str(path)} if texts else {}) for texts in odd.values()]
    expected = pa.Table.from_arrays(columns, schema=table.schema)
    source.table = expected.append_column(COLUMN, pa.array(told, pa.string()))
    return source


def canonical(rows: Rows) -> Rows:
    """The rows, with what is rescued in one order."""
    found = Rows()
    for row, count in rows.items():
        cells = dict(row)
        if COLUMN in cells:
            members = json.loads(cells.pop(COLUMN)[1], object_pairs_hook=_each_once)
            members.pop("", None)  # a column without a name, of which the schema knows nothing
            if members.keys() != {PATH}:
                cells[COLUMN] = ("text", _told(members))
        found[of_row(cells.items())] += count
    return found


def _each_once(pairs: list[tuple[str, str]]) -> dict[str, str]:
    assert len(dict(pairs)) == len(pairs), f"a member is there twice: {pairs}"
    return dict(pairs)


def _told(members: dict[str, str]) -> str | None:
    return json.dumps(members, sort_keys=True) if members else None


def _csv(folder: Path, table: pa.Table, odd: Odd, chance: random.Random) -> Source:
    texts = pa.Table.from_arrays(
        [
            pa.array(
                [
                    odd[n].get(name, text_of(one, chance) if one.is_valid else None)
                    for n, one in enumerate(column)
                ],
                pa.string(),
            )
            for name, column in zip(table.column_names, table.columns, strict=True)
        ],
        table.column_names,
    )
    return sources.write(folder, texts, [texts], "csv", chance)


def _jsonl(folder: Path, table: pa.Table, odd: Odd, chance: random.Random) -> Source:
    ascii_only = chance.random() < 0.5

    def member(number: int, name: str) -> str:
        scalar = table[name][number]
        if name in odd[number]:
            return json.dumps(odd[number][name], ensure_ascii=ascii_only)
        if not scalar.is_valid:
            return "null"
        kind, text = scalar.type, text_of(scalar, chance)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        is_bare = is_number or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
        return text if is_bare else json.dumps(text, ensure_ascii=ascii_only)

    folder.mkdir()
    path = folder / "part-0.jsonl"
    lines = [
        ", ".join(f"{json.dumps(name)}: {member(number, name)}" for name in table.column_names)
        for number in range(table.num_rows)
    ]
    path.write_text("".join(f"{{{line}}}\n" for line in lines), encoding="utf-8")
    return Source("jsonl", table, [path])
