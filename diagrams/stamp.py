"""A PNG that knows what it was drawn from, so that a stale one is found without comparing pixels.

The digest of the DOT source goes into a text chunk of the PNG (PNG specification, 11.3.3.3), where
viewers ignore it. What makes a PNG stale is decided here; drawing and comparing are the callers'.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator

from epochgate.errors import EpochgateError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"Source"


class NotPng(EpochgateError):
    """The bytes are not those of a PNG."""


def stamp(png: bytes, source: str) -> bytes:
    """Return `png` with the digest of `source` in it, replacing an earlier one.

    Raises NotPng when `png` is not one.
    """
    text = _KEYWORD + b"\0" + digest(source).encode()
    chunks = [(kind, body) for kind, body in _chunks(png) if not _is_stamp(kind, body)]
    # The header chunk has to stay first.
    chunks.insert(1, (b"tEXt", text))
    return _SIGNATURE + b"".join(_packed(kind, body) for kind, body in chunks)


def is_stale(png: bytes, source: str) -> bool:
    """Return whether `png` was drawn from something other than `source`, or has no stamp."""
    expected = _KEYWORD + b"\0" + digest(source).encode()
    return all(body != expected for kind, body in _chunks(png) if _is_stamp(kind, body))


def digest(source: str) -> str:
    """Return the SHA-256 of a diagram's source, in hexadecimal.

    >>> digest("digraph { a -> b }")[:8]
    '0e2fa974'
    """
    return hashlib.sha256(source.encode()).hexdigest()


def _is_stamp(kind: bytes, body: bytes) -> bool:
    return kind == b"tEXt" and body.startswith(_KEYWORD + b"\0")


def _packed(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(_SIGNATURE):
        raise NotPng(f"A PNG begins with {_SIGNATURE!r}, this begins with {png[:8]!r}.")
    at = len(_SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += 12 + length
