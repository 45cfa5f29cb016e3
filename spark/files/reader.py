"""Reads a split into Arrow batches, and says after each where to continue.

Decides: batch sizes, positions, what counts as a bad file and where exactly it begins to be bad.
Leaves to others: which split is read when (the coordinator), and keeping positions (checkpoints).
Runs in a task, on its data thread; a reader holds no state between splits but what it skipped.

A position is a row group, or the byte offset of a block of records, and the rows after it, so
that continuing reads again at most one row group or one block (and, compressed, decompresses the
part before). Rows already taken are never yielded again, whatever the sizes of batches are then.

A bad row makes its file bad, or is handed out on its own (on_bad_row="reject"), and the rest of the
file is read.

With "skip", the rest of a bad split is left out and recorded, and so is, with "skip" or "new", the
rest of a split whose file has changed. Other splits of the file are read by the subtasks that have
them, and recorded there if they are bad as well, so the rows that are taken do not depend on which
subtask got which split.
"""

from __future__ import annotations

import contextlib
import errno
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Literal

import pyarrow as pa

from epochgate.runtime.objects.errors import (
    OBJECT_ERRORS,
    ObjectMissing,
    ObjectReplaced,
    ObjectStoreError,
    ObjectStoreRefused,
)
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.blocks import RecordBlocks
from epochgate.spark.files.conforming import Conformer, row_as_json
from epochgate.spark.files.content import (
    OnChangedFile,
    Stamp,
    describe_stamp,
    is_as_it_was,
    is_content,
)
from epochgate.spark.files.errors import BadFile, BadRow, FileChanged, FileGone, SourceUnreadable
from epochgate.spark.files.json_lines import JsonLines
from epochgate.spark.files.layout import Header, cause_of, data_start, read_header
from epochgate.spark.files.lines import LineCounter
from epochgate.spark.files.parsing import RecordParser
from epochgate.spark.files.quoting import Quoting
from epochgate.spark.files.records import (
    LineEnds,
    RecordEnds,
    first_record_start,
    record_blocks,
)
from epochgate.spark.files.rejected import MISSING, OnBadRow, RejectedRow, position_of
from epochgate.spark.files.split import TYPED, FileSplit, SkippedFile, SourceLayout, SplitPosition
from epochgate.spark.files.text import UTF_8
from epochgate.spark.files.text_lines import TextLines

OnBadFile = Literal["fail", "skip"]
REPLACED_MAX = 10
"""How many times in a row an object may be replaced while it is looked at or read."""

READ_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, zlib.error)
"""What pyarrow, gzip and the operating system raise for a file that cannot be read."""


@dataclass(frozen=True)
class ReadBatch:
    """Rows `rows` of a split (counted from 0 within it), and where to continue after them.

    `rejected`: bad rows that were met since the batch before; the position is after them, too.
    """

    split: FileSplit
    batch: pa.RecordBatch
    rows: range
    position: SplitPosition
    rejected: tuple[RejectedRow, ...] = ()


