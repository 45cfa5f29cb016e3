"""A text becomes a value only if the value is printed as the text again."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from epochgate.spark.files.round_trip import (
    CLOCK,
    DAY,
    DOUBLE,
    KINDS,
    LARGE,
    MOMENT,
    TRUTH,
    WHOLE,
    infer,
    typed,
    why_not,
)

TEXT = pa.string()


def column(*texts: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.string())])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", "0"], WHOLE),
        (["9223372036854775807", "-9223372036854775808"], WHOLE),
        (["1", None], WHOLE),
        ([None, None], pa.null()),
        (["01234"], TEXT),
        (["-0"], TEXT),
        (["+1"], TEXT),
        (["0x1F"], TEXT),
        ([" 1"], TEXT),
        (["1 "], TEXT),
        (["1", ""], TEXT),
        (["1_000"], TEXT),
        (["1,000"], TEXT),
        (["9223372036854775808", "1"], LARGE),
        (["18446744073709551615"], LARGE),
        (["-" + "9" * 38], LARGE),
        (["9" * 39], TEXT),
        (["00000000000000000001"], TEXT),
        (["0.5", "1.25", "-3.75"], DOUBLE),
        (["0.5", "10"], DOUBLE),
        (["0.5", "10.0"], DOUBLE),
        (["-0.0", "0.0"], DOUBLE),
        (["0.1234567890123456"], DOUBLE),
        (["0.12345678901234567"], TEXT),
        (["0.00001"], DOUBLE),
        (["0.0000001"], DOUBLE),
        (["123456789012345.6"], DOUBLE),
        (["0.5", "1000000000000000000000"], DOUBLE),
        (["0.5", "9007199254740992"], DOUBLE),
        (["0.5", "9007199254740993"], TEXT),
        (["1.0", "1", "1.1"], TEXT),
        (["1.10", "1.2"], TEXT),
        (["1.00"], TEXT),
        (["1."], TEXT),
        ([".5"], TEXT),
        (["-.5"], TEXT),
        (["00.5"], TEXT),
        (["-00.5"], TEXT),
        (["1e5"], TEXT),
        (["1.5E3"], TEXT),
        (["+1.5"], TEXT),
        (["NaN"], TEXT),
        (["inf"], TEXT),
        (["1.5", "nan"], TEXT),
        (["1e400"], TEXT),
        (["true", "false"], TRUTH),
        (["True"], TEXT),
        (["TRUE"], TEXT),
        (["true", "1"], TEXT),
        (["2024-02-29", "0001-01-01", "9999-12-31"], DAY),
        (["2023-02-29"], TEXT),
        (["2024-1-2"], TEXT),
        (["02.01.2024"], TEXT),
        (["0000-01-01"], TEXT),
        (["2024-01-02 03:04:05"], CLOCK),
        (["2024-01-02T03:04:05", "2024-01-02 03:04:05.123456"], CLOCK),
        (["2024-01-02 03:04:05.1", "2024-01-02 03:04:05"], CLOCK),
        (["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"], CLOCK),
        (["2024-01-02 03:04:05.1234567"], TEXT),
        (["2024-01-02 03:04:05.123456789"], TEXT),
        (["2024-01-02 03:04:05."], TEXT),
        (["2024-01-02 03:04"], TEXT),
        (["2024-01-02 03"], TEXT),
        (["2024-01-02 24:00:00"], TEXT),
        (["2024-01-02 03:04:60"], TEXT),
        (["2024-01-02 03:04:05", "2024-01-02"], TEXT),
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+00:00"], MOMENT),
        (["2024-01-02T03:04:05+02:00"], TEXT),
        (["2024-01-02T03:04:05-00:00"], TEXT),
        (["2024-01-02T03:04Z"], TEXT),
        (["2024-01-02T03:04+00:00"], TEXT),
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"], TEXT),
        (["03:04:05"], TEXT),
        (["P1D"], TEXT),
        ([""], TEXT),
        (["1", "x"], TEXT),
        (["true", "x", None], TEXT),
    ],
)
def test_the_type_of_a_column_prints_each_text_again(
    texts: list[str | None], kind: pa.DataType
) -> None:
    assert infer(column(*texts)) == kind
    assert infer(column(*reversed(texts))) == kind


def spelled(value: object, style: str = "") -> str:
    """A value as the one text of which it is the value, in a style of times."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(style[0]) + style[1:]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


