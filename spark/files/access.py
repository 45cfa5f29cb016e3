"""The place where the files of a source are: in directories, or behind a URL, found and read alike.

Decides by the path alone which it is. Errors are those of the operating system, and for objects
those of `epochgate.runtime.objects.errors`. Keeps a client for each bucket, and may be shared
between threads. Used on the driver and in tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import BinaryIO, Final, cast

import pyarrow.parquet as pq

from epochgate.runtime.objects.client import (
    ObjectStatus,
    ObjectStore,
    ReadableObjects,
    is_remote,
    is_url,
    open_url,
)
from epochgate.runtime.objects.elsewhere import open_elsewhere
from epochgate.spark.files.avro import AvroChunks
from epochgate.spark.files.checkpoint_directory import compacted_target_of
from epochgate.spark.files.chunks import Chunks, OrcChunks, ParquetChunks, WholeFile
from epochgate.spark.files.compression import Compression, decompressed
from epochgate.spark.files.content import Stamp, checksum_of
from epochgate.spark.files.dialect import Dialect, DialectUnusable
from epochgate.spark.files.errors import SourceUnreadable
from epochgate.spark.files.finding import (
    EMPTY,
    Listing,
    absolute_source,
    find_files,
    is_file_of,
    is_utf_8,
)
from epochgate.spark.files.json_documents import lines_of_json
from epochgate.spark.files.object_file import ObjectFile
from epochgate.spark.files.object_finding import bucket_and_key, find_objects, is_object_of
from epochgate.spark.files.record_lines import RecordLines
from epochgate.spark.files.sheets import SheetLines
from epochgate.spark.files.split import DOCUMENTS, Format
from epochgate.spark.files.xml_documents import lines_of_xml

_CHUNKS: Final[Mapping[Format, Callable[[BinaryIO], Chunks]]] = MappingProxyType(
    {"orc": OrcChunks, "avro": AvroChunks, "binary": WholeFile}
)


class FileAccess:
    """The files of sources by their paths; `open_objects` opens the bucket of an object store."""

    def __init__(self, open_objects: Callable[[str], ObjectStore] = open_url) -> None:
        self._open_objects = open_objects
        self._buckets: dict[str, ReadableObjects] = {}

    def find(self, source: str, *, may_be_none: bool) -> Listing:
        """Return the files that are there. may_be_none: whether a pattern, or the URL of a folder,
        may match no file.

        Raises SourceMissing, SourceUnreadable or ObjectStoreError.
        """
        if not is_remote(source):
            return find_files(source, may_be_none=may_be_none)
        objects, _ = self._place(source)
        return find_objects(objects, source, may_be_none=may_be_none)

    def named(self, source: str, paths: Mapping[str, Stamp | None]) -> dict[str, Stamp | None]:
        """Those of the paths that a listing of the source would have among its files, in order: by
        their names, and of local ones by what is there now. Not the files of a compaction, of which
        only a listing tells whose rows they have.
        """
        is_of = is_object_of if is_remote(source) else is_file_of
        return {
            path: stamp
            for path, stamp in sorted(paths.items())
            if is_utf_8(path) and compacted_target_of(path) is None and is_of(source, path)
        }

    def unread(self, source: str) -> list[tuple[str, str]]:
        """The paths below a source that are not read, in order, and why, as a key of `ADVICE`.

        Raises what `find` raises.
        """
        listing = self.find(absolute_source(source), may_be_none=True)
        for path, stamp in listing.files.items():
            try:
                if (stamp or self.stamp_of(path)).size_bytes == 0:
                    listing.unread[path] = EMPTY
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SourceUnreadable(path, error.strerror) from error
        return sorted(listing.unread.items())

    def stamp_of(self, path: str) -> Stamp:
        """The file's stamp as of now. Raises OSError."""
        if is_remote(path):
            objects, key = self._place(path)
            return _stamp(objects.status(key))
        found = os.stat(path)
        return Stamp(found.st_size, found.st_mtime_ns)

    def open(
        self,
        path: str,
        stamp: Stamp,
        compression: Compression = "none",
        file_format: Format = "text",
        dialect: Dialect | None = None,
    ) -> BinaryIO:
        """The file's bytes, decompressed, and documents as JSON lines; of an object, those that it
        has with this stamp.
        """
        raw: BinaryIO
        if is_remote(path):
            objects, key = self._place(path)
            status = ObjectStatus(key, stamp.size_bytes, stamp.modified_ns, stamp.etag)
            raw = cast(BinaryIO, ObjectFile(objects, status))
        else:
            raw = open(path, "rb")  # noqa: SIM115 - the caller closes it
        try:
            if compression != "none":
                raw = decompressed(raw, compression)
            if file_format in DOCUMENTS:
                return cast(BinaryIO, _documents(raw, file_format, dialect or Dialect()))
        except BaseException:
            raw.close()
            raise
        return raw

    def parquet(
        self,
        path: str,
        stamp: Stamp,
        *,
        verified: bool = False,
        int96_unit: str = "us",
        buffer_bytes: int = 0,
    ) -> pq.ParquetFile:
        """The Parquet file; of an object, as with this stamp. verified: pages by checksums.
        buffer_bytes: how much of a column is read at once; 0 for all of it in a row group.
        """
        # Arrow reads a path without Python.
        source = self.open(path, stamp) if is_remote(path) else path
        return pq.ParquetFile(
            source,
            page_checksum_verification=verified,
            # As nanoseconds, which is Arrow's default, INT96 wraps around outside 1677 to 2262.
            coerce_int96_timestamp_unit=int96_unit,
            buffer_size=buffer_bytes,
        )

    def chunks(self, path: str, stamp: Stamp, file_format: Format) -> Chunks:
        """A file that tells its types; of an object, as with this stamp. Raises AvroMissing."""
        if file_format == "parquet":
            return ParquetChunks(partial(self.parquet, path, stamp))
        if file_format == "orc" and not is_remote(path):
            return OrcChunks(path)
        file = self.open(path, stamp)
        try:
            return _CHUNKS[file_format](file)
        except BaseException:
            file.close()
            raise

    def checksum_of(self, path: str, stamp: Stamp, file_format: Format) -> int:
        """A checksum that stands for the content, see `content`. Raises OSError or EOFError."""
        with self.open(path, stamp) as file:
            return checksum_of(file, file_format, is_object=is_remote(path))

    def _place(self, path: str) -> tuple[ReadableObjects, str]:
        bucket, key = bucket_and_key(path)
        objects = self._buckets.get(bucket)
        if objects is None:
            opening = self._open_objects if is_url(bucket) else open_elsewhere
            objects = self._buckets[bucket] = opening(bucket)
        return objects, key


def _documents(raw: BinaryIO, file_format: Format, dialect: Dialect) -> RecordLines:
    if file_format == "excel":
        return SheetLines(raw, dialect)
    if file_format == "xml":
        if not dialect.row_tag:
            raise DialectUnusable("--row-tag", "", "must name the element of XML that is a row")
        return RecordLines(raw, partial(lines_of_xml, row_tag=dialect.row_tag))
    return RecordLines(raw, lines_of_json)


def _stamp(status: ObjectStatus) -> Stamp:
    return Stamp(status.size_bytes, status.modified_ns, status.etag)
