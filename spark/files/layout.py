"""Inferences from a file's name and its first bytes: format, header, column names and types.

Decides: formats by extension; column types of CSV and JSON lines, inferred from a bounded sample,
of CSV by `round_trip`; a column without a value in the sample becomes a string column.
Leaves to others: which files there are (`enumeration`) and reading them to the end (`reader`).
Runs on the driver, and for the header in tasks.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from epochgate.spark.files.compression import REFUSED, Compression, compression_of
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.json_lines import infer_json
from epochgate.spark.files.parsing import RecordParser, no_value_of, parse_csv, without
from epochgate.spark.files.quoting import Quoting, RecordMalformed
from epochgate.spark.files.records import (
    BYTE_ORDER_MARK,
    RECORD_BYTES_MAX,
    LineEnds,
    RecordEnds,
    RecordTooLong,
    csv_record_ends,
)
from epochgate.spark.files.rejected import ValueInvalid, raw_text
from epochgate.spark.files.round_trip import infer
from epochgate.spark.files.split import OF_TEXTS, TYPED, Format, SourceLayout
from epochgate.spark.files.text import NotText, as_utf8, explain

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".xml": "xml",
    ".xlsx": "excel",
    ".xlsm": "excel",
}

_OF_SPREADSHEETS = re.compile(r'"?sep=.{0,2}"?\s*', re.IGNORECASE)

_BEGIN_BYTES = 4
BAD_SAMPLES_MAX = 100
"""How many records at the beginning of a file may be bad until none is looked for that is not."""

UNFINISHED_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", "._COPYING_", ".writing")
"""Endings that programs give to files they will rename when complete; such files do not count."""


def format_of(path: str, given: Format | None) -> tuple[Format | None, Compression]:
    """A file's format, none if the extension does not tell; and its compression.

    >>> format_of("a.csv.gz", None), format_of("a.txt", None), format_of("a.txt", "csv")
    (('csv', 'gzip'), (None, 'none'), ('csv', 'none'))
    """
    if given == "binary":  # as it is, whatever is in it
        return given, "none"
    stem, compression = compression_of(path)
    if path.lower().endswith(REFUSED):
        return None, "none"
    found = given or _FORMATS.get(os.path.splitext(stem.lower())[1])
    if found in TYPED:
        return (found, "none") if compression == "none" else (None, "none")
    return found, compression


class Header(NamedTuple):
    """The first record of a CSV file: its fields, the offset after it, and its text."""

    names: tuple[str, ...]
    end: int
    text: str


def require_bytes_of_ascii(file: BinaryIO) -> None:
    """Refuse text of two or four bytes a letter, which could be read as one of single bytes.

    Raises ValueError.
    """
    file.seek(0)
    begin = file.read(_BEGIN_BYTES)
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        kind = "UTF-32" if begin.startswith(codecs.BOM_UTF32_LE) else "UTF-16"
        told = f"it begins with the byte order mark of {kind} ({begin[:2].hex(' ').upper()})"
    elif begin and begin.count(0) >= len(begin) / 2:
        kind, told = "UTF-16", "every other byte at its beginning is 0, as in UTF-16"
    else:
        return
    raise ValueError(
        f"{told}; convert it to UTF-8: iconv -f {kind} -t UTF-8, or save it as CSV UTF-8"
    )


def data_start(file: BinaryIO, file_format: Format, dialect: Dialect, encoding: str) -> int:
    """Offset of the first data record of a CSV or JSON lines file."""
    if file_format == "csv" and dialect.header:
        return read_header(file, dialect, encoding).end
    file.seek(0)
    return len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0


def read_header(file: BinaryIO, dialect: Dialect, encoding: str) -> Header:
    """The column names of a CSV file; `ValueError` if they are unusable."""
    header = read_first_record(file, dialect, encoding)
    names = header.names
    if not names or len(set(names)) != len(names):
        found = f"found {list(names)}" if names else "and the first line is empty"
        raise ValueError(
            f"the header needs distinct column names, {found}; files without a header are read "
            "with --no-header (header=False in Python)"
        )
    return header


def read_first_record(file: BinaryIO, dialect: Dialect, encoding: str) -> Header:
    """The first record of a CSV file; `ValueError` if there is no end of it."""
    file.seek(0)
    ends = csv_record_ends(dialect)
    data = file.read(len(BYTE_ORDER_MARK))
    start = len(data) if data == BYTE_ORDER_MARK else 0
    data = data[start:]
    while not (end := ends.first(data, 0)):
        block = file.read(1 << 16)
        data += block
        if not block:
            end = len(data)
            break
        if len(data) > RECORD_BYTES_MAX:
            raise RecordTooLong(f"the header does not end within {len(data)} bytes")
    text = as_utf8(data[:end], encoding, start).decode()
    if _OF_SPREADSHEETS.fullmatch(text):
        raise ValueError(
            f"the first line, {text.strip()!r}, tells spreadsheets the delimiter. Remove it"
        )
    rfc, quote = text, dialect.quote
    try:
        plain, quote = Quoting(dialect).as_rfc(text.encode())
        rfc = plain.decode()
    except RecordMalformed as error:
        # Without a header it is a row, which may be rejected.
        if dialect.header and b"\r" not in data[:end].rstrip(b"\r\n"):
            raise ValueError(f"in the header, {error}") from error
    reader = csv.reader(
        io.StringIO(rfc, newline=""),
        delimiter=dialect.delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )
    names = tuple(next(reader, ()))
    if next(reader, None) is not None:
        # Taken for one line, the whole file would be a header without rows.
        raise ValueError("lines end with CR alone; convert them to LF or CR LF")
    return Header(names, start + end, text)


class Others(NamedTuple):
    """The beginnings of other files: JSON lines, and the texts of columns of CSV."""

    json_lines: bytes = b""
    csv_texts: Mapping[str, Sequence[pa.Array]] = MappingProxyType({})


class FirstRecordBad(ValueError):
    """The first record of a file does not parse: its offset, the column if it is one's, why."""


