"""Blocks of JSON lines as tables: by pyarrow where it is right, else line by line.

Decides when pyarrow is asked: never before a look at the bytes (`json_guard`), and its answer
counts if there is a record for each line and no number has lost digits. Strings are text to it, and
become times of declared columns afterwards. All else is left to `json_values`, which reads the same
lines more slowly and says what is wrong with each; so it makes no difference where a block begins.
Runs in a task, and on the driver for the sample from which types are inferred.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.json

from epochgate.spark.files.json_guard import BLANK, Look, are_digits_kept, look_at
from epochgate.spark.files.json_types import TYPE_DEPTH_MAX, schema_of, widened, with_others
from epochgate.spark.files.json_values import RecordReader, whole_record
from epochgate.spark.files.records import BYTE_ORDER_MARK
from epochgate.spark.files.rejected import MISSING, ValueInvalid, faults_of
from epochgate.spark.files.rescuing import RESCUED, rescued_json, with_rescued
from epochgate.spark.files.round_trip import typed
from epochgate.spark.files.split import OF_TEXTS, SourceLayout
from epochgate.spark.files.times import is_time, times_of

_LARGE = 2.0**63
_QUOTED_NUMBER = re.compile(rb'"(?:[-+.0-9eE]|\\u00[0-9a-fA-F]{2})+"\s*[],}]')
_BEGIN_BYTES = 1 << 16
_SHOWN_MAX = 200


class LinesUnsure(ValueError):
    """A block of JSON lines is to be read line by line."""


def infer_json(sample: bytes, of_texts: bool = False) -> pa.Schema | None:
    """The columns of JSON lines; null where there is no value, none if there is no record.

    Lines that are no records are left out. of_texts: as for `schema_of`. Raises ValueInvalid if no
    line is one.
    """
    try:
        if of_texts:
            raise LinesUnsure
        look = _looked_at(sample, for_doubles=True)
        table = _parsed(sample, look, None, "infer")
    except LinesUnsure:
        pass
    else:
        if _are_types_told(table) and are_digits_kept(sample, look, _floats(table)):
            return _as_texts(table.schema)
    records, wrong = [], None
    for line in sample.decode().split("\n"):
        if line.strip(BLANK):
            try:
                # What fits in a faulty record tells types as well.
                faulty = faults_of(line) if of_texts else None
                records.append(whole_record(line if faulty is None else faulty[0]))
            except ValueInvalid as error:
                wrong = wrong or error
    if not records and wrong is not None:
        raise ValueInvalid(None, f"no line is a record; of the first, {wrong}")
    schema = schema_of(records, of_texts) if records else None
    if schema is not None and not schema:
        raise ValueInvalid(None, "no record has a field")
    return schema


def require_lines(file: BinaryIO) -> None:
    """Refuse a document that is written over several lines, some of which could be taken for
    records. Raises ValueInvalid.
    """
    file.seek(0)
    first = file.read(_BEGIN_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip(BLANK.encode())
    line = first.partition(b"\n")[0].rstrip(BLANK.encode())
    if line.startswith((b"{", b"[")) and line.endswith((b"{", b"[", b",", b":")):
        raise ValueInvalid(
            None,
            f"its first line, {line[:_SHOWN_MAX].decode(errors='backslashreplace')}, begins what "
            "goes on in the next one, and each line is a record of its own. Start with --format "
            "json (format in Python) to read documents and arrays over several lines",
        )


class JsonLines:
    """Reads the JSON lines of one layout; `path` is that of the file, for rescued values."""

    def __init__(self, layout: SourceLayout, path: str = "") -> None:
        self._layout, self._path = layout, path
        self._of_texts = layout.format in OF_TEXTS
        self._infers_times = self._of_texts and layout.is_inferred
        self._others: Literal["infer", "ignore", "error"] = (
            "infer"
            if layout.takes_new_fields
            else "ignore"
            if layout.leaves_out_others
            else "error"
        )
        self._columns = pa.schema([one.with_nullable(True) for one in layout.schema])
        self._texts = _as_texts(self._columns)
        self._for_doubles = self._others == "infer" or (
            layout.is_inferred and "double" in str(self._texts.types)
        )
        self._takes_strings = layout.is_inferred and "decimal" in str(self._texts.types)
        """Whether the parser would take the string `"7"` for a number, as it does of decimals."""
        stored = set(layout.schema.names)
        self._required = [
            name
            for name in layout.output_schema.names
            if name in stored and not layout.schema.field(name).nullable
        ]

    def parse(self, text: bytes) -> pa.Table:
        """Whole records as a table. Raises LinesUnsure if they are to be read line by line."""
        if self._takes_strings and _QUOTED_NUMBER.search(text):
            raise LinesUnsure
        look = _looked_at(text, self._for_doubles)
        table = _parsed(text, look, self._texts, self._others)
        if self._others == "infer":
            if self._layout.rescues and len(_apart(table.schema)) < len(table.schema):
                raise LinesUnsure
            wanted = pa.schema(with_others(self._texts, _as_texts(table.schema)))
            if wanted != self._texts and not _are_types_told(table):
                raise LinesUnsure
            if wanted != table.schema:
                table = _parsed(text, look, wanted, self._others)
        if self._layout.is_inferred:
            if not are_digits_kept(text, look, _floats(table)):
                raise LinesUnsure
        elif not all(map(_are_numbers, _floats(table))):
            raise LinesUnsure
        if any(table.column(name).null_count for name in self._required):
            raise LinesUnsure
        return self._with_times(table)

    def by_line(self, text: bytes) -> Iterator[tuple[int, pa.Table | ValueInvalid]]:
        """The same records, each for itself: a number of lines, and their rows, or the fault of
        one line.
        """
        lines = text.decode().split("\n")
        if lines[-1] == "":
            lines.pop()
        columns = self._columns
        if self._others == "infer":
            found = _found_in(lines, self._of_texts)
            found = _apart(found) if self._layout.rescues else found
            columns = pa.schema(with_others(columns, found))
        is_inferred = self._layout.is_inferred
        reader = RecordReader(
            columns,
            is_inferred,
            leaves_out_others=self._others == "ignore",
            declared=self._layout.hinted,
            of_texts=self._of_texts,
        )
        rows: list[dict[str, Any]] = []
        rescued: list[str | None] = []
        taken = 0
        for line in lines:
            if line.strip(BLANK):
                try:
                    row, told = self._row(reader, line)
                    for name in self._required:
                        if row.get(name) is None:
                            raise ValueInvalid(name, MISSING)
                    rows.append(row)
                    rescued.append(told)
                except ValueInvalid as error:
                    if taken:
                        yield taken, with_rescued(_table_of(rows, columns), rescued)
                    yield 1, error
                    rows, rescued, taken = [], [], 0
                    continue
            taken += 1
        if taken:
            yield taken, with_rescued(_table_of(rows, columns), rescued)

    def _row(self, reader: RecordReader, line: str) -> tuple[dict[str, Any], str | None]:
        """The values of one line, and what is rescued of it."""
        faulty = faults_of(line) if self._of_texts else None
        if faulty is not None:
            line, faults, reason = faulty
            if not faults or not self._layout.rescues:
                raise ValueInvalid(next(iter(faults), None), reason, line)
        if not self._layout.rescues:
            return reader.read(line), None
        row, texts = reader.rescue(line)
        if faulty is not None:
            texts |= {name: json.dumps(text) for name, text in faults.items()}
        return row, rescued_json(self._path, texts)

    def _with_times(self, table: pa.Table) -> pa.Table:
        for place, field in enumerate(self._columns):
            if self._texts.field(place).type != field.type:
                found = table.column(place).combine_chunks()
                try:
                    kind = widened(field.type, found.type)
                    is_inferred = self._infers_times and field.name not in self._layout.hinted
                    column = _converted(found, kind, is_inferred)
                except pa.ArrowInvalid as error:
                    raise LinesUnsure from error
                table = table.set_column(place, field.name, column)
        return table


def _looked_at(data: bytes, for_doubles: bool) -> Look:
    look = look_at(data, for_doubles)
    if look is None:
        raise LinesUnsure
    return look


def _parsed(
    data: bytes, look: Look, schema: pa.Schema | None, others: Literal["infer", "ignore", "error"]
) -> pa.Table:
    try:
        table = pa.json.read_json(
            pa.BufferReader(data),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior=others,
            ),
        )
    except pa.ArrowException as error:
        raise LinesUnsure from error
    if table.num_rows != look.records:
        raise LinesUnsure
    return table


def _found_in(lines: list[str], of_texts: bool) -> pa.Schema:
    records = []
    for line in lines:
        if line.strip(BLANK):
            try:
                records.append(whole_record(line))
            except ValueInvalid:
                continue
    return schema_of(records, of_texts)


def _apart(columns: pa.Schema) -> pa.Schema:
    """Those that are not named as the column of rescued values; such a field is rescued."""
    return pa.schema([one for one in columns if one.name.lower() != RESCUED.name])


def _table_of(rows: list[dict[str, Any]], columns: pa.Schema) -> pa.Table:
    arrays = [pa.array([row.get(one.name) for row in rows], one.type) for one in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


def _as_texts(schema: pa.Schema) -> pa.Schema:
    """The columns with text in each place where a time stands."""
    return pa.schema([(one.name, _as_text(one.type)) for one in schema])


def _as_text(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _as_text(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    return pa.string() if is_time(kind) else kind


def _converted(found: pa.Array, kind: pa.DataType, is_inferred: bool) -> pa.Array:
    """The values with times for texts, in each place where the type has one. Raises ArrowInvalid,
    also where an inferred time would not be printed again.
    """
    if found.type == kind:
        return found
    if pa.types.is_struct(kind):
        parts = [
            _converted(found.field(place), one.type, is_inferred) for place, one in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=found.is_null())
    if pa.types.is_list(kind):
        values = _converted(found.values, kind.value_type, is_inferred)
        return pa.ListArray.from_arrays(found.offsets, values, type=kind, mask=found.is_null())
    if not is_inferred:
        return times_of(found, kind)
    values = typed(pa.chunked_array([found]), kind)
    if values is None:
        raise pa.ArrowInvalid("an inferred time would not be printed again")
    return values.combine_chunks()


def _floats(values: pa.Table | pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """The floats and doubles at every depth."""
    if isinstance(values, pa.Table | pa.ChunkedArray):
        for one in values.columns if isinstance(values, pa.Table) else values.chunks:
            yield from _floats(one)
    elif pa.types.is_floating(values.type):
        yield values
    elif pa.types.is_struct(values.type):
        for one in values.flatten():
            yield from _floats(one)
    elif pa.types.is_list(values.type):
        yield from _floats(values.flatten())


def _are_numbers(values: pa.Array) -> bool:
    """Return whether none is infinite, and each is a number: the parser takes `NaN`, which is no
    JSON.
    """
    return pa.compute.all(pa.compute.is_finite(values)).as_py() is not False


def _are_types_told(table: pa.Table) -> bool:
    """Return whether the parser finds the types that the lines have: there are fields, no double
    may be an integer for a decimal, and each type has a place in a schema.
    """
    return (
        bool(table.schema)
        and not any(map(_has_large, _floats(table)))
        and not any(_is_odd(one.type, 1) for one in table.schema)
    )


def _has_large(values: pa.Array) -> bool:
    least, most = pa.compute.min_max(values).as_py().values()
    return least is not None and max(-least, most) >= _LARGE


def _is_odd(kind: pa.DataType, depth: int) -> bool:
    """Return whether a type is that of an object without a field, or nested too deep."""
    if depth > TYPE_DEPTH_MAX:
        return True
    if pa.types.is_struct(kind):
        return not len(kind) or any(_is_odd(one.type, depth + 1) for one in kind)
    return pa.types.is_list(kind) and _is_odd(kind.value_type, depth + 1)
