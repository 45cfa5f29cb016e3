"""Whether a file still holds what it held: by its time stamp, and if that differs by its content.

Decides what stands for a file's content: its size, and a checksum of all bytes of a text file, or
of a Parquet file's footer, which has the place, size and statistics of every column chunk. A file
that is touched, restored or delivered again has another time stamp and the same content. Runs on
the driver, and in tasks.
"""

from __future__ import annotations

import os
import zlib
from typing import Literal

from epochgate.spark.files.split import Format

OnChangedFile = Literal["fail", "skip", "new"]
Stamp = tuple[int, int]
"""A file's size in bytes and its modification time in ns."""

_BLOCK_BYTES = 4 << 20
_PARQUET_END_BYTES = 8


def stamp_of(path: str) -> Stamp:
    """The file's stamp as of now. Raises OSError."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def checksum_of(path: str, file_format: Format) -> int:
    """A CRC-32 that stands for the content, together with the size. Raises OSError."""
    with open(path, "rb") as file:
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
    return f"{stamp[0]} bytes, modified at {stamp[1]} ns"
