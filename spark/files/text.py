"""Text as UTF-8, the one encoding that is parsed, or where in a file it is none.

Decides which encodings a source may have: those of one byte for each character in which ASCII
stands for itself, so that records, fields and quotes are found without decoding. Runs on the driver
and in tasks.
"""

from __future__ import annotations

import codecs
from typing import BinaryIO

from epochgate.errors import UsageError

UTF_8 = "utf-8"
_ASCII = bytes(range(128))
_BLOCK_BYTES = 1 << 20


class EncodingUnusable(UsageError):
    """The files of a source cannot be read in this encoding: its name, why."""

    def __str__(self) -> str:
        return (
            f"--encoding {self.args[0]} (encoding in Python): {self.args[1]}. Give utf-8 or an "
            "encoding with one byte for each character, such as latin-1 or cp1252; files in others "
            "are to be converted to UTF-8, by `iconv` for instance."
        )


class NotText(ValueError):
    """Bytes that the encoding does not have."""

    def __init__(self, encoding: str, at: int, byte: int) -> None:
        super().__init__(f"byte 0x{byte:02X} at {at} is not {encoding}")
        self.encoding, self.at, self.byte = encoding, at, byte


def usable_encoding(name: str) -> str:
    """The encoding's own name. Raises EncodingUnusable."""
    try:
        encoding = codecs.lookup(name).name
        letters = bytes(range(256)).decode(encoding, "replace")
    except (LookupError, UnicodeError, TypeError) as error:
        raise EncodingUnusable(name, str(error)) from None
    if encoding != UTF_8 and (len(letters) != 256 or letters[:128].encode() != _ASCII):
        raise EncodingUnusable(name, "its characters are not one byte each, beginning with ASCII")
    return encoding


def as_utf8(data: bytes, encoding: str, offset: int = 0) -> bytes:
    """The text in UTF-8. Raises NotText with the place in the file; `offset` is that of `data`."""
    if data.isascii():
        return data
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotText(encoding, offset + error.start, data[error.start]) from None
    return data if encoding == UTF_8 else text.encode()


def explain(error: NotText, file: BinaryIO) -> str:
    """Explain the fault, with the line, counted in `file` from 1."""
    file.seek(0)
    line, left = 1, error.at
    while left and (block := file.read(min(left, _BLOCK_BYTES))):
        line, left = line + block.count(b"\n"), left - len(block)
    return (
        f"line {line} is not {error.encoding} (byte 0x{error.byte:02X}). Name the encoding of the "
        "files, for instance --encoding latin-1 (encoding in Python), or convert them to UTF-8"
    )
