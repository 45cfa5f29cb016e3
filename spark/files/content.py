"""The identity of a file's content: by its time stamp, and if that differs by its content.

Decides what stands for a file's content: its size, and a checksum of all its bytes. A file that is
touched, restored or delivered again has another time stamp and the same content. An ETag does not
stand for the content: that of an object which was uploaded in parts, or encrypted, is no hash of
it. Of a Parquet object that more than one request would have to read the driver reads the footer
alone; that can tell that the content is another, and not that it is the same. Runs on the driver,
and in tasks.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import BinaryIO, Final, Literal, NamedTuple

from epochgate.spark.files.object_file import FETCH_BYTES
from epochgate.spark.files.split import Format

OnChangedFile = Literal["fail", "skip", "new"]


class Stamp(NamedTuple):
    """A file's size in bytes and its modification time in ns; of an object, its ETag as well.

    Time stamps of objects are those of whole seconds in many stores.
    """

    size_bytes: int
    modified_ns: int
    etag: str = ""


FOOTER_ALONE: Final = 1 << 32
"""Set in the checksum of what is no more than a footer."""
_BLOCK_BYTES: Final = 4 << 20
_PARQUET_END_BYTES: Final = 8


def is_as_it_was(before: Stamp, now: Stamp) -> bool:
    """Return whether a file has not changed, by its stamps alone.

    An ETag is another whenever the object is, unless it is weak (RFC 9110); of the same object, a
    listing and other answers may tell times in different fractions.
    """
    if before == now:
        return True
    is_strong = bool(now.etag) and not now.etag.startswith("W/")
    return is_strong and (before.size_bytes, before.etag) == (now.size_bytes, now.etag)


def checksum_of(file: BinaryIO, file_format: Format, *, is_object: bool) -> int:
    """A CRC-32 that stands for the content, together with the size; of a large Parquet object, of
    its footer, with `FOOTER_ALONE`. Raises what reading raises.
    """
    kind = 0
    if is_object and file_format == "parquet":
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size > FETCH_BYTES:
            kind = FOOTER_ALONE
            file.seek(size - _PARQUET_END_BYTES)
            footer_bytes = int.from_bytes(file.read(4), "little") + _PARQUET_END_BYTES
            file.seek(max(0, size - footer_bytes))
    checksum = 0
    while block := file.read(_BLOCK_BYTES):
        checksum = zlib.crc32(block, checksum)
    return kind | checksum


def is_content(checksum: int, of: int | None) -> bool:
    """Return whether one checksum shows that the content is that of the other."""
    return checksum == of and checksum < FOOTER_ALONE


def describe_stamp(stamp: Stamp) -> str:
    """A stamp in a message.

    >>> describe_stamp(Stamp(7, 1_795_660_881_697_145_391))
    '7 bytes, modified at 2026-11-26T02:41:21.697145391Z'
    """
    etag = f", ETag {stamp.etag}" if stamp.etag else ""
    seconds, ns = divmod(stamp.modified_ns, 10**9)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{stamp.size_bytes} bytes, modified at {at}.{ns:09}Z{etag}"
