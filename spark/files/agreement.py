"""The columns that each file has, and whether the files of one source agree on them.

Decides the layout with which a file is read: that of the first file for all, or, if the schema may
evolve, one for each set of columns and types; or the schema that was asked for. A text file's
columns keep the types that are known unless its own are wider and may be. Leaves to others: whether
the target takes what differs (the sink's coordinator). Runs on the driver, with the enumeration.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from epochgate.errors import UsageError
from epochgate.spark.files.asked import Reading, ReadingChanged
from epochgate.spark.files.column_names import NamesUnusable, require_usable
from epochgate.spark.files.ddl import spark_type
from epochgate.spark.files.dialect import other_delimiter, show_delimiter
from epochgate.spark.files.errors import (
    DelimiterDoubtful,
    HintUnused,
    SchemaChanged,
    TypeUnreadable,
)
from epochgate.spark.files.evolution import (
    difference,
    is_readable_as,
    merged,
    other_names,
    wider,
    with_one_of,
)
from epochgate.spark.files.json_lines import require_lines
from epochgate.spark.files.layout import (
    Others,
    declared,
    describe,
    fill_types,
    has_same_columns,
    in_order,
    infer_schema,
    is_readable_from,
    normal_schema,
    read_first_record,
    read_header,
    require_bytes_of_ascii,
)
from epochgate.spark.files.partitions import (
    PartitionColumnInFile,
    PartitionsDiffer,
    PartitionValueInvalid,
    infer_type,
    partition_texts,
    partition_value,
    root_of,
)
from epochgate.spark.files.sampling import Sample
from epochgate.spark.files.sheets import SheetLines
from epochgate.spark.files.source_columns import (
    SourceColumnInFile,
    described,
    require_apart,
)
from epochgate.spark.files.split import TYPED, Format, SourceLayout
from epochgate.spark.files.text_lines import LINE
from epochgate.spark.values.errors import RowsUnfit

ASKED = "--schema (schema in Python)"
HINTED = "--schema-hints (schema_hints in Python)"
UNFIT = (
    SchemaChanged,
    PartitionsDiffer,
    PartitionValueInvalid,
    PartitionColumnInFile,
    DelimiterDoubtful,
    NamesUnusable,
    RowsUnfit,
    SourceColumnInFile,
    HintUnused,
)
"""What makes a file unlike the others of its source; it may be left out like one that is bad."""


class Layouts:
    """The layouts of a source's files so far; a split refers to its own by index."""

    def __init__(self, source: str, reading: Reading) -> None:
        self._source, self._reading, self.dialect = source, reading, reading.dialect
        self._layouts: list[SourceLayout] = []
        self._first_path = ""
        self._partition_types: dict[str, pa.DataType] = {}
        self.sample = Sample()
        """Files that are there beside the first, before it is known."""

    def __getitem__(self, index: int) -> SourceLayout:
        return self._layouts[index]

    @property
    def newest(self) -> SourceLayout | None:
        """The last one that was added; none before the first."""
        return self._layouts[-1] if self._layouts else None

    @property
    def first_path(self) -> str:
        """The file of the first layout."""
        return self._first_path

    def copy(self) -> Layouts:
        """One that knows the same, of which nothing is shared that changes."""
        other = copy.copy(self)
        other._layouts = list(self._layouts)
        return other

    def look_at(self, paths: Iterable[str]) -> None:
        """Fix the types of columns in directories' names, by all that are there at first."""
        if self._layouts or self._partition_types:
            return
        root = root_of(self._source)
        texts: dict[str, set[str | None]] = {}
        for path in paths:
            for name, text in partition_texts(path, root).items():
                texts.setdefault(name, set()).add(text)
        self._partition_types = {name: infer_type(values) for name, values in texts.items()}

    def of_typed(self, path: str, file_format: Format, schema: pa.Schema) -> int:
        """The index of the layout of a file that tells its schema. Raises as `of_text` does, and
        NamesUnusable.
        """
        schema = normal_schema(schema)
        given = self._reading.schema
        require_usable(path, schema, self._wanted())
        if given is None:
            return self._add(path, file_format, self._of_typed_hinted(path, file_format, schema))
        partitions = self._partitions(path)
        self._require_columns(path, given, schema.names, partitions)
        for column in schema:
            if column.name not in given.names:
                continue
            if not is_readable_as(column.type, given.field(column.name).type):
                raise SchemaChanged(path, difference(schema, given), ASKED, describe(given))
        return self._add(path, file_format, given)

    def of_text(self, path: str, file_format: Format, file: BinaryIO) -> int | None:
        """The index of the layout of a CSV or JSON lines file; none if it has no row.

        Raises SchemaChanged, PartitionsDiffer, PartitionValueInvalid, PartitionColumnInFile,
        NamesUnusable, DelimiterDoubtful or TypeUnreadable, and what reading it raises.
        """
        reading = self._reading
        require_bytes_of_ascii(file)
        if file_format == "text":
            return self._add(path, file_format, self._of_lines(path))
        names: tuple[str, ...] | None = None
        if file_format == "csv":
            first = read_first_record(file, reading.dialect, reading.encoding)
            self._require_delimiter(path, first.names, first.text)
            if reading.dialect.header:
                names = read_header(file, reading.dialect, reading.encoding).names
        elif isinstance(file, SheetLines):
            names = file.names
        elif file_format == "jsonl":
            require_lines(file)
        if reading.schema is not None:
            return self._add_given(path, file_format, names)
        if self._layouts and reading.evolution == "none":
            return self._add(path, file_format, self._of_known(path, names))
        inferred = infer_schema(
            file,
            file_format,
            reading.dialect,
            reading.encoding,
            reading.sample_bytes_max,
            reading.leaves_bad_rows,
            lambda names: self._others(path, file_format, names),
        )
        if inferred is None:
            return None
        inferred = in_order(inferred, names or inferred.names)
        require_usable(path, inferred, self._wanted())
        known = self._with_known_types(inferred)
        may_lack = names is None or bool(self._layouts)
        return self._add(path, file_format, self._hinted(path, file_format, known, may_lack))

    def to_list(self) -> list[bytes]:
        """Plain values, for msgpack."""
        types = pa.schema(list(self._partition_types.items())).serialize().to_pybytes()
        return [types, *(layout.to_bytes() for layout in self._layouts)]

    @staticmethod
    def from_earlier(layout: bytes | None) -> list[bytes]:
        """Read the state of a release with one layout for all files, as `restore` takes it."""
        types = pa.schema([]).serialize().to_pybytes()
        return [types] if layout is None else [types, layout]

    def restore(self, first_path: str, values: list[bytes]) -> None:
        """Continue from what `to_list` returned.

        Raises `UsageError` for other columns, and `ReadingChanged`.
        """
        types, *layouts = values
        self._first_path = first_path
        schema = pa.ipc.read_schema(pa.py_buffer(types))
        self._partition_types = {one.name: one.type for one in schema}
        self._layouts = [SourceLayout.from_bytes(layout) for layout in layouts]
        before, reading = self.newest, self._reading
        if before is None:
            return
        if before.projection != reading.projection:
            raise UsageError(
                f"the checkpoint is of a job that reads columns {_columns(before.projection)}, "
                f"this one is to read {_columns(reading.projection)}. Ask for the same --columns "
                "(columns in Python), or start from the beginning with a new target and a new "
                "--checkpoint-dir (checkpoint_directory)."
            )
        if before.dialect != reading.dialect:
            raise ReadingChanged(
                "--delimiter, --quote, --escape, --no-header, --null, --row-tag, --sheet",
                before.dialect,
                reading.dialect,
            )
        if reading.evolution == "none":
            if before.added != reading.added:
                told = (described(one) for one in (before.added, reading.added))
                raise ReadingChanged("--add-column", *told)
            if before.rescues != reading.rescues:
                told = ("rescue" if one.rescues else "others" for one in (before, reading))
                raise ReadingChanged("--on-bad-row", *told)
        if reading.evolution == "none" and reading.schema is None:
            self._require_hints(before)
        if reading.schema is None or reading.evolution != "none" or reading.leaves_out_others:
            return
        given = reading.schema
        named = [one for one in before.partitions if one.name in given.names]
        known = pa.schema([*before.schema, *named])
        if not has_same_columns(given, known):
            raise ReadingChanged("--schema", describe(known), describe(given))

    def _require_hints(self, before: SourceLayout) -> None:
        known = [*before.schema, *before.partitions]
        then = pa.schema([one for one in known if one.name in before.hinted])
        now = self._reading.hints
        if not has_same_columns(then, now) or declared(then) != declared(now):
            raise ReadingChanged("--schema-hints", declared(then), declared(now))

    def _wanted(self) -> Sequence[str] | None:
        """The columns that are read; none for all of a file."""
        reading = self._reading
        return reading.projection or (None if reading.schema is None else reading.schema.names)

    def _of_known(self, path: str, names: tuple[str, ...] | None) -> pa.Schema:
        known = self._layouts[0].schema
        if names is not None and not self._reading.rescues and set(names) != set(known.names):
            raise SchemaChanged(path, other_names(names, known), self._first_path, describe(known))
        return known

    def _others(self, path: str, file_format: Format, names: Sequence[str]) -> Others:
        """The beginnings of other files, for the first one."""
        if self._layouts:
            return Others()
        if file_format == "csv":
            return Others(csv_texts=self.sample.csv_texts(path, names, self._reading))
        return Others(self.sample.json_lines(path, self._reading))

    def _of_lines(self, path: str) -> pa.Schema:
        given, option = self._reading.schema, ASKED
        if given is None:
            given, option = self._hinted(path, "text", LINE, may_lack=False), HINTED
        own = pa.schema([one for one in given if one.name not in self._partitions(path)])
        if own.types != [pa.string()]:
            raise SchemaChanged(path, ["lines are one column of STRING"], option, describe(given))
        return own

    def _hinted(
        self, path: str, file_format: Format, schema: pa.Schema, may_lack: bool
    ) -> pa.Schema:
        """The columns with the types that hints declare for some of them."""
        hints, elsewhere = self._reading.hints, self._partitions(path)
        fields = [hints.field(one.name) if one.name in hints.names else one for one in schema]
        for hint in hints:
            if hint.name in elsewhere:
                continue
            if file_format not in TYPED and not is_readable_from(file_format, hint.type):
                raise TypeUnreadable(hint.name, spark_type(hint.type), file_format)
            if hint.name not in schema.names:
                if not may_lack or hint.name.lower() in map(str.lower, schema.names):
                    raise HintUnused(path, hint.name, schema.names)
                fields.append(hint)
        return pa.schema(fields)

    def _of_typed_hinted(self, path: str, file_format: Format, schema: pa.Schema) -> pa.Schema:
        for hint in self._reading.hints:
            if hint.name in schema.names:
                found = schema.field(hint.name).type
                if not is_readable_as(found, hint.type):
                    wrong = difference(pa.schema([(hint.name, found)]), pa.schema([hint]))
                    raise SchemaChanged(path, wrong, HINTED, describe(self._reading.hints))
        return self._hinted(path, file_format, schema, self._reading.evolution != "none")

    def _with_known_types(self, inferred: pa.Schema) -> pa.Schema:
        """Text is read as a column's known type, unless its own is wider and may be."""
        if not self._layouts:
            return fill_types(inferred)
        mode = self._reading.evolution
        known = merged([layout.schema for layout in self._layouts], mode)
        fields = []
        for column in inferred:
            index = known.get_field_index(column.name)
            kind = column.type
            if index >= 0:
                before = known.field(index).type
                kind = wider(before, kind, mode) or before
            fields.append(pa.field(column.name, kind))
        return fill_types(pa.schema(fields))

    def _add_given(self, path: str, file_format: Format, names: tuple[str, ...] | None) -> int:
        given = self._reading.schema
        assert given is not None
        partitions = self._partitions(path)
        if names is not None:
            self._require_columns(path, given, names, partitions)
        for column in given:
            if column.name not in partitions and not is_readable_from(file_format, column.type):
                raise TypeUnreadable(column.name, spark_type(column.type), file_format)
        return self._add(path, file_format, given)

    def _require_columns(
        self, path: str, given: pa.Schema, names: Iterable[str], partitions: Iterable[str]
    ) -> None:
        """Refuse a file that does not have the columns of the schema that was asked for."""
        found, elsewhere = set(names), set(partitions)
        if both := sorted(found & elsewhere):
            raise PartitionColumnInFile(path, both[0])
        lacking = [one for one in given if one.name not in found and one.name not in elsewhere]
        rescues = self._reading.rescues
        may_lack = rescues or self._reading.evolution != "none"
        wrong = [] if may_lack else difference(pa.schema([]), pa.schema(lacking))
        wrong += [
            f"{one.name}: {spark_type(one.type)} NOT NULL is missing"
            for one in lacking
            if may_lack and not one.nullable
        ]
        if not self._reading.leaves_out_others and not rescues:
            wrong += [f"{name} is new" for name in names if name not in given.names]
        if wrong:
            raise SchemaChanged(path, wrong, ASKED, describe(given))

    def _require_delimiter(self, path: str, names: tuple[str, ...], text: str) -> None:
        dialect, given = self._reading.dialect, self._reading.schema
        if len(names) > 1 or (given is not None and len(given) == 1):
            return
        if (other := other_delimiter(text, dialect)) is not None:
            raise DelimiterDoubtful(
                path, text.strip(), show_delimiter(dialect.delimiter), show_delimiter(other)
            )

    def _partitions(self, path: str) -> list[str]:
        return list(partition_texts(path, root_of(self._source)))

    def _partition_schema(self, path: str) -> pa.Schema:
        """The columns of the directories, each of which must hold a value of its type."""
        asked = self._reading.schema or self._reading.hints
        fields = []
        for name in self._partitions(path):
            if name in asked.names:
                fields.append(asked.field(name))
            else:
                kind = self._partition_types.setdefault(
                    name, infer_type([partition_texts(path, root_of(self._source))[name]])
                )
                fields.append(pa.field(name, kind))
        for one in fields:
            partition_value(path, one)
        return pa.schema(fields)

    def _add(self, path: str, file_format: Format, schema: pa.Schema) -> int:
        reading = self._reading
        partitions = self._partition_schema(path)
        if reading.schema is None:
            both = next((name for name in partitions.names if name in schema.names), None)
            if both is not None:
                raise PartitionColumnInFile(path, both)
        own = pa.schema([one for one in schema if one.name not in partitions.names])
        if self._layouts and reading.evolution != "none" and reading.projection:
            own = with_one_of(own, self._layouts[0].own_schema, partitions.names)
        layout = SourceLayout(
            file_format,
            own,
            reading.dialect,
            reading.projection,
            partitions,
            takes_new_fields=reading.evolution != "none" and reading.schema is None,
            leaves_out_others=reading.leaves_out_others,
            is_inferred=self._is_inferred(file_format),
            added=reading.added,
            hinted=tuple(reading.hints.names),
            rescues=reading.rescues,
        )
        require_apart(path, reading.added, layout.own_schema.names, rescues=reading.rescues)
        self._require_projection(path, layout)
        if self._layouts and reading.evolution == "none":
            self._require_same(path, layout)
            if reading.schema is None:
                columns = [own.field(name) for name in self._layouts[0].schema.names]
                layout = replace(layout, schema=pa.schema(columns))
        if layout not in self._layouts:
            self._require_accepted(path, layout)
            self._first_path = self._first_path or path
            self._layouts.append(layout)
        return self._layouts.index(layout)

    def _require_accepted(self, path: str, layout: SourceLayout) -> None:
        if self._reading.accepts is not None:
            try:
                self._reading.accepts(layout.output_schema)
            except RowsUnfit as unfit:
                raise unfit.of(path) from None

    def _is_inferred(self, file_format: Format) -> bool:
        """A job that an earlier release began goes on as that has read its files."""
        if file_format in TYPED or self._reading.schema is not None:
            return False
        return self._layouts[0].is_inferred if self._layouts else True

    def _require_same(self, path: str, layout: SourceLayout) -> None:
        first = self._layouts[0]
        if self._reading.schema is None and not has_same_columns(layout.schema, first.schema):
            wrong = difference(layout.schema, first.schema)
            raise SchemaChanged(path, wrong, self._first_path, describe(first.schema))
        if layout.partitions.names != first.partitions.names:
            raise PartitionsDiffer(
                path, layout.partitions.names, self._first_path, first.partitions.names
            )

    def _require_projection(self, path: str, layout: SourceLayout) -> None:
        wanted, names = self._reading.projection, [*layout.schema.names, *layout.partitions.names]
        missing = set(wanted or ()) - set(names)
        may_lack = bool(self._layouts) and self._reading.evolution != "none"
        if wanted == () or (missing and not may_lack):
            raise UsageError(
                f"columns {sorted(missing)} are not in {path!r}, which has {names}. "
                "Ask for at least one of these by --columns (columns in Python)."
            )


def _columns(projection: Iterable[str] | None) -> str:
    return "(all)" if projection is None else ", ".join(projection)
