"""Finds the files of a source, fixes their common layout and cuts them into splits.

Decides: which files count, in which order, as how many splits, and what the checkpoint holds.
Leaves to others: which subtask gets which split (the coordinator), and reading (`reader`).
Lives on the driver; `discover` reads directories, footers and samples, so call it off the protocol
thread, on a `copy` whose findings the original can `adopt` there. Not thread-safe.

Which files count: those below a directory (links to directories are not followed), those that
match a pattern, or the one named. Not: names beginning with '.' or '_', also of directories below
the source; empty files; endings of unfinished files (`UNFINISHED_SUFFIXES`).

When a file counts: it must be complete when it is first seen, so programs should write under a
name that does not count and rename. For those that do not, a followed source waits until the file
has been unmodified for `settle_s`, by its own time stamp or between two scans. A file that
changes after it was enumerated is an error, found here or by the reader.

How files are cut: into the fewest shares of at most `split_bytes_target` bytes (Parquet: whole row
groups, by compressed size). A CSV file larger than the target is read once to see whether a quoted
field might hold a line end; if so it remains one split. Compressed files are one split.
"""

from __future__ import annotations

import copy
import glob
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.errors import UsageError
from epochgate.spark.files.checkpoint_directory import checkpoint_of
from epochgate.spark.files.errors import (
    BadFile,
    FileChanged,
    IncompatibleState,
    MixedFormats,
    PartitionedSource,
    SchemaChanged,
    SourceEmpty,
    SourceMissing,
    SourceUnreadable,
    UnknownFormat,
)
from epochgate.spark.files.layout import (
    UNFINISHED_SUFFIXES,
    describe,
    format_of,
    has_same_columns,
    infer_schema,
    normal_schema,
    open_bytes,
    read_header,
)
from epochgate.spark.files.reader import READ_ERRORS, OnBadFile
from epochgate.spark.files.records import has_quoted_line_ends
from epochgate.spark.files.split import Compression, FileSplit, Format, SkippedFile, SourceLayout

STATE_VERSION = 1
SPLIT_BYTES_TARGET = 64 << 20
SAMPLE_BYTES_MAX = 8 << 20
SETTLE_S = 1.0

_Stamp = tuple[int, int]
"""A file's size in bytes and its modification time in ns."""


