"""Random JSON values in random files: each is read as the value that it is, or is rejected."""

from __future__ import annotations

import itertools
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from epochgate.spark.files.json_values import Number
from tests.spark.files.reading import batches
from tests.spark.files.test_json_by_line import NUMBERS, STRINGS, VALUES

BARE = st.sampled_from(NUMBERS) | st.decimals(allow_nan=False, allow_infinity=False).map(str)
WHOLE = st.integers(-(10**40), 10**40) | st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False).map(repr)
STYLES = [BARE, WHOLE.map(str), DOUBLE, st.sampled_from(STRINGS), st.text().map(json.dumps), VALUES]
NAMES = ("a", "b", "c d")


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Records whose fields are of a style each, most of the time."""
    styles = {name: draw(st.sampled_from(STYLES)) for name in NAMES}
    records = []
    for _ in range(draw(st.integers(1, 6))):
        fields = [
            f"{json.dumps(name)}: {draw(style)}"
            for name, style in styles.items()
            if draw(st.integers(0, 4))
        ]
        records.append("{" + ", ".join(draw(st.permutations(fields))) + "}")
    return records


@given(data=st.data())
def test_no_value_of_json_lines_changes(data: st.DataObject) -> None:
    written = [['{"id": 0}', *data.draw(lines())], data.draw(lines())]
    end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    with tempfile.TemporaryDirectory() as folder:
        for name, records in zip(("a.jsonl", "b.jsonl"), written, strict=True):
            (Path(folder) / name).write_bytes((end.join(records) + end).encode())
        found: list[dict[str, Any]] = []
        rejected = 0
        for one in batches(
            Path(folder),
            on_bad_row="reject",
            block_bytes=data.draw(st.integers(1, 200)),
            split_bytes_target=data.draw(st.sampled_from([5, 1 << 20])),
        ):
            found += one.batch.to_pylist()
            rejected += len(one.rejected)
    every = list(itertools.chain(*written))
    assert len(found) + rejected == len(every)
    remaining = iter(every)
    for row in found:
        # Rejected rows lie between those that are read, which keep their order.
        assert any(is_record(line, row) for line in remaining), (row, every)


def parsed(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def is_record(line: str, row: dict[str, Any]) -> bool:
    try:
        return is_same(parsed(line), row)
    except ValueError:
        return False


def is_same(value: Any, read: Any) -> bool:
    """Return whether what was read is the JSON value; what is null is as what is not there."""
    if value is None or read is None:
        return value is read
    if isinstance(read, dict):
        return isinstance(value, dict) and all(
            is_same(value.get(name), read.get(name)) for name in {*value, *read}
        )
    if isinstance(read, list):
        return (
            isinstance(value, list) and len(value) == len(read) and all(map(is_same, value, read))
        )
    if isinstance(value, Number):
        if isinstance(read, str):
            return read == value
        return not isinstance(read, bool) and Decimal(
            repr(read) if isinstance(read, float) else read
        ) == Decimal(value)
    if isinstance(read, str) and not isinstance(value, str):
        return bool(parsed(read) == value)
    return type(value) is type(read) and bool(value == read)
