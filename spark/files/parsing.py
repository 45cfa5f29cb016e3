"""Records of CSV files as tables, and what is wrong with a record that does not fit.

Decides: which text is which value; a TIMESTAMP without a zone is taken as UTC; a column that is not
nullable needs a value. Leaves to others: finding records (`records`), and what a bad one leads to.
Runs in a task, and on the driver for the sample from which types are inferred.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.dialect import Dialect, other_delimiter, show_delimiter
from epochgate.spark.files.quoting import Quoting, RecordMalformed
from epochgate.spark.files.records import BYTE_ORDER_MARK
from epochgate.spark.files.rejected import MISSING, ValueInvalid
from epochgate.spark.files.rescuing import rescued_json, with_rescued
from epochgate.spark.files.round_trip import KINDS, has_empty, typed, why_not
from epochgate.spark.files.split import SourceLayout
from epochgate.spark.files.times import times_of

_CSV_VALUE = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", re.DOTALL)
_CSV_CONVERSION = re.compile(r"CSV conversion error to (.+?): invalid value '(.*)'", re.DOTALL)
_CSV_FIELDS = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)")
_SHOWN_MAX = 200
_TRIED_FIRST = 100


def parse_csv(
    data: bytes,
    names: Sequence[str],
    dialect: Dialect,
    schema: pa.Schema | None,
    wanted: Sequence[str] | None,
    on_other_width: Callable[[Any], str] | None = None,
    quoting: Quoting | None = None,
) -> pa.Table:
    """Whole CSV records as a table of the `wanted` columns (none: all), null where they are not
    among `names`; RecordMalformed, or `ArrowInvalid` if they do not fit the names or the schema.

    `on_other_width`: called with a record that has more or fewer fields. `quoting`: the dialect's,
    which may have seen the data.
    """
    null: dict[str, Any] = {}
    if dialect.null is not None:
        null = {
            "null_values": list(dialect.null),
            "strings_can_be_null": True,
            "quoted_strings_can_be_null": False,
        }
    data, quote = (quoting or Quoting(dialect)).as_rfc(data)
    if data.startswith(BYTE_ORDER_MARK):
        # The parser leaves out one; that of the file, if it had any, is not in its records.
        data = BYTE_ORDER_MARK + data
    return pa.csv.read_csv(
        pa.BufferReader(data),
        read_options=pa.csv.ReadOptions(
            use_threads=False,
            # One block, so that a record is never looked for across two.
            block_size=len(data) + 1,
            column_names=list(names),
            autogenerate_column_names=not names,
        ),
        parse_options=pa.csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=quote or False,
            newlines_in_values=bool(quote),
            # Of a single column, an empty line is a row with an empty field.
            ignore_empty_lines=len(names) != 1,
            invalid_row_handler=on_other_width,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=schema,
            include_columns=None if wanted is None else list(wanted),
            include_missing_columns=wanted is not None,
            # The text has been decoded before, which showed that it is UTF-8.
            check_utf8=False,
            **null,
        ),
    )


def no_value_of(dialect: Dialect) -> pa.Array:
    """Return the texts that mean no value in columns that are no text, and are still there when
    parsed.
    """
    return pa.array(
        pa.csv.ConvertOptions().null_values if dialect.null is None else [], pa.string()
    )


def without(texts: pa.ChunkedArray, nothing: pa.Array) -> pa.ChunkedArray:
    """The texts, null where one means that there is no value."""
    return pc.if_else(pc.is_in(texts, value_set=nothing), pa.scalar(None, pa.string()), texts)


class RecordParser:
    """Parses records of one file; `names` are the columns of its header, if it has one.

    `quoting`: that by which its records are found, if they are. `path`: of the file, for rescued
    values.
    """

    def __init__(
        self,
        layout: SourceLayout,
        names: Sequence[str] | None,
        quoting: Quoting | None = None,
        path: str = "",
    ) -> None:
        self._layout, self._path = layout, path
        self._quoting = quoting or Quoting(layout.dialect)
        self._names = list(layout.schema.names if names is None else names)
        # The order and all else of what is read is left to the reader; only names count here.
        stored = set(layout.schema.names)
        known = stored.union(layout.partitions.names)
        self._others = [one for one in self._names if layout.rescues and one not in known]
        self._wanted = [name for name in layout.output_schema.names if name in stored]
        self._required = [name for name in self._wanted if not layout.schema.field(name).nullable]
        self._nothing = no_value_of(layout.dialect)
        self._instants: list[str] = []
        self._inferred: dict[str, pa.DataType] = {}
        self._has_gaps: dict[str, bool] = {}
        for name in self._wanted:
            kind = layout.schema.field(name).type
            if layout.is_inferred and kind in KINDS and name not in layout.hinted:
                self._inferred[name] = kind
            elif pa.types.is_timestamp(kind) and kind.tz is not None:
                self._instants.append(name)

    def parse(self, text: bytes) -> pa.Table:
        """Whole records in UTF-8 as a table.

        Raises pyarrow's ArrowInvalid, RecordMalformed or ValueInvalid if one does not fit.
        """
        table = self._csv(text)
        # A missing value is looked for here, where the column can be told.
        for name in self._required:
            if table.column(name).null_count:
                raise ValueInvalid(name, MISSING)
        if self._others:
            others = self._texts(text, self._others)
            told = [rescued_json(self._path, _said(row)) for row in others.to_pylist()]
            table = with_rescued(table, told)
        return table

    def rescue(self, text: bytes) -> pa.Table | None:
        """One record whose values do not all fit, with those that do; none if it is no record."""
        try:
            (texts,) = self._texts(text, [*self._wanted, *self._others]).to_pylist()
            if not self._wanted:
                return None
            columns, rescued = [], _said({one: texts[one] for one in self._others})
            for name in self._wanted:
                column = self._alone(text, name)
                if column is None:
                    rescued[name] = json.dumps(texts[name], ensure_ascii=False)
                    column = pa.chunked_array([pa.nulls(1, self._layout.schema.field(name).type)])
                if name in self._required and column.null_count:
                    return None
                columns.append(column)
            told = rescued_json(self._path, rescued)
        except (pa.ArrowException, RecordMalformed, ValueInvalid):
            return None
        return with_rescued(pa.table(columns, names=self._wanted), [told])

    def _alone(self, text: bytes, name: str) -> pa.ChunkedArray | None:
        """The value of one column of a record; none if it does not fit."""
        kind = self._layout.schema.field(name).type
        try:
            if name in self._inferred:
                return self._typed(name, self._texts(text, [name]).column(0), kind)
            if name in self._instants:
                texts = without(self._texts(text, [name]).column(0), self._nothing)
                return instants_of(name, texts, kind)
            schema = pa.schema([pa.field(name, kind)])
            dialect, quoting = self._layout.dialect, self._quoting
            table = parse_csv(text, self._names, dialect, schema, [name], quoting=quoting)
        except (pa.ArrowInvalid, ValueInvalid):
            return None
        return table.column(0)

    def _texts(self, text: bytes, names: Sequence[str]) -> pa.Table:
        """These columns as they stand there."""
        schema = pa.schema([pa.field(name, pa.string()) for name in names])
        dialect, quoting = self._layout.dialect, self._quoting
        return parse_csv(text, self._names, dialect, schema, names, quoting=quoting)

    def explain(self, error: Exception, text: str) -> tuple[str | None, str]:
        """The column, if it is one column's fault, and what is wrong with this one record."""
        message = str(error)
        if isinstance(error, RecordMalformed):
            return None, message
        if match := _CSV_VALUE.search(message):
            name = self._names[int(match[1])]
            if conversion := _CSV_CONVERSION.search(match[2]):
                advice = ""
                if conversion[2] == "" and self._layout.dialect.null is not None:
                    advice = "; give --null '' (null in Python) as well if it means no value"
                return name, f"{conversion[2][:_SHOWN_MAX]!r} is no {self._type_of(name)}{advice}"
            return name, f"{match[2]} (the column is {self._type_of(name)})"
        if match := _CSV_FIELDS.search(message):
            return None, (
                f"{_counted(match[2])}, expected {match[1]} ({', '.join(self._names)})"
                f"{delimiter_advice(text, self._layout.dialect)}"
            )
        return None, message

    def _csv(self, text: bytes) -> pa.Table:
        if not self._inferred:
            return self._declared_csv(text)
        table = self._csv_with_texts(text, self._inferred)
        for name, kind in self._inferred.items():
            texts = table.column(name)
            values = self._typed(name, texts, kind)
            if values is None:
                # A record is told what is wrong when it stands alone.
                raise ValueInvalid(name, why_not(texts[0].as_py(), kind) if len(texts) == 1 else "")
            table = table.set_column(table.schema.get_field_index(name), name, values)
        return table

    def _typed(
        self, name: str, texts: pa.ChunkedArray, kind: pa.DataType
    ) -> pa.ChunkedArray | None:
        if not len(self._nothing):
            return typed(texts, kind)
        # A cast that fails for each text costs dear: as in the blocks before, or by a few of them.
        if name not in self._has_gaps:
            self._has_gaps[name] = has_empty(texts) or typed(texts[:_TRIED_FIRST], kind) is None
        if not self._has_gaps[name]:
            values = typed(texts, kind)
            if values is not None:
                return values
            self._has_gaps[name] = True
        return typed(without(texts, self._nothing), kind)

    def _declared_csv(self, text: bytes) -> pa.Table:
        layout = self._layout
        try:
            return self._parsed(text, layout.schema)
        except pa.ArrowInvalid as error:
            if "zone offset" not in str(error):
                raise
        table = self._csv_with_texts(text, self._instants)
        for name in self._instants:
            if name in self._names:
                texts = without(table.column(name), self._nothing)
                column = instants_of(name, texts, layout.schema.field(name).type)
                table = table.set_column(table.schema.get_field_index(name), name, column)
        return table

    def _csv_with_texts(self, text: bytes, names: Container[str]) -> pa.Table:
        """Records whose columns of these names are what stands there."""
        schema = pa.schema(
            [
                pa.field(field.name, pa.string()) if field.name in names else field
                for field in self._layout.schema
            ]
        )
        return self._parsed(text, schema)

    def _parsed(self, text: bytes, schema: pa.Schema) -> pa.Table:
        dialect = self._layout.dialect
        return parse_csv(text, self._names, dialect, schema, self._wanted, quoting=self._quoting)

    def _type_of(self, name: str) -> str:
        index = self._layout.schema.get_field_index(name)
        return spark_type(self._layout.schema.field(index).type) if index >= 0 else "unknown"


def _said(texts: Mapping[str, str | None]) -> dict[str, str]:
    """The fields that say something, as JSON."""
    return {name: json.dumps(text, ensure_ascii=False) for name, text in texts.items() if text}


def instants_of(name: str, there: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray:
    """Points in time from texts of which some may have no zone: those are UTC.

    Raises ValueInvalid.
    """
    try:
        return times_of(there, kind)
    except pa.ArrowInvalid as error:
        found = re.search(r"'(.*?)'", str(error))
        raise ValueInvalid(
            name, f"{found[0] if found else error} is no {spark_type(kind)}"
        ) from error


def delimiter_advice(text: str, dialect: Dialect) -> str:
    """Return the advice to add to a message about a record of one field, if it has another
    delimiter.
    """
    other = other_delimiter(text, dialect)
    if other is None:
        return ""
    return (
        f"; if the fields are separated by {show_delimiter(other)}, say --delimiter "
        f"{show_delimiter(other)} (delimiter in Python)"
    )


def _counted(fields: str) -> str:
    return "1 field" if fields == "1" else f"{fields} fields"