MOMENTS = st.datetimes(timezones=st.just(datetime.UTC))
VALUES: dict[pa.DataType, st.SearchStrategy[object]] = {
    TRUTH: st.booleans(),
    WHOLE: st.integers(-(2**63), 2**63 - 1),
    LARGE: st.integers(-(10**38) + 1, 10**38 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    DAY: st.dates(),
    CLOCK: st.datetimes(),
    MOMENT: MOMENTS,
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
def test_what_a_value_prints_is_read_as_the_value(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=1, max_size=5))
    styles = [" Z", "TZ", "T+00:00"] if kind == MOMENT else ["T", " "]
    texts = [spelled(value, data.draw(st.sampled_from(styles))) for value in values]
    read = typed(column(*texts, None), kind)
    assert read is not None
    assert list(map(repr, read.to_pylist())) == [
        *map(repr, pa.array(values, kind).to_pylist()),
        "None",
    ]


ODD = st.from_regex(
    re.compile(r"[-+]?[01]{0,3}\.?[019]{0,18}([eE]-?[0-9])?|0x[01]|[tTfF]?rue|inf|nan|[ ]?1"),
    fullmatch=True,
) | st.from_regex(
    re.compile(
        r"202[34]-0?2-(29|2)([T ][01]?1(:?0?6)?(:?60?)?(\.[05]{0,8})?(Z|[+-]0[02]:?0?0?)?)?"
    ),
    fullmatch=True,
)


@given(texts=st.lists(ODD, min_size=1, max_size=3))
def test_a_text_that_is_read_is_what_the_value_prints(texts: list[str]) -> None:
    for kind in KINDS:
        read = typed(column(*texts), kind)
        if read is None:
            continue
        for text, value in zip(texts, read.to_pylist(), strict=True):
            style = text[10:11] + ("Z" if kind == MOMENT else "")
            printed = spelled(value, style)
            if kind in (CLOCK, MOMENT):
                text = text.replace("+00:00", "Z")
                zone = "Z" if kind == MOMENT else ""
                whole, _, fraction = text.removesuffix(zone).partition(".")
                assert len(fraction) <= 6
                again, _, digits = printed.removesuffix(zone).partition(".")
                assert (whole, fraction.rstrip("0")) == (again, digits.rstrip("0"))
            elif kind == DOUBLE:
                assert text.removesuffix(".0") == printed.removesuffix(".0")
            else:
                assert text == printed


def test_a_slice_and_several_chunks_are_read_alike() -> None:
    whole = pa.array(["x", "1.5", "2.5", "e"])
    texts = pa.chunked_array([whole.slice(1, 2), whole.slice(1, 1)])
    assert infer(texts) == DOUBLE
    read = typed(texts, DOUBLE)
    assert read is not None
    assert read.to_pylist() == [1.5, 2.5, 1.5]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("007", WHOLE, "'007' is no BIGINT: as that it would be '7'"),
        ("x", WHOLE, "'x' is no BIGINT"),
        ("1.50", DOUBLE, "'1.50' is no DOUBLE: as that it would be '1.5'"),
        ("TRUE", TRUTH, "'TRUE' is no BOOLEAN: as that it would be 'true'"),
        (
            "2024-07-01T12:00:00+02:00",
            MOMENT,
            "'2024-07-01T12:00:00+02:00' is no TIMESTAMP: as that it would be "
            "'2024-07-01 10:00:00Z'",
        ),
    ],
)
def test_a_text_that_is_not_read_is_told_with_what_would_become_of_it(
    text: str, kind: pa.DataType, told: str
) -> None:
    assert why_not(text, kind) == told


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("texts", [[], [None], [None, None]], ids=len)
def test_a_block_without_a_value_is_one_of_every_type(
    kind: pa.DataType, texts: list[str | None]
) -> None:
    values = typed(column(*texts), kind)
    assert values is not None
    assert values.to_pylist() == texts