def infer_schema(
    file: BinaryIO,
    file_format: Format,
    dialect: Dialect,
    encoding: str,
    sample_bytes_max: int,
    leaves_bad_rows: bool = False,
    others: Callable[[Sequence[str]], Others] = lambda names: Others(),
) -> pa.Schema | None:
    """Column names and types of a CSV or JSON lines file; none if it has no row. A column without
    a value has no type yet, see `fill_types`.

    others: what other files of its source have, for columns of these names. leaves_bad_rows:
    whether records that do not parse are left out of the sample. Raises FirstRecordBad unless they
    are, and `ValueError` (of which pyarrow's `ArrowInvalid` and
    `NotText` are two) if not one can be parsed.
    """
    start = data_start(file, file_format, dialect, encoding)
    is_csv = file_format == "csv"
    names = read_header(file, dialect, encoding).names if is_csv and dialect.header else ()
    file.seek(start)
    ends = csv_record_ends(dialect) if is_csv else LineEnds()
    sample = _whole_records(file, ends, sample_bytes_max)
    whole, left_out = sample, 0
    while True:
        try:
            text = as_utf8(sample, encoding, start)
            schema = _schema_of(text, file_format, names, dialect, leaves_bad_rows, others)
            break
        except (pa.ArrowInvalid, NotText, RecordMalformed, ValueInvalid) as error:
            # Reading will tell where exactly the file is bad; the part before has types as well.
            shorter = ends.last(sample[: len(sample) // 2]) or ends.first(sample, 0)
            if not isinstance(error, ValueInvalid) and shorter not in (0, len(sample)):
                sample = sample[:shorter]
                continue
            if not leaves_bad_rows:
                if isinstance(error, NotText):
                    raise
                parser = RecordParser(SourceLayout(file_format, pa.schema([]), dialect), names)
                why = parser.explain(error, raw_text(sample, encoding))
                raise FirstRecordBad(start, *why) from error
            left_out += 1
            whole = whole[len(sample) :]
            if names and not whole:
                # Each row is to be rejected, and the columns are known.
                return pa.schema([pa.field(name, pa.null()) for name in names])
            if not whole or left_out > BAD_SAMPLES_MAX:
                raise
            start, sample = start + len(sample), whole
    return schema


def _whole_records(file: BinaryIO, ends: RecordEnds, sample_bytes_max: int) -> bytes:
    sample = file.read(sample_bytes_max)
    while len(sample) < sample_bytes_max:
        # Behind a short read comes the end, or a fault, which blank lines must not hide.
        block = b"" if sample.strip() else file.read(sample_bytes_max - len(sample))
        if not block:
            return sample
        sample += block
    while not (cut := ends.last(sample)):
        block = file.read(sample_bytes_max)
        sample += block
        if not block or len(sample) > RECORD_BYTES_MAX:
            raise RecordTooLong(f"no record ends within {len(sample)} bytes")
    return sample[:cut]


def _schema_of(
    sample: bytes,
    file_format: Format,
    names: Sequence[str],
    dialect: Dialect,
    leaves_bad_rows: bool,
    others: Callable[[Sequence[str]], Others],
) -> pa.Schema | None:
    if not sample.strip():
        return None
    if file_format == "csv":
        return _schema_of_csv(sample, names, dialect, leaves_bad_rows, others)
    of_texts = file_format in OF_TEXTS
    own = infer_json(sample, of_texts)
    more = others(()).json_lines
    if own is None or not more:
        return own
    return infer_json(b"\n".join((sample, more)), of_texts)


def _schema_of_csv(
    sample: bytes,
    names: Sequence[str],
    dialect: Dialect,
    leaves_bad_rows: bool,
    others: Callable[[Sequence[str]], Others],
) -> pa.Schema | None:
    leave = (lambda _: "skip") if leaves_bad_rows else None
    # Without a header, the first row tells how many columns there are.
    columns = names or parse_csv(sample, names, dialect, None, None, leave).column_names
    as_text = pa.schema([pa.field(name, pa.string()) for name in columns])
    table = parse_csv(sample, columns, dialect, as_text, None, leave)
    # Of rows that are all bad the columns are known as well, and each row is to be rejected.
    if not table.num_rows and not names:
        return None
    nothing, more = no_value_of(dialect), others(columns).csv_texts
    kinds = []
    for name, texts in zip(columns, table.columns, strict=True):
        own = without(texts, nothing)
        kinds.append(infer(pa.chunked_array([*own.chunks, *more.get(name, ())], pa.string())))
    return pa.schema(list(zip(columns, kinds, strict=True)))


def cause_of(error: BaseException, reopened: Callable[[], BinaryIO]) -> str:
    """Tell why a file cannot be read, for a person; where it is no text, with the line.

    >>> cause_of(OSError("it is locked."), io.BytesIO)
    'OSError: it is locked'
    """
    if isinstance(error, NotText):
        with reopened() as file:
            return explain(error, file)
    if isinstance(error, ValueInvalid):
        return error.reason
    return f"{type(error).__name__}: {error}".rstrip(".")


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata and with every column nullable: what files must agree on."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def has_same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    """Return whether names and types agree; the order may differ, because columns are read by name.

    Types are compared by what they hold: names inside a map or a list, which writers choose and
    which Arrow's own serialized form does not keep, do not count, and a type's hash counts them.

    >>> named = pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64()))
    >>> has_same_columns(pa.schema([("m", named)]), pa.schema([("m", pa.map_("string", "int64"))]))
    True
    """
    ones, others = (sorted(schema, key=lambda field: str(field.name)) for schema in (one, other))
    return [(field.name, field.type) for field in ones] == [
        (field.name, field.type) for field in others
    ]


def is_readable_from(file_format: Format, kind: pa.DataType) -> bool:
    """Return whether files of a format of text can hold values of the type."""
    if file_format in ("csv", "excel"):
        return not pa.types.is_nested(kind)
    if pa.types.is_map(kind):
        return False
    children = [kind.field(index) for index in range(kind.num_fields)]
    return all(is_readable_from(file_format, child.type) for child in children)


def describe(schema: pa.Schema) -> str:
    """A schema on one line.

    >>> describe(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    'a: BIGINT, b: STRING'
    """
    return ", ".join(f"{field.name}: {spark_type(field.type)}" for field in schema)


def declared(schema: pa.Schema) -> str:
    """The columns by name, with their types and whether they may lack values.

    >>> declared(pa.schema([pa.field("b", pa.string()), pa.field("a", pa.int64(), nullable=False)]))
    'a: BIGINT NOT NULL, b: STRING'
    """
    told = {
        one.name: f"{spark_type(one.type)}{'' if one.nullable else ' NOT NULL'}" for one in schema
    }
    return ", ".join(f"{name}: {told[name]}" for name in sorted(told))


def in_order(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns in this order, and those that no value was found of."""
    known = {one.name: one.type for one in schema}
    return pa.schema([(name, known.get(name, pa.null())) for name in names])


def fill_types(schema: pa.Schema) -> pa.Schema:
    """The schema with columns of text for those of which no value is known."""
    return pa.schema([pa.field(field.name, _filled(field.type)) for field in schema])


def _filled(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_null(data_type):
        return pa.string()
    if pa.types.is_struct(data_type):
        fields = [data_type.field(index) for index in range(data_type.num_fields)]
        return pa.struct([pa.field(field.name, _filled(field.type)) for field in fields])
    if pa.types.is_list(data_type):
        return pa.list_(_filled(data_type.value_type))
    return data_type
