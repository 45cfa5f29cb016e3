"""A schema in Spark's DDL becomes Arrow types, and a fault in it is pointed at."""

from __future__ import annotations

import pyarrow as pa
import pytest

from epochgate.spark.files.ddl import SchemaUnreadable, parse_schema


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("TINYINT", pa.int8()),
        ("smallint", pa.int16()),
        ("Int", pa.int32()),
        ("BIGINT", pa.int64()),
        ("long", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("STRING", pa.string()),
        ("VARCHAR(20)", pa.string()),
        ("BINARY", pa.binary()),
        ("BOOLEAN", pa.bool_()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", pa.timestamp("us", tz="UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("DECIMAL(12)", pa.decimal128(12, 0)),
        ("DECIMAL( 12 , 4 )", pa.decimal128(12, 4)),
        ("ARRAY<STRING>", pa.list_(pa.string())),
        ("MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int64())),
        ("ARRAY<ARRAY<INT>>", pa.list_(pa.list_(pa.int32()))),
        ("STRUCT<a: INT, `b c` STRING>", pa.struct([("a", pa.int32()), ("b c", pa.string())])),
    ],
)
def test_a_type_of_spark_is_the_arrow_type_that_spark_reads_as_it(
    text: str, kind: pa.DataType
) -> None:
    assert parse_schema(f"x {text}, y {text} NOT NULL COMMENT 'what it is'") == pa.schema(
        [pa.field("x", kind), pa.field("y", kind, nullable=False)]
    )


def test_names_may_be_quoted_accented_or_behind_a_colon() -> None:
    schema = parse_schema("größe INT,\n `a``b` STRING,\n _c: DATE, 1st INT")
    assert schema.names == ["größe", "a`b", "_c", "1st"]


@pytest.mark.parametrize(
    ("text", "why", "at"),
    [
        ("", "the name of a column is expected", 0),
        ("id", "a type is missing; the types are ARRAY<T>, BIGINT", 2),
        ("id NUMBER", "'NUMBER' is no type; the types are", 3),
        ("id INT name STRING", "',' is expected, and found 'name'", 7),
        ("id INT NOT", "'NULL' is expected, and the text ends", 10),
        ("a INT, A STRING", "column 'A' comes twice", 7),
        ("a DECIMAL(39,2)", "must have 1 to 38 digits", 2),
        ("a DECIMAL(4,5)", "no more behind the point", 2),
        ("a DECIMAL(x)", "a number is expected", 10),
        ("a DECIMAL(1,2,3)", "3 numbers are too many", 15),
        ("a ARRAY INT", "'<' is expected, and found 'INT'", 8),
        ("a ARRAY<INT", "'>' is expected, and the text ends", 11),
        ("a INT; b INT", "';' is not expected here", 5),
    ],
)
def test_a_fault_is_pointed_at_with_what_is_expected(text: str, why: str, at: int) -> None:
    with pytest.raises(SchemaUnreadable) as caught:
        parse_schema(text)
    told = str(caught.value)
    assert why in told
    assert f"at character {at + 1}\n  {text}\n  {' ' * at}^\n" in told
