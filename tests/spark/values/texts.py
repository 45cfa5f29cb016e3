"""CSV, JSON lines and plain lines, written by hand in the ways in which programs write them."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import json
import random
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from tests.spark.values.inferred import JSON_NUMBER

NULL = "\\N"
"""An unquoted field of a CSV file that is null."""
BYTE_ORDER_MARK = "\ufeff"
ODD = 0.05
"""The share of files that are as they should not be, and are refused if they are not read right."""
JSON_SCALAR = re.compile(rf"{JSON_NUMBER.pattern}|true|false")
PACKINGS = (".gz", ".bz2", ".zst", ".lz4", ".zip")
OFFSETS = ("+02:00", "-05:00", "+05:30", "-11:00")


@dataclass(frozen=True)
class Style:
    """The style of all files of a source; `options` are those to read them with."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    has_header: bool = True
    encoding: str = "utf-8"
    stores_schema: bool = True
    has_int96: bool = False

    def options(self, is_csv: bool) -> dict[str, Any]:
        """As fields of `IngestOptions`."""
        if not is_csv:
            return {"encoding": self.encoding}
        return {
            "delimiter": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "header": self.has_header,
            "encoding": self.encoding,
            "null": (NULL,),
        }


def style_of(table: pa.Table, chance: random.Random, needs_header: bool) -> Style:
    """A way to write the table."""
    quote = chance.choice(['"', '"', '"', "'", ""])
    # Without quotes, only escapes tell what is no delimiter.
    escape = "\\" if not quote or chance.random() < 0.3 else ""
    encoding = chance.choice(["utf-8", "utf-8", "latin-1", "cp1252"])
    try:
        values = chain(table.column_names, *(column.to_pylist() for column in table.columns))
        "".join(map(str, values)).encode(encoding)
    except UnicodeEncodeError:
        encoding = "utf-8"
    return Style(
        chance.choice([",", ";", "\t", "|"]),
        quote,
        escape,
        needs_header or chance.random() < 0.8,
        encoding,
    )