class SplitReader:
    """Reads splits of one source, each batch with at most `batch_rows` rows.

    `block_bytes`: how many bytes of a text file are read at once. `encoding`: that of text files,
    as `usable_encoding` returns it. `access`: to the files. Raises ValueError unless both numbers
    are at least 1.
    """

    def __init__(
        self,
        layout: SourceLayout,
        *,
        batch_rows: int = 65_536,
        block_bytes: int = 2 << 20,
        on_bad_file: OnBadFile = "fail",
        on_bad_row: OnBadRow = "fail",
        on_changed_file: OnChangedFile = "fail",
        encoding: str = UTF_8,
        access: FileAccess | None = None,
    ) -> None:
        if batch_rows < 1 or block_bytes < 1:
            raise ValueError(f"batch_rows={batch_rows} and block_bytes={block_bytes} must be >= 1")
        self._layout = layout
        self._output_schema = layout.output_schema
        self._no_rows = pa.RecordBatch.from_pylist([], schema=self._output_schema)
        self._batch_rows = batch_rows
        self._block_bytes = block_bytes
        self._on_bad_file = on_bad_file
        self._on_bad_row = on_bad_row
        self._on_changed_file = on_changed_file
        self._encoding = encoding
        self._access = access or FileAccess()
        self._skipped: list[SkippedFile] = []

    def take_skipped(self) -> list[SkippedFile]:
        """Return what was skipped since the last call; belongs into the next checkpoint."""
        skipped, self._skipped = self._skipped, []
        return skipped

    def read(
        self, split: FileSplit, position: SplitPosition | None = None
    ) -> Generator[ReadBatch, None, None]:
        """The batches of `split` from `position` on (none: from its beginning).

        Raises `FileChanged` if the file's content is not what was enumerated, `FileGone` if it is
        not there, `BadFile` if it cannot be read, and `BadRow` if a row does not fit; all rows
        before the bad one have been yielded by then. `ObjectStoreError` if a store does not answer,
        and SourceUnreadable if it refuses to.
        """
        rows = 0 if position is None else position.rows
        try:
            for read in self._read_unchanged(split, position):
                rows = read.rows.stop
                yield read
        except FileChanged as changed:
            if self._on_changed_file == "fail":
                raise
            skipped = SkippedFile(split.path, split.split_id, f"row {rows}", str(changed))
            self._skipped.append(skipped)

    def _read_unchanged(
        self, split: FileSplit, position: SplitPosition | None
    ) -> Iterator[ReadBatch]:
        try:
            replaced = 0
            while replaced < REPLACED_MAX:
                stamp = self._unchanged(split, position)
                try:
                    for read in self._read_from(split, position, stamp):
                        position, replaced = read.position, 0
                        yield read
                except (ObjectReplaced, ObjectMissing):
                    replaced += 1  # if it was delivered again, reading goes on from where it was
                    continue
                self._unchanged(split, position)
                return
            raise ObjectStoreError(errno.EIO, "it is there, and cannot be read", split.path)
        except BadFile as bad:
            self._require_unchanged_if_there(split)
            if self._on_bad_file == "fail":
                raise
            self._skipped.append(SkippedFile(bad.path, bad.split_id, bad.position, bad.cause))
        except ObjectStoreRefused as error:
            raise SourceUnreadable(split.path, error.strerror) from error

    def _read_from(
        self, split: FileSplit, position: SplitPosition | None, stamp: Stamp
    ) -> Iterator[ReadBatch]:
        if split.format in TYPED:
            yield from self._read_chunks(split, position, stamp)
        else:
            yield from self._read_records(split, position, stamp)

    def _unchanged(self, split: FileSplit, position: SplitPosition | None) -> Stamp:
        """The file's stamp as of now, where rows up to the position were read. Raises FileChanged,
        FileGone, and BadFile if there is none.
        """
        try:
            return self._stamp_if_unchanged(split)
        except ObjectStoreError:
            raise
        except FileNotFoundError as error:
            at = "the beginning" if position is None else f"row {position.rows}"
            said = f"{type(error).__name__}: {error}"
            raise FileGone(split.path, split.split_id, at, said) from error
        except OSError as error:
            raise self._bad(split, None, "the beginning", error) from error

    def _require_unchanged_if_there(self, split: FileSplit) -> None:
        try:
            self._stamp_if_unchanged(split)
        except ObjectStoreError:
            raise
        except OSError:
            return

    def _stamp_if_unchanged(self, split: FileSplit) -> Stamp:
        expected = Stamp(split.size_bytes, split.modified_ns, split.etag)
        found = self._access.stamp_of(split.path)
        if is_as_it_was(expected, found) or (
            found.size_bytes == expected.size_bytes
            and split.checksum is not None
            and is_content(
                self._access.checksum_of(split.path, found, split.format), split.checksum
            )
        ):
            return found
        raise FileChanged(split.path, describe_stamp(expected), describe_stamp(found))

    def _read_chunks(
        self, split: FileSplit, position: SplitPosition | None, stamp: Stamp
    ) -> Iterator[ReadBatch]:
        position = position or SplitPosition(split.start)
        rows, rejected = position.rows, position.rejected
        chunk, taken = position.at, position.skip_rows
        counted = rows + rejected - taken
        conformer = Conformer(self._layout, split)
        unit = "chunk"
        try:
            with contextlib.closing(self._access.chunks(split.path, stamp, split.format)) as file:
                unit, stored = file.unit, set(file.schema.names)
                columns = [name for name in self._layout.own_schema.names if name in stored]
                for chunk in range(position.at, split.end):
                    skip = position.skip_rows if chunk == position.at else 0
                    chunk_rows, told = file.rows_in(chunk), file.rows_before(chunk)
                    rows_before = counted if told is None else told
                    taken = 0
                    for batch in file.batches(chunk, columns, self._batch_rows):
                        before, taken = taken, taken + batch.num_rows
                        if taken <= skip:
                            continue
                        begin = max(skip, before)
                        batch = batch.slice(begin - before)
                        batch = conformer.conform(batch, rows_before + begin + 1)
                        for low, high, lacking in conformer.runs(batch):
                            first = rows
                            rows += 0 if lacking else high - low
                            rejected += 1 if lacking else 0
                            is_last = begin + high == chunk_rows
                            after = SplitPosition(
                                chunk + 1 if is_last else chunk,
                                0 if is_last else begin + high,
                                rows,
                                rejected,
                            )
                            if lacking is None:
                                part = batch.slice(low, high - low)
                                yield ReadBatch(split, part, range(first, rows), after)
                                continue
                            bad = RejectedRow(
                                split.path,
                                rows_before + begin + high,
                                lacking,
                                MISSING,
                                row_as_json(batch, low),
                            )
                            where = f"{unit} {chunk}, row {begin + low}"
                            yield self._without(split, bad, after, where)
                    counted += taken
        except OBJECT_ERRORS:
            raise
        except READ_ERRORS as error:
            raise self._bad(split, stamp, f"{unit} {chunk}, row {taken}", error) from error

    def _read_records(
        self, split: FileSplit, position: SplitPosition | None, stamp: Stamp
    ) -> Iterator[ReadBatch]:
        layout = self._layout
        whole = split.compression != "none" or (split.start, split.end) == (0, split.size_bytes)
        # The enumeration cuts a CSV file only where no field holds a line end.
        ends: RecordEnds = LineEnds()
        quoting = Quoting(layout.dialect)
        if split.format == "csv" and whole:
            ends = quoting
        offset = split.start if position is None else position.at
        now = SplitPosition(offset) if position is None else position
        skip, rows, rejected = now.skip_rows, now.rows, now.rejected
        conformer = Conformer(layout, split)
        form = split.compression, split.format, layout.dialect
        reopened = partial(self._access.open, split.path, stamp, *form)
        try:
            with (
                reopened() as file,
                contextlib.closing(LineCounter(reopened)) as lines,
            ):
                # Each file has its columns in an order of its own.
                header = self._header(file, split)
                names = None if header is None else header.names
                if position is None:
                    offset = self._first_record(file, split, header)
                file.seek(offset)
                records = RecordBlocks(
                    split,
                    self._parser(split, names, quoting),
                    ends,
                    self._encoding,
                    lines,
                    reopened,
                    layout.rescues,
                )
                blocks = record_blocks(
                    file, offset, None if whole else split.end, ends, self._block_bytes
                )
                for block_offset, data in blocks:
                    for piece in records.parse(block_offset, data):
                        offset, table = piece.after, piece.content
                        if isinstance(table, RejectedRow):
                            rejected += 1
                            after = SplitPosition(offset, 0, rows, rejected)
                            yield self._without(split, table, after)
                            continue
                        taken = min(skip, table.num_rows)
                        skip -= taken
                        for batch in table.slice(taken).to_batches(self._batch_rows):
                            taken += batch.num_rows
                            first, rows = rows, rows + batch.num_rows
                            is_last = taken == table.num_rows
                            yield ReadBatch(
                                split,
                                conformer.conform(batch, first + rejected + 1),
                                range(first, rows),
                                SplitPosition(offset, 0, rows, rejected)
                                if is_last
                                else SplitPosition(piece.at, taken, rows, rejected),
                            )
        except OBJECT_ERRORS:
            raise
        except READ_ERRORS as error:
            raise self._bad(split, stamp, f"byte {offset}", error) from error

    def _parser(
        self, split: FileSplit, names: Sequence[str] | None, quoting: Quoting
    ) -> RecordParser | JsonLines | TextLines:
        if split.format == "csv":
            return RecordParser(self._layout, names, quoting, split.path)
        if split.format == "text":
            return TextLines(self._layout)
        return JsonLines(self._layout, split.path)

    def _bad(
        self, split: FileSplit, stamp: Stamp | None, position: str, error: BaseException
    ) -> BadFile:
        now = stamp or Stamp(split.size_bytes, split.modified_ns, split.etag)
        form = split.compression, split.format, self._layout.dialect
        reopened = partial(self._access.open, split.path, now, *form)
        return BadFile(split.path, split.split_id, position, cause_of(error, reopened))

    def _header(self, file: BinaryIO, split: FileSplit) -> Header | None:
        if split.format == "csv" and self._layout.dialect.header:
            return read_header(file, self._layout.dialect, self._encoding)
        return None

    def _first_record(self, file: BinaryIO, split: FileSplit, header: Header | None) -> int:
        if header is not None:
            first = header.end
        else:
            first = data_start(file, split.format, self._layout.dialect, self._encoding)
        # A byte order mark may end within or behind a split.
        return first if split.start <= first else first_record_start(file, split.start)

    def _without(
        self, split: FileSplit, bad: RejectedRow, position: SplitPosition, where: str = ""
    ) -> ReadBatch:
        """No rows but a rejected one. Raises BadRow if bad rows are not rejected."""
        if self._on_bad_row == "fail":
            position_told = position_of(where or bad.line, bad.column_name)
            raise BadRow(split.path, split.split_id, position_told, bad.reason)
        rows = range(position.rows, position.rows)
        return ReadBatch(split, self._no_rows, rows, position, (bad,))
