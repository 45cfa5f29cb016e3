"""Random texts in random CSV files: each is read as a value that prints it again, or rejected."""

from __future__ import annotations

import csv
import io
import itertools
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from epochgate.spark.files import Dialect
from tests.spark.files.reading import batches

NASTY = [
    *("0", "7", "-3", "007", "+7", "-0", "1e5", "0x1F", "1_0", " 7", "7 ", "9007199254740993"),
    *("9223372036854775808", "9" * 38, "9" * 39, "0.5", "1.50", "1.0", ".5", "1.", "-0.0", "NaN"),
    *("0.1234567890123456789", "1e400", "inf", "true", "True", "FALSE", "t", "2024-01-02"),
    *("2024-1-2", "2023-02-29", "0000-01-01", "2024-01-02 03:04", "2024-01-02 03:04:05"),
    *("2024-01-02T03:04:05.5", "2024-01-02 03:04:05.1234567", "2024-01-02T03:04:05Z"),
    *("2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05.25+00:00", "03:04:05", "", "NA", "null"),
    *('"', '5" pipe', 'a "b"', "a,b", "x\ny", "x\r\ny", "x\ry", "\\", '\\"', "a\\,b", "Zoë", "\0"),
]
NOTHING = ("", "NA", "null", "NaN")
TEXTS = st.sampled_from(NASTY) | st.text('01-+.eT: "\\,\n', max_size=6)
COLUMN = st.lists(TEXTS, min_size=1, max_size=4) | st.sampled_from(NASTY).map(lambda one: [one] * 3)


def printed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return str(value)


def spelled(text: str, value: Any) -> str:
    """A text of the file, in the one spelling of those that tell nothing apart."""
    if isinstance(value, float):
        return text.removesuffix(".0")
    if hasattr(value, "tzinfo"):
        whole, _, fraction = text.replace("T", " ").replace("Z", "+00:00").partition(".")
        digits, plus, zone = fraction.partition("+")
        return f"{whole}.{digits:0<6}{plus}{zone}" if digits else whole
    return text


@given(data=st.data())
def test_no_value_of_a_csv_file_changes(data: st.DataObject) -> None:
    columns = data.draw(st.lists(COLUMN, min_size=1, max_size=3))
    table = list(itertools.zip_longest(*columns, fillvalue=columns[0][0]))
    later = data.draw(st.lists(st.tuples(*[TEXTS] * len(columns)), max_size=4))
    names = [f"c{number}" for number in range(len(columns))]
    quotes_all = data.draw(st.booleans())
    escape = data.draw(st.sampled_from(["", "\\"]))
    ends = data.draw(st.sampled_from(["\n", "\r\n"]))
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("a.csv", table), ("b.csv", later)):
            file = io.StringIO()
            writer = csv.writer(
                file,
                lineterminator=ends,
                quoting=csv.QUOTE_ALL if escape or quotes_all else csv.QUOTE_MINIMAL,
                escapechar=escape or None,
                doublequote=not escape,
            )
            writer.writerows([names, *lines])
            (Path(folder) / name).write_bytes(file.getvalue().encode())
        found, rejected = [], 0
        for one in batches(
            Path(folder),
            dialect=Dialect(escape=escape),
            on_bad_row="reject",
            block_bytes=data.draw(st.integers(1, 80)),
            split_bytes_target=data.draw(st.sampled_from([5, 1 << 20])),
        ):
            found += [tuple(row.values()) for row in one.batch.to_pylist()]
            rejected += len(one.rejected)
    written = [*table, *later]
    assert len(found) + rejected == len(written)
    remaining = iter(written)
    for row in found:
        # Rejected rows lie between those that are read, which keep their order.
        assert any(is_same(texts, row) for texts in remaining), (row, written)


def is_same(texts: tuple[str, ...], row: tuple[Any, ...]) -> bool:
    return all(
        text in NOTHING if value is None else spelled(text, value) == spelled(printed(value), value)
        for text, value in zip(texts, row, strict=True)
    )
