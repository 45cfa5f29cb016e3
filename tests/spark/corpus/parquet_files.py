"""The Parquet files of the corpus, as a table: what each holds, how it is written or damaged, and
the one right answer. They are written when they are asked for, by pyarrow, the same each time.

The answer is that the values of the table arrive, or a part of the reason of the refusal.
"""

from __future__ import annotations

import datetime as dt
import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NS, US, MS, S = (pa.timestamp(unit) for unit in ("ns", "us", "ms", "s"))
FAR = (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(2024, 1, 2, 3, 4))
IN_NANOSECONDS = (-(2**63) + 1, -1, 0, 1704164645123456789, 2**63 - 1)
WORDS = [f"word {number % 3}" for number in range(40)]
MANY = pa.table({"n": list(range(40)), "word": WORDS})
NOT_UTF_8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(struct.pack("<2i", 0, 3)), pa.py_buffer(b"a\xffb")]
)
Damage = Callable[[bytes], bytes]


def of(kind: pa.DataType, *values: Any) -> pa.Table:
    """A table of one column, `x`."""
    return pa.table({"x": pa.array(values, kind)})


def named(*names: str) -> pa.Table:
    """A row with a column of each name, numbered from 1."""
    columns = [pa.array([number]) for number in range(1, len(names) + 1)]
    return pa.Table.from_arrays(columns, names=list(names))


def nines(precision: int, scale: int) -> tuple[Decimal, Decimal, Decimal]:
    """The largest and the smallest number of the type, and the least above zero."""
    return tuple(
        Decimal((sign, digits, -scale))
        for sign, digits in ((0, (9,) * precision), (1, (9,) * precision), (0, (1,)))
    )  # type: ignore[return-value]


NO_TYPE = "has no type for column"


@dataclass(frozen=True)
class Written:
    """One file: the table, how it is written and damaged; a part of the reason if it is refused.

    `read_as`: the types with which it is read, if they are others. `name`: that of the file, if it
    does not follow from the key. `refused_by_target`: a part of the reason why the rows are refused
    when they are to be written as Parquet.
    """

    table: pa.Table
    refused: str = ""
    written: Mapping[str, Any] = field(default_factory=dict)
    damage: Damage = bytes
    read_as: pa.Schema | None = None
    name: str = ""
    refused_by_target: str = ""

    def content(self) -> bytes:
        """The bytes of the file."""
        sink = io.BytesIO()
        pq.write_table(self.table, sink, **self.written)
        return self.damage(sink.getvalue())


def write(key: str, folder: Path) -> Path:
    """Write a file of the table into the folder."""
    one = PARQUET[key]
    path = folder / (one.name or f"{key}.parquet")
    path.write_bytes(one.content())
    return path


def cut(count: int) -> Damage:
    """The file without its last bytes."""
    return lambda data: data[:-count]


def only(data: bytes) -> Damage:
    """Other bytes instead."""
    return lambda _: data


def with_footer_length(length: int) -> Damage:
    """A footer that claims to be of this length."""
    return lambda data: data[:-8] + struct.pack("<I", length) + data[-4:]


def with_footer(footer: bytes) -> Damage:
    """Another footer, of its right length."""
    return lambda data: data[:4] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def with_other(before: bytes, after: bytes) -> Damage:
    """One run of bytes replaced, where it comes first."""

    def damage(data: bytes) -> bytes:
        assert before in data
        return data.replace(before, after, 1)

    return damage


def compressed(codec: str, **more: Any) -> Written:
    """The many rows under a codec."""
    return Written(MANY, written={"compression": codec, **more})


def encoded(encoding: str, column: str) -> Written:
    """The many rows, one column of which has an encoding of its own."""
    by = {"use_dictionary": False, "column_encoding": {column: encoding}}
    return Written(MANY.select([column]), written=by)