def write_csv(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    """One file. The quotes of each field are chance, where they may be there or not."""
    all_quoted, end = chance.choice([0.0, 0.3, 1.0]), chance.choice(["\n", "\r\n"])
    if chance.random() < ODD:
        end = "\r"

    def field(text: str | None) -> str:
        if text is None:
            return NULL
        if not style.quote:
            return "".join(f"\\{one}" if one in f"\\{style.delimiter}\r\n" else one for one in text)
        needs = any(one in text for one in f"{style.delimiter}\r\n")
        is_taken_for_else = text == NULL or text.startswith((style.quote, BYTE_ORDER_MARK))
        if needs or is_taken_for_else or chance.random() < all_quoted:
            return _quoted(text, style)
        return text

    lines = [[field(name) for name in table.column_names]] if style.has_header else []
    lines += [list(map(field, row)) for row in texts_of(table, chance)]
    if style.has_header and chance.random() < ODD:
        lines = [
            [name, *line] for name, line in zip(["", *map(str, range(99))], lines, strict=False)
        ]
    told = [style.delimiter.join(line) for line in lines]
    if chance.random() < ODD:
        told.insert(0, f"sep={style.delimiter}")
    return _written(stem.with_suffix(".csv"), told, end, chance, style)


def _quoted(text: str, style: Style) -> str:
    quote = style.quote
    if not style.escape:
        return quote + text.replace(quote, quote + quote) + quote
    return quote + text.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote


def write_jsonl(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    """One file."""
    lines, end = jsonl_lines(table, chance), chance.choice(["\n", "\r\n"])
    return _written(stem.with_suffix(".jsonl"), lines, end, chance, style)


def jsonl_lines(table: pa.Table, chance: random.Random) -> list[str]:
    """An object for each row; what is null is said so or is not there, the fields of a row have any
    order.
    """
    ascii_only = chance.random() < 0.5
    bare = chance.choice([0, 0.9, 1])
    between = chance.choice([", ", ",", " , "])
    lines = []
    for number, row in enumerate(texts_of(table, chance)):
        values = []
        for column, text in enumerate(row):
            name, kind = table.field(column).name, table.field(column).type
            if text is None and chance.random() < 0.5:
                continue
            told = "null"
            if text is not None and JSON_SCALAR.fullmatch(text) and chance.random() < bare:
                # To a column of text, a number is the text that stands there.
                told = text
            elif text is not None and not _is_bare(kind):
                told = json.dumps(text, ensure_ascii=ascii_only)
            elif text is not None and pa.types.is_nested(kind):
                told = json.dumps(table.column(column)[number].as_py(), ensure_ascii=ascii_only)
            elif text is not None:
                told = text
            values.append(f"{json.dumps(name, ensure_ascii=ascii_only)}: {told}")
        chance.shuffle(values)
        lines.append("{" + between.join(values) + "}")
    if chance.random() < ODD:
        lines.insert(chance.randrange(1, len(lines) + 1) if lines else 0, "null")
    return lines


def write_text(stem: Path, table: pa.Table, chance: random.Random, style: Style) -> Path:
    """The lines of the only column."""
    lines = table.column(0).to_pylist()
    return _written(stem.with_suffix(".txt"), lines, chance.choice(["\n", "\r\n"]), chance, style)


def _is_bare(kind: pa.DataType) -> bool:
    """Return whether JSON writes it without quotes."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(is_number or kind == pa.bool_() or pa.types.is_nested(kind))


def texts_of(table: pa.Table, chance: random.Random) -> Iterator[list[str | None]]:
    """Each row, as a person would write its values."""
    for number in range(table.num_rows):
        cells = [column[number] for column in table.columns]
        yield [text_of(one, chance) if one.is_valid else None for one in cells]


def text_of(scalar: pa.Scalar, chance: random.Random) -> str:
    """A value in digits and letters, all of them."""
    kind = scalar.type
    if pa.types.is_boolean(kind):
        return "true" if scalar.as_py() else "false"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _moment(scalar, chance)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return str(scalar.as_py().isoformat())
    return str(scalar.as_py()) if kind == pa.string() else _number(scalar.as_py())


def _moment(scalar: pa.Scalar, chance: random.Random) -> str:
    moment, offset = scalar.as_py(), chance.choice(["Z", "+00:00", "", *OFFSETS])
    if offset in OFFSETS and 2 < moment.year < 9998:
        return str(moment.astimezone(_zone(offset)).isoformat())
    return str(moment.replace(tzinfo=None).isoformat()) + ("" if offset in OFFSETS else offset)


def _zone(offset: str) -> dt.tzinfo | None:
    return dt.datetime.strptime(offset, "%z").tzinfo


def _number(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def _written(path: Path, lines: list[str], end: str, chance: random.Random, style: Style) -> Path:
    # An empty line is a row only with its end, and without rows it is one.
    last = chance.choice([end, end, ""]) if any(lines[-1:]) else end * len(lines[-1:])
    data = (end.join(lines) + last).encode(style.encoding)
    begins_so = data.startswith(BYTE_ORDER_MARK.encode())  # the first of two is no text
    if style.encoding == "utf-8" and (begins_so or chance.random() < 0.1):
        data = BYTE_ORDER_MARK.encode() + data
    ending = chance.choice(PACKINGS) if chance.random() < 0.3 else ""
    path = path.with_name(path.name + ending)
    path.write_bytes(packed(data, ending))
    return path


def packed(data: bytes, ending: str) -> bytes:
    """The content of a file with this ending."""
    if ending == ".gz":
        return gzip.compress(data, mtime=0)
    if ending == ".bz2":
        return bz2.compress(data)
    if ending == ".zst":
        return zstandard.compress(data)
    if ending == ".lz4":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "lz4") as file:
            file.write(data)
        return bytes(sink.getvalue())
    if ending == ".zip":
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner", data)
        return file.getvalue()
    return data
