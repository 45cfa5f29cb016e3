"""The texts of other files beside the first, from which the types of a source are inferred as well.

Decides which files are looked at: some of those that are there at first, spread evenly over their
order, each up to a share of the bytes of a sample. One that cannot be read tells nothing, and is
told of when it is taken. A last line without an end counts where files are complete when they are
there. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import pyarrow as pa

from epochgate.spark.files.asked import Reading
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.layout import data_start, read_header
from epochgate.spark.files.parsing import no_value_of, parse_csv, without
from epochgate.spark.files.quoting import RecordMalformed
from epochgate.spark.files.reader import READ_ERRORS
from epochgate.spark.files.records import LineEnds, csv_record_ends
from epochgate.spark.files.split import Format
from epochgate.spark.files.text import NotText, as_utf8

FILES_MAX: Final = 16
"""How many files are looked at, beside the first."""


class Sample:
    """Some of the files of a source at these paths; `opened` opens one for reading.
    are_complete: whether none of them may still be being written.
    """

    def __init__(
        self,
        paths: Mapping[str, Stamp | None] = MappingProxyType({}),
        opened: Callable[[str, Stamp | None], BinaryIO] | None = None,
        *,
        are_complete: bool = False,
    ) -> None:
        self._paths = {path: paths[path] for path in spread(list(paths), FILES_MAX + 1)}
        self._opened, self._are_complete = opened, are_complete

    def json_lines(self, path: str, reading: Reading) -> bytes:
        """JSON lines of the files but the one at `path`, in UTF-8."""
        parts = [text for _, text in self._texts(path, "jsonl", reading)]
        return b"\n".join(parts)

    def csv_texts(
        self, path: str, names: Sequence[str], reading: Reading
    ) -> Mapping[str, list[pa.Array]]:
        """The texts of columns of the files but the one at `path`, null where there is no value.
        `names`: those of the columns, where files have no header.
        """
        found: dict[str, list[pa.Array]] = {}
        nothing = no_value_of(reading.dialect)
        for header, text in self._texts(path, "csv", reading):
            columns = header or names
            kinds = pa.schema([pa.field(name, pa.string()) for name in columns])
            try:
                table = parse_csv(text, columns, reading.dialect, kinds, None, _leave)
            except (pa.ArrowException, RecordMalformed):
                continue
            for name in columns:
                found.setdefault(name, []).extend(without(table.column(name), nothing).chunks)
        return found

    def _texts(
        self, path: str, file_format: Format, reading: Reading
    ) -> list[tuple[tuple[str, ...], bytes]]:
        """Of each file the names in its header, if it has one, and whole records."""
        found = []
        for other, stamp in self._paths.items():
            if other == path:
                continue
            try:
                assert self._opened is not None
                with self._opened(other, stamp) as file:
                    found.append(_begin_of(file, file_format, reading, self._are_complete))
            except (NotText, RecordMalformed, *READ_ERRORS):
                continue
        return found


def _begin_of(
    file: BinaryIO, file_format: Format, reading: Reading, is_complete: bool
) -> tuple[tuple[str, ...], bytes]:
    dialect, encoding = reading.dialect, reading.encoding
    is_csv = file_format == "csv"
    names = read_header(file, dialect, encoding).names if is_csv and dialect.header else ()
    start = data_start(file, file_format, dialect, encoding)
    file.seek(start)
    most = reading.sample_bytes_max // FILES_MAX
    data = file.read(most)
    ends = csv_record_ends(dialect) if is_csv else LineEnds()
    whole = len(data) if is_complete and len(data) < most else ends.last(data)
    return names, as_utf8(data[:whole], encoding, start)


def _leave(_: Any) -> str:
    return "skip"


def spread(paths: Sequence[str], most: int) -> list[str]:
    """Take `most` of them at the most, from the first to the last.

    >>> spread("abcdefghi", 3)
    ['a', 'e', 'i']
    """
    if len(paths) <= most:
        return list(paths)
    return [paths[at * (len(paths) - 1) // (most - 1)] for at in range(most)]