NESTED = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]))
DEEP = pa.struct([("one", pa.struct([("two", pa.struct([("three", pa.int64())]))]))])
TEXT_MAP, LIST_OF_MAPS = pa.map_("string", "int64"), pa.list_(pa.map_("string", "int64"))
CRC = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
FULL = of(pa.int64(), *range(40))
A_VALUE = struct.pack("<q", 20)
"""The bytes of one of the values of `FULL`."""
UUID = [bytes(range(16)), None]

PARQUET: dict[str, Written] = {
    # Names
    "name_twice": Written(named("id", "v", "v"), "columns 2 and 3 have the same name, 'v'"),
    "name_empty": Written(named("id", ""), "column 2 has no name: ''"),
    "name_of_a_space": Written(named("id", " "), "column 2 has no name: ' '"),
    "names_by_capitals": Written(named("id", "ID"), refused_by_target="'id' and 'ID'"),
    "name_of_ours": Written(named("id", "checkpoint"), refused_by_target="checkpoint"),
    "names_of_sql": Written(named("select", "from", "order", "null", "1", "true")),
    "names_of_hosts": Written(named("_metadata", "__index_level_0__", "_c0", "rowid")),
    "names_odd": Written(named("a.b", "a`b", 'a"b', "a,b", "a;b", "{a}", "a=b", "a b", "%41")),
    "names_of_letters": Written(named("größe", "e\u0301", "é", "名前", "😀", "a\u200db")),
    "names_of_lines": Written(named("a\nb", "a\tb", "\ufeffa")),
    "fields_twice": Written(
        pa.table({"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["f", "f"])}),
        "column 's' has two fields of the name 'f'",
    ),
    # Time
    "int96_of_any_year": Written(of(US, *FAR), written={"use_deprecated_int96_timestamps": True}),
    "int96_nanoseconds": Written(
        of(NS, 0, 1704164645123456789, None),
        "'x'",
        written={"use_deprecated_int96_timestamps": True},
    ),
    "int96_before_1970": Written(
        of(US, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1582, 10, 4)),
        written={"use_deprecated_int96_timestamps": True},
    ),
    "timestamps_of_seconds": Written(of(S, *FAR), read_as=pa.schema([("x", MS)])),
    "timestamps_of_milliseconds": Written(of(MS, *FAR)),
    "timestamps_of_microseconds": Written(of(US, *FAR)),
    "timestamps_of_nanoseconds": Written(
        of(NS, *IN_NANOSECONDS), refused_by_target="would lose data"
    ),
    "moments_of_milliseconds": Written(of(pa.timestamp("ms", "UTC"), *FAR)),
    "moments_of_microseconds": Written(of(pa.timestamp("us", "UTC"), *FAR)),
    "moments_of_nanoseconds": Written(
        of(pa.timestamp("ns", "UTC"), *IN_NANOSECONDS), refused_by_target="would lose data"
    ),
    "moments_of_a_zone": Written(
        of(pa.timestamp("us", "Europe/Berlin"), 1711846799000000, 1711846800000000, None)
    ),
    "moments_of_an_offset": Written(of(pa.timestamp("us", "+05:30"), 0, 1704164645123456)),
    "clocks_of_milliseconds": Written(
        of(pa.time32("ms"), 0, 86_399_999, None), refused_by_target=NO_TYPE
    ),
    "clocks_of_microseconds": Written(
        of(pa.time64("us"), 0, 86_399_999_999, None), refused_by_target=NO_TYPE
    ),
    "clocks_of_nanoseconds": Written(
        of(pa.time64("ns"), 0, 86_399_999_999_999, None), refused_by_target=NO_TYPE
    ),
    "days": Written(of(pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 9))),
    "days_after_9999": Written(of(pa.date32(), 2_932_897, 3_000_000)),
    "durations": Written(of(pa.duration("us"), 0, -1, 10**12), refused_by_target=NO_TYPE),
    # Numbers
    "decimals_of_32_bits": Written(
        of(pa.decimal128(9, 2), *nines(9, 2)), written={"store_decimal_as_integer": True}
    ),
    "decimals_of_64_bits": Written(
        of(pa.decimal128(18, 0), *nines(18, 0)), written={"store_decimal_as_integer": True}
    ),
    "decimals_of_9": Written(of(pa.decimal128(9, 9), *nines(9, 9))),
    "decimals_of_38": Written(of(pa.decimal128(38, 10), *nines(38, 10))),
    "decimals_all_behind": Written(of(pa.decimal128(38, 38), *nines(38, 38))),
    "decimals_of_76": Written(of(pa.decimal256(76, 5), *nines(76, 5)), refused_by_target=NO_TYPE),
    "integers_signed": Written(
        pa.table(
            {
                f"i{n}": pa.array([-(2 ** (n - 1)), 2 ** (n - 1) - 1], f"int{n}")
                for n in (8, 16, 32, 64)
            }
        )
    ),
    "integers_unsigned": Written(
        pa.table({f"u{n}": pa.array([0, 2**n - 1], f"uint{n}") for n in (8, 16, 32, 64)})
    ),
    "floats_of_16_bits": Written(of(pa.float16(), 1.5, -0.0, 65504.0, float("inf"))),
    "floats_of_32_bits": Written(of(pa.float32(), 0.1, 1e-45, -0.0, float("nan"))),
    "floats_of_64_bits": Written(
        of(pa.float64(), 0.1, 5e-324, -0.0, float("nan"), float("inf"), float("-inf"), 1e300)
    ),
    "truth": Written(of(pa.bool_(), True, False, None)),
    # Texts and bytes
    "texts_of_a_dictionary": Written(
        of(pa.dictionary(pa.int32(), pa.string()), "a", "b", None, "a", "")
    ),
    "texts_large": Written(of(pa.large_string(), "a", None, "", "x" * 5000)),
    "texts_viewed": Written(of(pa.string_view(), "a", None, "", "longer than twelve letters")),
    "texts_with_nul": Written(of(pa.string(), "a\0b", "\0", "\ufffe", "\U0010ffff", "a\r\nb")),
    "texts_not_utf_8": Written(pa.table({"x": NOT_UTF_8}), "'x'"),
    "bytes": Written(of(pa.binary(), b"", b"\xff\0", None)),
    "bytes_large": Written(of(pa.large_binary(), b"", b"\xff\0", None)),
    "bytes_viewed": Written(of(pa.binary_view(), b"", b"\xff\0", None, b"longer than twelve")),
    "bytes_of_one_width": Written(of(pa.binary(3), b"abc", None, b"\0\0\0")),
    "uuids": Written(
        pa.table({"x": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(UUID, pa.binary(16)))})
    ),
    "json": Written(
        pa.table({"x": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 007}', None]))})
    ),
    # Nested
    "structs_in_lists": Written(
        of(
            NESTED,
            [{"a": 1, "b": ["x", None]}, {"a": None, "b": []}, None],
            [],
            None,
            [{"a": 2, "b": None}],
        )
    ),
    "structs_in_structs": Written(
        of(
            DEEP,
            {"one": {"two": {"three": 1}}},
            {"one": {"two": {"three": None}}},
            {"one": {"two": None}},
            {"one": None},
            None,
        )
    ),
    "lists_in_lists": Written(
        of(pa.list_(pa.list_(pa.int64())), [[1], [], None], [], None, [[None, 2]])
    ),
    "lists_large": Written(of(pa.large_list(pa.int64()), [1, None], [], None)),
    "lists_of_one_length": Written(of(pa.list_(pa.int64(), 2), [1, 2], [None, 3])),
    "lists_viewed": Written(of(pa.list_view(pa.int64()), [1, None], []), refused_by_target=NO_TYPE),
    "maps": Written(of(TEXT_MAP, [("a", 1), ("b", None)], [], None, [("", 0)])),
    "maps_with_a_key_twice": Written(of(TEXT_MAP, [("a", 1), ("a", 2)])),
    "maps_in_lists": Written(of(LIST_OF_MAPS, [[("a", 1)], [], None], [], None)),
    "maps_of_structs": Written(
        of(pa.map_("int64", pa.struct([("v", pa.list_(pa.string()))])), [(1, {"v": ["x"]})], [])
    ),
    # Rows and columns
    "nulls_alone": Written(of(pa.int64(), None, None)),
    "nulls_without_a_type": Written(pa.table({"id": [1, 2], "x": pa.nulls(2)})),
    "no_rows": Written(of(pa.int64())),
    "groups_of_one_row": Written(MANY, written={"row_group_size": 1}),
    "no_columns": Written(pa.table({})),
    "not_null": Written(
        pa.table({"x": [1, 2]}, pa.schema([pa.field("x", pa.int64(), nullable=False)])),
        read_as=pa.schema([("x", pa.int64())]),
    ),
    "groups_of_rows": Written(MANY, written={"row_group_size": 7}),
    "statistics_none": Written(MANY, written={"write_statistics": False}),
    "schema_of_arrow_none": Written(MANY, written={"store_schema": False}),
    # Pages
    "compressed_none": compressed("none"),
    "compressed_snappy": compressed("snappy"),
    "compressed_gzip": compressed("gzip"),
    "compressed_zstd": compressed("zstd"),
    "compressed_lz4": compressed("lz4"),
    "compressed_brotli": compressed("brotli"),
    "pages_of_version_2": compressed("snappy", data_page_version="2.0"),
    "pages_small": compressed("none", data_page_size=8, use_dictionary=False),
    "pages_with_an_index": compressed("zstd", write_page_index=True),
    "encoded_delta_binary": encoded("DELTA_BINARY_PACKED", "n"),
    "encoded_byte_streams": encoded("BYTE_STREAM_SPLIT", "n"),
    "encoded_delta_texts": encoded("DELTA_BYTE_ARRAY", "word"),
    "encoded_delta_lengths": encoded("DELTA_LENGTH_BYTE_ARRAY", "word"),
    "checksums_right": Written(FULL, written=CRC),
    "checksums_wrong": Written(FULL, "checksum", CRC, with_other(A_VALUE, struct.pack("<q", 21))),
    # Ends, and what is no Parquet
    "cut_in_the_footer": Written(FULL, "Parquet", damage=cut(10)),
    "cut_in_the_pages": Written(FULL, "Parquet", damage=lambda data: data[: len(data) // 2]),
    "cut_last_byte": Written(FULL, "Parquet", damage=cut(1)),
    "footer_of_2_gb": Written(FULL, "footer", damage=with_footer_length(2**31 - 1)),
    "footer_of_4_gb": Written(FULL, "footer", damage=with_footer_length(2**32 - 1)),
    "footer_longer_than_the_file": Written(FULL, "footer", damage=with_footer_length(10**6)),
    "footer_of_no_byte": Written(FULL, "footer", damage=with_footer_length(0)),
    "footer_of_noise": Written(FULL, "thrift", damage=with_footer(bytes(range(256)))),
    "footer_of_a_huge_list": Written(
        FULL, "thrift", damage=with_footer(b"\x15\x04\x19\xfc" + b"\xff\xff\xff\xff\x07")
    ),
    "footer_of_a_deep_struct": Written(FULL, "thrift", damage=with_footer(b"\x9c" * 100_000)),
    "footer_encrypted": Written(FULL, "ncrypt", damage=lambda data: data[:-4] + b"PARE"),
    "magic_alone": Written(FULL, "Parquet", damage=only(b"PAR1")),
    "magic_twice": Written(FULL, "Parquet", damage=only(b"PAR1PAR1")),
    "no_byte": Written(FULL, "holds no data file", damage=only(b"")),
    "one_byte": Written(FULL, "Parquet", damage=only(b"P")),
    "text_in_parquet": Written(FULL, "Parquet", damage=only(b"id,name\n1,ada\n")),
    "other_extension": Written(FULL, "cannot tell the format", name="other_extension.parq"),
    "extension_in_capitals": Written(FULL, name="EXTENSION.PARQUET"),
}
