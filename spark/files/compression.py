"""Compressed files as the bytes that they hold.

Decides which compression an ending of a name means, and which are refused by name. The bytes before
a damage are given out before it is raised, of some compressions but for the last few kilobytes.
Going back begins the file again, so positions are offsets of what is decompressed. Runs on the
driver and in tasks.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Literal, cast

import pyarrow as pa

Compression = Literal["none", "gzip", "bz2", "zstd", "lz4", "zip"]
ENDINGS: Final[MappingProxyType[str, Compression]] = MappingProxyType(
    {
        ".gz": "gzip",
        ".bz2": "bz2",
        ".zst": "zstd",
        ".zstd": "zstd",
        ".lz4": "lz4",
        ".zip": "zip",
    }
)
REFUSED: Final = (".snappy", ".sz", ".xz", ".lzma", ".br", ".lzo", ".z", ".7z", ".tar", ".tgz")
"""Endings of what is compressed, or packed, in another way."""
_SKIPPED_AT_ONCE: Final = 1 << 20
_ARROW_BYTES: Final = 1 << 12
_DAMAGE: Final = (EOFError, OSError, zlib.error, pa.ArrowException)


def compression_of(path: str) -> tuple[str, Compression]:
    """The name without the ending that tells how it is compressed.

    >>> compression_of("a.csv.gz"), compression_of("a.csv")
    (('a.csv', 'gzip'), ('a.csv', 'none'))
    """
    stem, ending = os.path.splitext(path)
    found = ENDINGS.get(ending.lower())
    return (path, "none") if found is None else (stem, found)


def decompressed(raw: BinaryIO, compression: Compression) -> BinaryIO:
    """Return the content of a compressed file; it closes the file with itself."""
    return cast(BinaryIO, _Decompressed(raw, _OPENING[compression]))


def _zip_of_one(raw: BinaryIO) -> Any:
    try:
        packed = zipfile.ZipFile(raw)
        members = [one for one in packed.infolist() if not one.is_dir()]
        if len(members) != 1:
            names = ", ".join(one.filename for one in members[:3]) or "none"
            raise ValueError(f"a zip archive of one file is read, and this one has {names}")
        return packed.open(members[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"the zip archive cannot be read: {error}") from error


def _streaming(codec: str) -> Callable[[BinaryIO], Any]:
    return lambda raw: pa.CompressedInputStream(pa.PythonFile(_Kept(raw), mode="r"), codec)


_OPENING: Final[MappingProxyType[Compression, Callable[[BinaryIO], Any]]] = MappingProxyType(
    {
        "gzip": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
        "zip": _zip_of_one,
        **{codec: _streaming(codec) for codec in ("bz2", "zstd", "lz4")},
    }
)


class _Kept:
    """A file that a stream of Arrow's, which closes what it reads, leaves open."""

    closed = False

    def __init__(self, raw: BinaryIO) -> None:
        self.read = raw.read

    def close(self) -> None:
        """Do nothing: the stream may be begun again."""


class _Decompressed(io.BufferedIOBase):
    def __init__(self, raw: BinaryIO, opening: Callable[[BinaryIO], Any]) -> None:
        self._raw, self._opening = raw, opening
        self._stream, self._at = opening(raw), 0
        self._error: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()

    def read(self, size: int | None = -1) -> bytes:
        wanted = 1 << 62 if size is None or size < 0 else size
        parts: list[bytes] = []
        while wanted and self._error is None:
            try:
                part = self._part(wanted)
            except zipfile.BadZipFile as error:
                self._error = ValueError(str(error))
                break
            except _DAMAGE as error:
                self._error = error
                break
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
            self._at += len(part)
        if not parts and self._error is not None:
            raise self._error
        return b"".join(parts)

    def _part(self, wanted: int) -> bytes:
        if isinstance(self._stream, pa.NativeFile):
            # It gives out nothing of a read that meets a damage.
            return bytes(self._stream.read(min(wanted, _ARROW_BYTES)))
        return bytes(self._stream.read1(min(wanted, _SKIPPED_AT_ONCE)))

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        assert whence == io.SEEK_SET, "a place is counted from the beginning"
        if offset < self._at:
            self._raw.seek(0)
            self._stream, self._at, self._error = self._opening(self._raw), 0, None
        while self._at < offset and self.read(min(offset - self._at, _SKIPPED_AT_ONCE)):
            pass
        return self._at
