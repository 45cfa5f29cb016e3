"""A file as it is found to be when it is taken: its checksum, its layout, and the shares of it.

Decides whether what goes wrong with that is the file's fault, or that of the place where it lies: a
file that cannot be read is bad, and may be left out; a store that does not answer is asked again.
Runs on the driver.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from epochgate.runtime.objects.errors import OBJECT_ERRORS, ObjectStoreRefused
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.agreement import Layouts
from epochgate.spark.files.compression import Compression
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.cutting import byte_ranges, chunk_ranges, row_group_ranges
from epochgate.spark.files.errors import (
    BadFile,
    BadRow,
    MixedFormats,
    SourceUnreadable,
    UnknownFormat,
)
from epochgate.spark.files.finding import escaped, is_utf_8
from epochgate.spark.files.layout import FirstRecordBad, cause_of, format_of
from epochgate.spark.files.lines import LineCounter
from epochgate.spark.files.reader import READ_ERRORS
from epochgate.spark.files.rejected import position_of
from epochgate.spark.files.split import DOCUMENTS, TYPED, Format

Seen = TypeVar("Seen")
_ENDS: Final[Mapping[Format, bytes]] = MappingProxyType({"xml": b">", "json": b"]}", "excel": b""})
"""The last byte of whole documents; a workbook that is cut off cannot be opened."""
_LAST_BYTES: Final = 64


def take_badly_named(paths: dict[str, Stamp | None]) -> list[BadFile]:
    """Take away those whose names cannot be written down, and return an error for each."""
    bad = [path for path in paths if not is_utf_8(path)]
    for path in bad:
        del paths[path]
    cause = "its name is no UTF-8; rename the file"
    return [BadFile(escaped(path), escaped(path), "its name", cause) for path in bad]


def stamp_if_there(access: FileAccess, path: str) -> Stamp | None:
    """The file's stamp as of now; none for one that is gone. Raises SourceUnreadable, or one of
    OBJECT_ERRORS.
    """
    try:
        return access.stamp_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def one_format_of(path: str, given: Format | None, layouts: Layouts) -> tuple[Format, Compression]:
    """The format of a file, which is that of all. Raises UnknownFormat or MixedFormats."""
    file_format, compression = format_of(path, given)
    if file_format is None:
        raise UnknownFormat(path)
    layout = layouts.newest
    if layout is not None and layout.format != file_format:
        raise MixedFormats(layouts.first_path, layout.format, path, file_format)
    return file_format, compression


def checksum_of_file(access: FileAccess, path: str, stamp: Stamp, file_format: Format) -> int:
    """Return the text that stands for the content. Raises BadFile, SourceUnreadable, or one of
    OBJECT_ERRORS.
    """
    return _looked_at(path, lambda: access.checksum_of(path, stamp, file_format))


def is_cut_off(
    access: FileAccess, path: str, stamp: Stamp, file_format: Format, compression: Compression
) -> bool:
    """Return whether the last line of a text file has no end, or a document ends within a value or
    tag, so that its writer may be at it; of a compressed one that does not show. Raises what
    `checksum_of_file` raises.
    """
    ends = _ENDS.get(file_format, b"" if file_format in TYPED else b"\n")
    if not ends or compression != "none":
        return False

    def last_bytes() -> bytes:
        with access.open(path, stamp) as file:
            file.seek(max(0, stamp.size_bytes - _LAST_BYTES))
            return file.read(_LAST_BYTES)

    last = _looked_at(path, last_bytes)
    # Blanks, also those of UTF-16, may follow a document.
    last = last.rstrip(b" \t\r\n\0") if file_format in DOCUMENTS else last
    return last[-1:] not in [bytes([end]) for end in ends]


def _looked_at(path: str, look: Callable[[], Seen]) -> Seen:
    try:
        return look()
    except (PermissionError, *OBJECT_ERRORS) as error:
        raise unreadable(path, error) from error
    except OSError as error:
        cause = f"{type(error).__name__}: {error}"
        raise BadFile(path, path, "the beginning", cause) from error


def shares_of(
    access: FileAccess,
    layouts: Layouts,
    bytes_target: int,
    path: str,
    stamp: Stamp,
    file_format: Format,
    compression: Compression,
) -> tuple[int, list[tuple[int, int]]]:
    """The index of the file's layout, and its shares; none of it if it has no row.

    Raises what `Layouts` and `checksum_of_file` raise.
    """
    try:
        if file_format == "parquet":
            with access.parquet(path, stamp) as file:
                layout = layouts.of_typed(path, file_format, file.schema_arrow)
                return layout, row_group_ranges(file.metadata, stamp.size_bytes, bytes_target)
        if file_format in TYPED:
            with contextlib.closing(access.chunks(path, stamp, file_format)) as chunks:
                layout = layouts.of_typed(path, file_format, chunks.schema)
                if layouts[layout].numbers_rows:
                    bytes_target = stamp.size_bytes  # as below
                return layout, chunk_ranges(chunks.count, stamp.size_bytes, bytes_target)
        with access.open(path, stamp, compression, file_format, layouts.dialect) as text:
            found = layouts.of_text(path, file_format, text)
            if found is None:
                return 0, []
            dialect, size = layouts[found].dialect, stamp.size_bytes
            if layouts[found].counts_rows:
                bytes_target = size  # the rows before a share would have to be counted
            return found, byte_ranges(text, size, file_format, compression, dialect, bytes_target)
    except OBJECT_ERRORS as error:
        raise unreadable(path, error) from error
    except READ_ERRORS as error:
        form = layouts.dialect
        reopened = partial(access.open, path, stamp, compression, file_format, form)
        if isinstance(error, FirstRecordBad):
            offset, column, reason = error.args
            with contextlib.closing(LineCounter(reopened)) as lines:
                where = position_of(lines.line_at(offset), column)
            raise BadRow(path, path, where, reason) from error
        raise BadFile(path, path, "the beginning", cause_of(error, reopened)) from error


def unreadable(path: str, error: OSError) -> OSError | SourceUnreadable:
    """Return the exception to raise for an error: a store that does not answer may answer later."""
    is_mendable = isinstance(error, OBJECT_ERRORS) and not isinstance(error, ObjectStoreRefused)
    return error if is_mendable else SourceUnreadable(path, error.strerror)
