"""Faults of reading and writing that were found once, as changes of the functions that were mended.

A fault is a text of a function's source and what stood there in its place, so that each function
that has it by any name is broken, and a change that moves the mend elsewhere is noticed here.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from tests.spark.values import properties
from tests.spark.values.partitioned import ParquetPartitions
from tests.spark.values.properties import Property
from tests.spark.values.streamed import Stream
from tests.spark.values.targets import Delta, Parquet

FILES, STREAMING = "epochgate.spark.files", "epochgate.spark.streaming"


@dataclass(frozen=True)
class Change:
    """Each text stands once in the function `name` of a module, and becomes the other."""

    module: str
    name: str
    texts: tuple[tuple[str, str], ...]

    @contextmanager
    def made(self) -> Iterator[None]:
        """While it is made."""
        function: Any = importlib.import_module(self.module)
        for part in self.name.split("."):
            function = getattr(function, part)
        assert isinstance(function, FunctionType), self
        source = textwrap.dedent(inspect.getsource(function))
        for before, after in self.texts:
            assert source.count(before) == 1, f"{before!r} does not stand once in\n{source}"
            source = source.replace(before, after)
        scope: dict[str, Any] = {}
        code = compile(f"from __future__ import annotations\n{source}", self.module, "exec")
        exec(code, function.__globals__, scope)  # noqa: S102 - of our own source
        right, function.__code__ = function.__code__, scope[function.__name__].__code__
        try:
            yield
        finally:
            function.__code__ = right


@dataclass(frozen=True)
class Fault:
    """The fault that went wrong, the changes that bring it back, and the property that finds it."""

    what: str
    changes: tuple[Change, ...]
    found_by: Property
    target: Any = Parquet

    @contextmanager
    def planted(self) -> Iterator[None]:
        """While it is there."""
        with ExitStack() as stack:
            for change in self.changes:
                stack.enter_context(change.made())
            yield


def _of(module: str, *changes: tuple[str, str, str]) -> tuple[Change, ...]:
    functions = dict.fromkeys(name for name, _, _ in changes)
    return tuple(
        Change(module, name, tuple((before, after) for of, before, after in changes if of == name))
        for name in functions
    )


declared_csv = partial(properties.declared_texts, forms=("csv",))
inferred_csv = partial(properties.inferred_texts, forms=("csv",))
inferred_jsonl = partial(properties.inferred_texts, forms=("jsonl",))
FAULTS = (
    Fault(
        "a column that is there twice is null",
        (
            *_of(
                f"{FILES}.column_names",
                ("require_usable", "names.count(name) > 1", "False"),
                ("same_name", "before is not name or names.count(name) > 1", "before is not name"),
            ),
        ),
        properties.parquet_files,
    ),
    Fault(
        "dates of INT96 wrap around",
        _of(
            f"{FILES}.access",
            ("FileAccess.parquet", "coerce_int96_timestamp_unit=int96_unit,", ""),
        ),
        partial(properties.parquet_files, tables=properties.clock_tables),
    ),
    Fault(
        "a corrected Parquet file is the old one, since its footer is",
        _of(
            f"{FILES}.content",
            ("checksum_of", 'is_object and file_format == "parquet"', 'file_format == "parquet"'),
            ("checksum_of", "size > FETCH_BYTES", "True"),
            ("checksum_of", "kind = FOOTER_ALONE", "kind = 0"),
        ),
        properties.corrected_files,
    ),
    Fault(
        "a file with CR as line ends and a quote is one header",
        _of(
            f"{FILES}.layout",
            (
                "read_first_record",
                "if next(reader, None) is not None:",
                "if next(reader, None) is not None and '\"' not in text:",
            ),
        ),
        declared_csv,
    ),
    Fault(
        "an empty line of a single column is no row",
        _of(f"{FILES}.parsing", ("parse_csv", "len(names) != 1", "True")),
        declared_csv,
    ),
    Fault(
        "types are inferred of texts that they do not print",
        _of(
            f"{FILES}.round_trip",
            ("typed", "values if _IS_PRINTED_AGAIN[kind](texts, values) else None", "values"),
        ),
        inferred_csv,
    ),
    Fault(
        "leading zeros are lost",
        _of(f"{FILES}.round_trip", ("_has_no_extra_zero", "begins = at.begins", "return True")),
        inferred_csv,
    ),
    Fault(
        "digits are lost in doubles",
        _of(
            f"{FILES}.round_trip",
            ("_is_double", "not is_long or _are_digits_kept(texts, values)", "True"),
        ),
        inferred_csv,
    ),
    Fault(
        "digits of JSON numbers are lost",
        _of(
            f"{FILES}.json_lines",
            ("infer_json", "are_digits_kept(sample, look, _floats(table))", "True"),
            ("JsonLines.parse", "not are_digits_kept(text, look, _floats(table))", "False"),
        ),
        inferred_jsonl,
    ),
    Fault(
        "JSON strings that look like times become some",
        _of(f"{FILES}.json_lines", ("infer_json", "_as_texts(table.schema)", "table.schema")),
        inferred_jsonl,
    ),
    Fault(
        "escapes stay in texts",
        _of(
            f"{FILES}.quoting",
            ("Quoting.as_rfc", "self._field.sub(self._unescaped, data)", "data"),
        ),
        declared_csv,
    ),
    Fault(
        "a line for spreadsheets is a header",
        (
            *_of(
                f"{FILES}.layout",
                ("read_first_record", "_OF_SPREADSHEETS.fullmatch(text)", "False"),
            ),
            *_of(f"{FILES}.column_names", ("require_usable", "not name.strip()", "False")),
        ),
        inferred_csv,
    ),
    Fault(
        "a column without a name is taken",
        _of(f"{FILES}.column_names", ("require_usable", "not name.strip()", "False")),
        inferred_csv,
    ),
    Fault(
        "columns that differ in capitals are two",
        _of(
            "epochgate.spark.parquet_sink.committable",
            (
                "require_readable_columns",
                "same_name(schema.names, tells_capitals=False)",
                "None",
            ),
        ),
        properties.parquet_files,
    ),
    Fault(
        "a stream casts what was inferred to what is declared",
        (
            *_of(
                f"{STREAMING}.source_options",
                ("SourceOptions.read", "declared=columns", "declared=None"),
                (
                    "SourceOptions._enumeration",
                    "schema=None if columns is None else self._of_files(columns)",
                    "schema=None",
                ),
            ),
            *_of(
                f"{STREAMING}.source_rows",
                (
                    "_conformed",
                    "if not is_readable_as(batch.schema.field(one.name).type, one.type)",
                    "if False",
                ),
            ),
        ),
        properties.declared_texts,
        Stream,
    ),
    Fault(
        "a stream has no moments",
        _of(f"{STREAMING}.source_rows", ("columns_of", 'schema, timezone="UTC"', "schema")),
        properties.declared_texts,
        Stream,
    ),
    Fault(
        "a stream leaves out columns that came later, and no user has",
        (
            *_of(
                f"{STREAMING}.source_options",
                ("SourceOptions.enumerated", "leaves_out_others=not is_inferred", ""),
                ("SourceOptions._enumeration", "=leaves_out_others", "=True"),
            ),
            *_of(
                f"{FILES}.split",
                ("SourceLayout.as_declared", "=not is_inferred", "=True"),
            ),
            # Columns of small files would all be in the sample, and none come later.
            *_of(
                f"{FILES}.sampling",
                ("Sample._texts", "for other, stamp in self._paths.items():", "for other in ():"),
            ),
        ),
        inferred_jsonl,
        Stream,
    ),
    Fault(
        "a schema that names a column twice is tried again and again",
        _of(
            "epochgate.spark.ingest.options",
            ("IngestOptions._expect_schema", "if names.count(name) > 1", "if False"),
        ),
        declared_csv,
    ),
    Fault(
        "a Delta table lies where its path does not say",
        _of(
            "epochgate.spark.delta_sink.log",
            (
                "DeltaLog.__init__",
                "escape := _ESCAPE.search(path if self._objects else os.path.abspath(path))",
                "escape := None",
            ),
        ),
        properties.parquet_files,
        Delta,
    ),
    Fault(
        "texts of JSON that look like times are times",
        _of(f"{FILES}.json_lines", ("_as_text", "pa.string() if is_time(kind) else kind", "kind")),
        inferred_jsonl,
    ),
    Fault(
        "an empty text in the name of a directory is null",
        _of(
            "epochgate.spark.parquet_sink.sink",
            (
                "ParquetSinkWriter.write",
                "require_told(batch, self._partition_by, self._where)",
                "None",
            ),
        ),
        partial(properties.parquet_files, tables=properties.named_tables),
        ParquetPartitions,
    ),
)
