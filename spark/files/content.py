"""Whether a file still holds what it held: by its time stamp, and if that differs by its content.

Decides what stands for a file's content: its size, and a checksum of all bytes of a text file, or
of a Parquet file's footer, which has the place, size and statistics of every column chunk. A file
that is touched, restored or delivered again has another time stamp and the same content. An ETag
does not stand for the content: that of an object which was uploaded in parts, or encrypted, is no
hash of it. Runs on the driver, and in tasks.
"""

from __future__ import annotations

import os
import zlib
from typing import BinaryIO, Literal, NamedTuple

from epochgate.spark.files.split import Format

OnChangedFile = Literal["fail", "skip", "new"]


class Stamp(NamedTuple):
    """A file's size in bytes and its modification time in ns; of an object, its ETag as well.

    Time stamps of objects are those of whole seconds in many stores.
    """

    size_bytes: int
    modified_ns: int
    etag: str = ""


_BLOCK_BYTES = 4 << 20
_PARQUET_END_BYTES = 8


def is_as_it_was(before: Stamp, now: Stamp) -> bool:
    """Whether a file has not changed, by its stamps alone.

    An ETag is another whenever the object is, unless it is weak (RFC 9110); of the same object, a
    listing and other answers may tell times in different fractions.
    """
    if before == now:
        return True
    is_strong = bool(now.etag) and not now.etag.startswith("W/")
    return is_strong and (before.size_bytes, before.etag) == (now.size_bytes, now.etag)


def checksum_of(file: BinaryIO, file_format: Format) -> int:
    """A CRC-32 that stands for the content, together with the size. Raises what reading raises."""
    if file_format == "parquet":
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _PARQUET_END_BYTES))
        footer = int.from_bytes(file.read(4), "little") + _PARQUET_END_BYTES
        file.seek(max(0, size - footer))
    checksum = 0
    while block := file.read(_BLOCK_BYTES):
        checksum = zlib.crc32(block, checksum)
    return checksum


def describe_stamp(stamp: Stamp) -> str:
    """A stamp in a message."""
    etag = f", ETag {stamp.etag}" if stamp.etag else ""
    return f"{stamp.size_bytes} bytes, modified at {stamp.modified_ns} ns{etag}"