class FileEnumeration:
    """The files of one source, and the splits of them that nobody has yet.

    source: a directory, a glob pattern (`**` for any depth) or a file. format: none to go by the
    extension. schema: none to take the first file's (Parquet always takes it). projection: the
    columns to read. split_bytes_target: bytes of a file to a split; sample_bytes_max: bytes of the
    first file that its schema is inferred from. follow: whether more files may come; only then may
    there be none. settle_s: seconds, see the module; by default 1 if following, else 0. now:
    seconds since 1970. Raises `UsageError` for a source that is a URL, and for splits of no byte.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        format: Format | None = None,
        schema: pa.Schema | None = None,
        projection: Sequence[str] | None = None,
        header: bool = True,
        delimiter: str = ",",
        split_bytes_target: int = SPLIT_BYTES_TARGET,
        sample_bytes_max: int = SAMPLE_BYTES_MAX,
        follow: bool = False,
        settle_s: float | None = None,
        on_bad_file: OnBadFile = "fail",
        now: Callable[[], float] = time.time,
    ) -> None:
        if split_bytes_target < 1:
            raise UsageError(f"split_bytes_target={split_bytes_target} must be at least 1 byte")
        if "://" in os.fspath(source):
            raise UsageError(
                f"source {os.fspath(source)!r} is a URL; only paths of mounted file systems can be "
                "read. Mount it, or copy the files to a directory."
            )
        self.source = os.path.abspath(source)
        self._format = format
        self._given_schema = None if schema is None else normal_schema(schema)
        self._projection = None if projection is None else tuple(projection)
        self._header = header
        self._delimiter = delimiter
        self._split_bytes_target = split_bytes_target
        self._sample_bytes_max = sample_bytes_max
        self._follow = follow
        self._settle_s = (SETTLE_S if follow else 0.0) if settle_s is None else settle_s
        self._on_bad_file = on_bad_file
        self._now = now

        self._layout: SourceLayout | None = None
        self._first_path = ""
        self._seen: dict[str, _Stamp] = {}
        self._pending: deque[FileSplit] = deque()
        self._skipped: list[SkippedFile] = []
        self._settling: dict[str, tuple[_Stamp, float]] = {}

    @property
    def layout(self) -> SourceLayout | None:
        """What readers need to know; none until one file with a row is found."""
        return self._layout

    @property
    def seen(self) -> Sequence[str]:
        """The paths that have been enumerated or skipped."""
        return tuple(self._seen)

    @property
    def pending(self) -> Sequence[FileSplit]:
        """The splits that nobody has, in the order in which they will be given out."""
        return tuple(self._pending)

    @property
    def skipped(self) -> Sequence[SkippedFile]:
        """Files left out because they are bad, if bad files are skipped."""
        return tuple(self._skipped)

    @property
    def settling(self) -> Sequence[str]:
        """Files that were found and may still be being written."""
        return tuple(self._settling)

    def next_split(self) -> FileSplit | None:
        """Give out the next split; none if there is none now."""
        return self._pending.popleft() if self._pending else None

    def add_back(self, splits: Iterable[FileSplit]) -> None:
        """Take splits back that were given out; they are the next to be given out again."""
        self._pending.extendleft(reversed(list(splits)))

    def discover(self) -> list[FileSplit]:
        """Look for new files, and return their splits, which are pending from now on.

        Raises what says how the source is wrong: `SourceMissing`, `SourceEmpty`,
        `SourceUnreadable`, `UnknownFormat`, `MixedFormats`, `PartitionedSource`, and, unless bad
        files are skipped, `SchemaChanged` and `BadFile`; and `FileChanged`. After an error, the
        files before the one it names are enumerated, and the next call begins with that file.
        """
        new: list[FileSplit] = []
        for path in self._find():
            stamp = self._stamp(path)
            if stamp is None or not self._is_new(path, stamp) or not self._is_settled(path, stamp):
                continue
            file_format, compression = self._format_of(path)
            try:
                splits = self._enumerate(path, stamp, file_format, compression)
            except (BadFile, SchemaChanged) as bad:
                if self._on_bad_file == "fail":
                    raise
                position = bad.position if isinstance(bad, BadFile) else "the beginning"
                reason = bad.cause if isinstance(bad, BadFile) else str(bad)
                self._skipped.append(SkippedFile(path, path, position, reason))
                splits = []
            self._seen[path] = stamp
            self._settling.pop(path, None)
            self._pending.extend(splits)
            new.extend(splits)
        if not self._follow and not self._seen and not self._settling:
            raise SourceEmpty(self.source)
        return new

    def copy(self) -> FileEnumeration:
        """An enumeration that knows the same, of which nothing is shared that changes."""
        other = copy.copy(self)
        other._seen, other._settling = dict(self._seen), dict(self._settling)
        other._pending, other._skipped = deque(self._pending), list(self._skipped)
        return other

    def adopt(self, found: FileEnumeration) -> None:
        """Take over what a copy has found since: its pending splits come behind those here."""
        self._layout, self._first_path = found._layout, found._first_path
        self._seen, self._settling = dict(found._seen), dict(found._settling)
        self._skipped = list(found._skipped)
        self._pending.extend(found._pending)

    def forget_pending(self) -> None:
        """Leave the pending splits to another who has taken them over."""
        self._pending.clear()

    def snapshot(self) -> bytes:
        """The layout, files seen, splits pending and files skipped, as versioned msgpack."""
        values = [
            STATE_VERSION,
            self.source,
            self._first_path,
            None if self._layout is None else self._layout.to_bytes(),
            [[path, *stamp] for path, stamp in self._seen.items()],
            [split.to_list() for split in self._pending],
            [skipped.to_list() for skipped in self._skipped],
        ]
        packed: bytes = msgpack.packb(values)
        return packed

    def restore(self, data: bytes) -> None:
        """Continue from what `snapshot` returned.

        Raises `IncompatibleState` for another version, and `UsageError` for another source or other
        columns.
        """
        version, *values = msgpack.unpackb(data)
        if version != STATE_VERSION:
            raise IncompatibleState("enumeration of files", version, STATE_VERSION)
        source, first_path, layout, seen, pending, skipped = values
        if source != self.source:
            raise UsageError(
                f"the checkpoint is of source {source!r}, this job reads {self.source!r}. Give the "
                "same source, or start afresh with a new checkpoint directory and a new target."
            )
        restored = None if layout is None else SourceLayout.from_bytes(layout)
        if restored is not None and restored.projection != self._projection:
            raise UsageError(
                f"the checkpoint is of a job that reads columns {_columns(restored.projection)}, "
                f"this one is to read {_columns(self._projection)}. Ask for the same columns, or "
                "start afresh with a new checkpoint directory and a new target."
            )
        self._layout = restored
        self._first_path = first_path
        self._seen = {path: (size, modified) for path, size, modified in seen}
        self._pending = deque(FileSplit.from_list(split) for split in pending)
        self._skipped = [SkippedFile.from_list(value) for value in skipped]
        self._settling = {}

    def _find(self) -> list[str]:
        source = self.source
        try:
            if os.path.isdir(source):
                return sorted(_walk(source))
            if os.path.lexists(source):
                return [source]
            if not glob.has_magic(source):
                raise SourceMissing(source)
            root = _literal_root(source)
            if not os.path.isdir(root):
                raise SourceMissing(source)
            # glob ignores what it may not list; the user has to know.
            os.listdir(root)
        except OSError as error:
            raise SourceUnreadable(error.filename or source, error.strerror) from error
        matches = [
            path
            for path in glob.glob(source, recursive=True)
            if os.path.isfile(path) and _counts(os.path.relpath(path, root))
        ]
        if not matches and not self._seen and not self._follow:
            raise SourceMissing(source)
        return sorted(matches)

    def _stamp(self, path: str) -> _Stamp | None:
        """None for a file that is empty, or gone since it was listed."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnreadable(path, error.strerror) from error
        return (found.st_size, found.st_mtime_ns) if found.st_size > 0 else None

    def _is_new(self, path: str, stamp: _Stamp) -> bool:
        seen = self._seen.get(path)
        if seen is None or seen == stamp:
            return seen is None
        changed = FileChanged(
            path,
            f"{seen[0]} bytes, modified at {seen[1]} ns",
            f"{stamp[0]} bytes, modified at {stamp[1]} ns",
        )
        if self._on_bad_file == "fail":
            raise changed
        self._skipped.append(SkippedFile(path, path, f"byte {seen[0]}", str(changed)))
        self._seen[path] = stamp
        return False

    def _is_settled(self, path: str, stamp: _Stamp) -> bool:
        now = self._now()
        if self._settle_s <= 0 or now - stamp[1] / 1e9 >= self._settle_s:
            return True
        before, since = self._settling.get(path, (None, now))
        if before != stamp:
            since = now
        self._settling[path] = (stamp, since)
        return now - since >= self._settle_s

    def _format_of(self, path: str) -> tuple[Format, Compression]:
        below = os.path.dirname(os.path.relpath(path, self.source)).split(os.sep)
        # The number of a checkpoint is no data of the target that is read here.
        if os.path.isdir(self.source) and any(
            "=" in name and checkpoint_of(name) is None for name in below
        ):
            raise PartitionedSource(path)
        file_format, compression = format_of(path, self._format)
        if file_format is None:
            raise UnknownFormat(path)
        if self._layout is not None and self._layout.format != file_format:
            raise MixedFormats(self._first_path, self._layout.format, path, file_format)
        return file_format, compression

    def _enumerate(
        self, path: str, stamp: _Stamp, file_format: Format, compression: Compression
    ) -> list[FileSplit]:
        try:
            if file_format == "parquet":
                ranges = self._row_group_ranges(path)
            else:
                ranges = self._byte_ranges(path, stamp[0], file_format, compression)
        except PermissionError as error:
            raise SourceUnreadable(path, error.strerror) from error
        except READ_ERRORS as error:
            raise BadFile(
                path, path, "the beginning", f"{type(error).__name__}: {error}"
            ) from error
        return [FileSplit(path, file_format, compression, *stamp, *range_) for range_ in ranges]

    def _row_group_ranges(self, path: str) -> list[tuple[int, int]]:
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
            self._agree(path, "parquet", normal_schema(file.schema_arrow))
        ranges: list[tuple[int, int]] = []
        start, gathered = 0, 0
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            columns = range(row_group.num_columns)
            size = sum(row_group.column(column).total_compressed_size for column in columns)
            if gathered and gathered + size > self._split_bytes_target:
                ranges.append((start, group))
                start, gathered = group, 0
            gathered += size
        if metadata.num_rows:
            ranges.append((start, metadata.num_row_groups))
        return ranges

    def _byte_ranges(
        self, path: str, size: int, file_format: Format, compression: Compression
    ) -> list[tuple[int, int]]:
        with open_bytes(path, compression) as file:
            if self._layout is None:
                schema = self._given_schema or infer_schema(
                    file, file_format, self._header, self._delimiter, self._sample_bytes_max
                )
                if schema is None:
                    return []
                self._agree(path, file_format, schema)
            if file_format == "csv" and self._header:
                self._agree_on_names(path, read_header(file, self._delimiter)[0])
            count = -(-size // self._split_bytes_target)
            if compression != "none" or count == 1:
                return [(0, size)]
            if file_format == "csv":
                file.seek(0)
                if has_quoted_line_ends(file):
                    return [(0, size)]
        return [(size * share // count, size * (share + 1) // count) for share in range(count)]

    def _agree(self, path: str, file_format: Format, schema: pa.Schema) -> None:
        if self._layout is None:
            layout = SourceLayout(
                file_format, schema, self._header, self._delimiter, self._projection
            )
            missing = set(self._projection or ()) - set(schema.names)
            if missing or self._projection == ():
                raise UsageError(
                    f"columns {sorted(missing)} are not in {path!r}, which has {schema.names}. "
                    "Ask for at least one of these."
                )
            self._layout, self._first_path = layout, path
            return
        expected = self._layout.schema
        if not has_same_columns(schema, expected):
            raise SchemaChanged(path, describe(schema), self._first_path, describe(expected))

    def _agree_on_names(self, path: str, names: tuple[str, ...]) -> None:
        if self._layout is not None and names != tuple(self._layout.schema.names):
            expected = describe(self._layout.schema)
            raise SchemaChanged(path, ", ".join(names), self._first_path, expected)


def _walk(directory: str) -> Iterable[str]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, directories, names in os.walk(directory, onerror=refuse):
        directories[:] = [name for name in directories if _counts(name)]
        yield from (os.path.join(parent, name) for name in names if _counts(name))


def _counts(path: str) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.split(os.sep))
    return not hidden and not path.endswith(UNFINISHED_SUFFIXES)


def _literal_root(pattern: str) -> str:
    root = pattern
    while glob.has_magic(root):
        root = os.path.dirname(root)
    return root


def _columns(projection: Sequence[str] | None) -> str:
    return "(all)" if projection is None else ", ".join(projection)
