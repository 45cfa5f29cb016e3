"""JSON lines are the same values whether the fast parser reads them or each line is read alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.files.json_guard import DEPTH_MAX, are_digits_kept, depth_of, look_at
from epochgate.spark.files.json_lines import JsonLines, LinesUnsure, infer_json
from epochgate.spark.files.json_types import TYPE_DEPTH_MAX, schema_of
from epochgate.spark.files.json_values import whole_record
from epochgate.spark.files.rejected import ValueInvalid
from epochgate.spark.files.split import SourceLayout
from tests.spark.files.reading import rejected, rows, write

NUMBERS = [
    *("0", "-0", "7", "-3", "1.0", "1.50", "0.1", "1e3", "1E-7", "-0.0", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "1" * 38, "1" * 39),
    *("0.1234567890123456789", "0.30000000000000004", "1e400", "-1e400", "1e-400", "5e-324"),
    *("4e-324", "1e22", "100000000000000000000", "1.7976931348623157e308", "12345678901234567"),
    *("1.2345678901234567e-5", "1.23456789012345678E-5", "1000000000000000.5", "00", "1.", ".5"),
    *("+1", "NaN", "Infinity", "-Infinity", "0x1F", "1e5e5", "2147483648", "300", "3.4e39"),
]
STRINGS = [
    *('"x"', '""', '"2024-01-02"', '"2024-01-02T03:04:05"', '"2024-01-02T03:04:05.123456Z"'),
    *('"2024-01-02T03:04:05+02:00"', '"2024-01-02 03:04:05.1234567"', '"1.50"', '"1.505"', '"7"'),
    *(r'"\u00e9\n"', r'"\ud83d\ude00"', r'"\ud800"', r'"\u0000"', '"é"', '"a\tb"', '"{["', '"}"'),
    *('"1, 12345678901234567890 ,"', '"e-400"', '"12:30"', '"12:30:00.25"', '"\\"', '"\\x"'),
]
OTHERS = ["null", "true", "false", "[]", "{}", "[1,2]", '{"x": 1}', "tru", "", "{", "[", "{}{}"]
SCALARS = st.sampled_from([*NUMBERS, *STRINGS, *OTHERS])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2).map(
            lambda pairs: "{" + ",".join(f'"{name}": {one}' for name, one in pairs.items()) + "}"
        )
    ),
    max_leaves=4,
)
RECORDS = st.lists(st.tuples(st.sampled_from("abc"), VALUES), max_size=3).map(
    lambda pairs: "{" + ", ".join(f'"{name}":{one}' for name, one in pairs) + "}"
)
LINES = st.lists(
    RECORDS | RECORDS | RECORDS | st.sampled_from(["", " ", "null", "[1]", '{"a":1} {"a":2}', "}"]),
    min_size=1,
    max_size=5,
)
PLAIN = [
    *(pa.int64(), pa.int8(), pa.float64(), pa.float32(), pa.bool_(), pa.string(), pa.binary()),
    *(pa.decimal128(38, 0), pa.decimal128(10, 2), pa.date32(), pa.timestamp("us"), pa.uint8()),
    *(pa.timestamp("us", tz="UTC"), pa.timestamp("ms"), pa.time64("us")),
]
KINDS = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: (
        inner.map(pa.list_)
        | st.lists(inner, min_size=1, max_size=2).map(
            lambda kinds: pa.struct(list(zip("xy", kinds, strict=False)))
        )
    ),
    max_leaves=3,
)
SCHEMAS = st.lists(KINDS, min_size=1, max_size=3).map(
    lambda kinds: pa.schema(list(zip("abc", kinds, strict=False)))
)


def layouts(schema: pa.Schema) -> Iterator[SourceLayout]:
    for is_inferred in (False, True):
        yield SourceLayout("jsonl", schema, is_inferred=is_inferred)
        yield SourceLayout("jsonl", schema, is_inferred=is_inferred, leaves_out_others=True)
    yield SourceLayout("jsonl", schema, is_inferred=True, takes_new_fields=True)


@settings(max_examples=300)
@given(lines=LINES, schema=SCHEMAS, end=st.sampled_from(["\n", "\r\n"]))
def test_what_the_fast_parser_reads_is_what_each_line_is(
    lines: list[str], schema: pa.Schema, end: str
) -> None:
    text = (end.join(lines) + end).encode()
    for layout in layouts(schema):
        parser = JsonLines(layout)
        try:
            fast = parser.parse(text)
        except LinesUnsure:
            continue
        ((_, slow),) = parser.by_line(text)
        assert not isinstance(slow, ValueInvalid), (layout, slow)
        assert slow.schema.equals(fast.schema), (layout, slow.schema, fast.schema)
        assert repr(slow.to_pylist()) == repr(fast.to_pylist()), layout


@settings(max_examples=300)
@given(lines=LINES)
def test_what_the_fast_parser_infers_is_what_the_lines_are(lines: list[str]) -> None:
    records = []
    for line in lines:
        try:
            records += [whole_record(line)] if line.strip() else []
        except ValueInvalid:
            continue
    try:
        found = infer_json("\n".join(lines).encode())
    except ValueInvalid:
        assert not any(records)
        return
    assert found is None if not records else schema_of(records).equals(found)


@pytest.mark.parametrize("seed", range(20))
def test_a_look_at_the_bytes_tells_records_and_depth(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        lines = []
        for _ in range(chance.randrange(1, 6)):
            size = chance.choice([1, 3, DEPTH_MAX - 2, DEPTH_MAX - 1, DEPTH_MAX, 700])
            nested = '{"a":' + "[" * size + "]" * size + "}"
            braces = '{"a":"' + "}" * size + '"}'
            lines.append(chance.choice([nested, braces, '{"a":"x"}', "{}", "", " "]))
        text = chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])
        look = look_at(text.encode())
        is_deep = max(map(depth_of, lines)) > DEPTH_MAX
        # Braces in strings may hide the depth of a line, which is then read alone.
        assert look is None or not is_deep
        assert look is None or look.records == sum(bool(line.strip()) for line in lines)
        assert look is not None or is_deep or any("}}" in line for line in lines)


@pytest.mark.parametrize("offset", range(262_112, 262_172))
def test_a_long_number_is_noticed_wherever_it_stands(offset: int) -> None:
    data = b'{"s":"' + b"x" * (offset - 20) + b'","n":0.12345678901234567}\n'
    look = look_at(data)
    assert look is not None
    assert look.has_long_numbers
    assert not are_digits_kept(data, look, [pa.array([0.5])])


@pytest.mark.parametrize("size", range(60))
@pytest.mark.parametrize("end", ["}", "}\n", "]}", "}}}\r\n"])
def test_a_long_number_is_noticed_before_the_end(size: int, end: str) -> None:
    look = look_at(f'{{"s":"{"x" * size}","n":0.12345678901234{end}'.encode())
    assert look is not None
    assert look.has_long_numbers


@pytest.mark.parametrize("digits", ["12345.67", "123456.7,1.234567"])
@pytest.mark.parametrize("offset", range(262_112, 262_172))
def test_a_short_number_is_taken_for_no_long_one_wherever_it_stands(
    offset: int, digits: str
) -> None:
    look = look_at(b'{"s":"' + b"x" * (offset - 20) + b'","n":[%s]}\n' % digits.encode())
    assert look is not None
    assert not look.has_long_numbers


@pytest.mark.parametrize("depth", [DEPTH_MAX, DEPTH_MAX + 1, 10_000])
@pytest.mark.parametrize("text", ["[]", '"[["'])
def test_a_record_that_is_nested_deep_never_meets_the_parser(
    tmp_path: Path, depth: int, text: str
) -> None:
    arrays = depth - 1 - text.count("]")
    line = f'{{"id": 1, "v": {"[" * arrays}{text}{"]" * arrays}}}'
    assert depth_of(line) == depth
    is_refused = depth > DEPTH_MAX
    if is_refused:
        assert look_at(line.encode()) is None
    write(tmp_path / "a.jsonl", '{"id": 0}\n' + line + "\n")
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    read = rows(tmp_path, schema=schema, on_bad_row="reject")
    assert [row["id"] for row in read] == ([0] if is_refused else [0, 1])
    assert [f"nested {depth} deep" in one.reason for one in rejected(tmp_path, schema=schema)] == (
        [True] if is_refused else []
    )


def test_what_is_nested_deep_is_text_from_a_depth_on(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    write(tmp_path / "a.jsonl", json.dumps({"v": value}) + "\n")
    read = rows(tmp_path)[0]["v"]
    for _ in range(TYPE_DEPTH_MAX):
        (read,) = read
    assert read == "[" * 50 + "1" + "]" * 50
