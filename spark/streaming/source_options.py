"""The options of `spark.readStream.format("epochgate")`, and of `spark.read`, which has those of
`FRAME` and reads files alone.

| option | default | what it says |
|---|---|---|
| source | | a directory, a glob pattern or a URL of files, or MODULE:NAME of a `Source` |
| source.ARGUMENT | | an argument of that class or function, a str; lower case, as Spark has it |
| state | | the directory or URL in which the query's plans are kept |
| maxSplitsPerBatch | 1000 | how many splits (files, or shares of large ones) a batch has at most |
| maxBytesPerBatch | | of files: a batch ends with the split that reaches it |
| partitions | | in how many tasks a batch is read; one for each split otherwise |
| onBadFile | fail | of files: skip leaves a bad file, or the rest of it, out |
| onChangedFile | as onBadFile | of files: skip leaves new content out, new takes all of it |
| settle | 5 | of files: seconds that one must have been unmodified before it is taken |
| storeTimeout | 600 | seconds that a request to the directory `state` may take |
| enumeratorTimeout | 3600 | seconds that a call of the enumerator may take |
| format, batchRows | | of files: as `epochgate ingest --format`; rows of a batch of Arrow |
| delimiter, quote, escape, header, null, encoding | | of text files, as for `epochgate ingest` |
| addColumn | | of files: columns that say where a row comes from, a=file.path,b=file.row |
| schemaHints | | of files: the types of some columns, where those of the others are inferred |
| onBadRow | fail | of text files: rescue puts values that do not fit into a column `_rescued` |
| modifiedAfter, modifiedBefore | | of files: those that were modified after, and before, a time |
| newOnly | false | of files: true passes over those that are there when `state` is first used |
| filter, control, ... | | what prunes splits: `source_filter` |

Decides which are known, and what a value has to be. Runs wherever Spark makes its objects.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from epochgate.errors import instead_of
from epochgate.runtime.entries.waits import STORE_TIMEOUT_S, USUAL, Waits
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.limited import Limit
from epochgate.runtime.objects.client import is_remote, is_url, open_url
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.runtime.source import Source, SourceSplit
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.runtime.source.split import pack_splits
from epochgate.spark.files.content import OnChangedFile
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.reader import OnBadFile
from epochgate.spark.files.rescuing import RESCUED
from epochgate.spark.files.source_columns import SourceColumns, without
from epochgate.spark.files.split import Format, SkippedFile
from epochgate.spark.files.text import UTF_8
from epochgate.spark.streaming.errors import OptionsWrong
from epochgate.spark.streaming.left_out import BadFilesOfStream
from epochgate.spark.streaming.reading_options import (
    OF_FILES,
    Taking,
    added_of,
    dialect_of,
    encoding_of,
    number_of,
    seconds_of,
    taking_of,
)
from epochgate.spark.streaming.source_filter import (
    KNOWN as FILTERING,
    FilePruning,
    SourceFilter,
    insist_on_judging,
    judged,
    parse_filter,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from epochgate.spark.files import FileEnumeration
    from epochgate.spark.files.known_segments import KnownSegments
    from epochgate.spark.streaming.left_segments import LeftSegments

SPLITS_MAX: Final = 1000
SETTLE_S: Final = 5.0
NEW_ONLY: Final = "new-only"
"""Where the files that are passed over lie in `state`."""
FRAMES: Final = "frames"
"""Where the lists of files that `spark.read` has left out lie in `state`."""
BATCH_ROWS: Final = 65_536
ENUMERATOR_TIMEOUT_S: Final = 3600.0
"""The first listing of an object store with millions of files takes many minutes."""
KNOWN: Final = (
    *("source", "path", "state", "maxSplitsPerBatch", "maxBytesPerBatch", "partitions"),
    *("settle", "format", "batchRows", "storeTimeout", "enumeratorTimeout"),
    *("onBadFile", "onChangedFile"),
    *("delimiter", "quote", "escape", "header", "null", "encoding", "addColumn"),
    *OF_FILES,
    *FILTERING,
)
FRAME: Final = (
    *("source", "path", "state", "partitions", "settle", "format", "batchRows"),
    *("onBadFile", "onChangedFile"),
    *("delimiter", "quote", "escape", "header", "null", "encoding", "addColumn"),
    *(name for name in OF_FILES if name != "newOnly"),
)
"""Those of `spark.read`."""
ARGUMENT: Final = "source."
_NAMED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class SourceOptions:
    """The options of a query: what it reads, and how much of it at a time."""

    place: str
    state: str
    splits_max: int | None
    bytes_max: int | None
    partitions: int | None
    settle_s: float
    format: Any
    batch_rows: int
    arguments: Mapping[str, str]
    filter: SourceFilter | None = None
    waits: Waits = USUAL
    on_bad_file: OnBadFile = "fail"
    on_changed_file: OnChangedFile = "fail"
    dialect: Dialect = field(default_factory=Dialect)
    encoding: str = UTF_8
    added: SourceColumns = ()
    taking: Taking = field(default_factory=Taking)

    @property
    def is_named(self) -> bool:
        """True if the source is a class of the user's, and not files."""
        return bool(_NAMED.fullmatch(self.place))

    def enumerated(
        self, stream: str, columns: pa.Schema | None = None, *, is_inferred: bool = False
    ) -> Source:
        """The source as the process beside the driver needs it, whose files have these columns;
        none to infer them. `is_inferred`: as for `read`. Raises OptionsWrong.
        """
        if self.is_named:
            return self._named()
        return self._enumerated(stream, columns, leaves_out_others=not is_inferred)

    def pruning(
        self, source: Source
    ) -> Callable[[Sequence[SourceSplit], SplitFilter], Iterable[bool]]:
        """Return the splits of the source that may have rows that match. Raises OptionsWrong."""
        if not self.is_named:
            return FilePruning().matching
        if self.filter is not None:
            insist_on_judging(source, self.place)
        return judged(source)

    def left(self, stream: str) -> LeftSegments | None:
        """Return what processes before this one have left of the stream; none of a source of a
        user's. Raises OSError.
        """
        if self.is_named:
            return None
        from epochgate.spark.streaming.left_segments import LeftSegments

        return LeftSegments(self._segments(stream), self._enumerated(stream, None))

    def planned(self, columns: pa.Schema, *, is_inferred: bool = False) -> list[SourceSplit]:
        """The splits of the files that are there, as these columns. `is_inferred`: as for `read`.
        Raises what a look raises.
        """
        from epochgate.spark.ingest.file_source import to_source_split

        left = BadFilesOfStream(self.state, FRAMES)
        if self.state:
            left.begin()
        enumeration = self._enumeration(
            None, columns, leaves_out_others=not is_inferred, follow=False
        )
        splits = enumeration.discover()
        for skipped in enumeration.skipped:
            left.note(skipped)
        return [to_source_split(split, enumeration.layout_of(split)) for split in splits]

    def read(self, columns: pa.Schema, is_inferred: bool = False) -> Source:
        """The source as a task needs it; `is_inferred`: whether the columns are those that
        `arrow_schema` has told. Raises OptionsWrong.
        """
        if self.is_named:
            return self._named()
        from epochgate.spark.ingest.file_source import FileSource

        return FileSource(
            batch_rows=self.batch_rows,
            on_bad_file=self.on_bad_file,
            on_bad_row=self.taking.on_bad_row,
            on_changed_file=self.on_changed_file,
            encoding=self.encoding,
            declared=columns,
            is_inferred=is_inferred,
        )

    def events(self, stream: str) -> Callable[[Any], None]:
        """Return the events of a reader as they are told: those of files tell what was left out."""
        if self.is_named:
            return _no_events
        of_stream = BadFilesOfStream(self.state, stream)
        return lambda event: of_stream.note_in_task(SkippedFile.from_list(event))

    def arrow_schema(self) -> pa.Schema:
        """The columns of the files that are there. Raises OptionsWrong."""
        if self.is_named:
            raise OptionsWrong(
                f"which columns {self.place} has cannot be known; say so: "
                '.schema("id long, name string")'
            )
        enumeration = self._enumeration(None, None)
        enumeration.discover()
        if enumeration.layout is None:
            raise OptionsWrong(
                f"there are no files in {self.place} yet from which their columns could be told, "
                'or none that is older than the option settle; say them: .schema("id long")'
            )
        return enumeration.layout.output_schema

    def expect_columns(self, columns: pa.Schema, *, is_inferred: bool) -> None:
        """Refuse hints beside a schema of the user's, and one without the column of rescued values.
        Raises OptionsWrong.
        """
        if self.taking.rescues and RESCUED.name not in columns.names:
            raise OptionsWrong(
                f"onBadRow=rescue adds {RESCUED.name!r}, and .schema(...) has no such column. Name "
                f"it there as well: {RESCUED.name} string"
            )
        if len(self.taking.hints) and not is_inferred:
            raise OptionsWrong(
                "schemaHints and .schema(...) are given together, and the schema has all columns; "
                "leave one of them out"
            )

    def size_of(self, splits: Sequence[SourceSplit]) -> int:
        """Bytes of files; of other splits the bytes of what names them."""
        if self.is_named:
            return len(pack_splits(splits))
        from epochgate.spark.ingest.file_source import to_file_split

        return sum(to_file_split(split).bytes_left(None) for split in splits)

    def _named(self) -> Source:
        module, _, name = self.place.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise OptionsWrong(
                f"there is no {self.place!r} ({error}); the option source names an importable "
                "module and a Source in it, and the module must be installed where Spark's Python "
                "workers run"
            ) from error
        try:
            made = found if isinstance(found, Source) else found(**self.arguments)
        except TypeError as error:
            raise OptionsWrong(
                f"{self.place} cannot be made of {dict(self.arguments)} ({error}); its arguments "
                'are the options source.NAME, as in .option("source.folder", "pages")'
            ) from error
        if not isinstance(made, Source):
            raise OptionsWrong(
                f"{self.place} is a {type(made).__name__}; the option source names an "
                "epochgate.runtime.source.Source, or what makes one"
            )
        return made

    def _enumerated(
        self, stream: str, columns: pa.Schema | None, *, leaves_out_others: bool = False
    ) -> Source:
        from epochgate.spark.ingest.file_enumerator import EnumeratedFileSource, FirstLook

        segments = self._segments(stream)

        def fresh() -> FileEnumeration:
            return self._enumeration(segments, columns, leaves_out_others=leaves_out_others)

        first = fresh()
        if self.taking.new_only:
            self._pass_over(first)
        return EnumeratedFileSource(
            fresh,
            FirstLook(0, first),
            segments,
            follow_every_s=0.0,
            on_skipped=BadFilesOfStream(self.state, stream).note,
        )

    def _pass_over(self, files: FileEnumeration) -> None:
        """Know what was there when a query first used `state`, whichever start of it this is: one
        that has no batch yet is forgotten by Spark.
        """
        kept = self._segments(NEW_ONLY)
        if (begin := kept.begin()) is None:
            files.pass_over()
            kept.keep_begin(begin := files.snapshot())
        files.restore(begin)

    def _enumeration(
        self,
        segments: KnownSegments | None,
        columns: pa.Schema | None,
        *,
        leaves_out_others: bool = False,
        follow: bool = True,
    ) -> FileEnumeration:
        from epochgate.spark.files import FileEnumeration

        return FileEnumeration(
            self.place,
            format=self.format,
            dialect=self.dialect,
            encoding=self.encoding,
            schema=None if columns is None else self._of_files(columns),
            added=self.added,
            hints=self.taking.hints,
            on_bad_row=self.taking.on_bad_row,
            modified=self.taking.modified,
            leaves_out_others=leaves_out_others,
            follow=follow,
            on_bad_file=self.on_bad_file,
            on_changed_file=self.on_changed_file,
            settle_s=self.settle_s,
            segments=segments,
        )

    def _of_files(self, columns: pa.Schema) -> pa.Schema:
        if lacking := [name for name, _ in self.added if name not in columns.names]:
            raise OptionsWrong(
                f"addColumn adds {lacking[0]!r}, and .schema(...) has no such column. Name it "
                "there as well, or leave it out of addColumn"
            )
        return without(columns, self.added, rescues=self.taking.rescues)

    def _segments(self, stream: str) -> KnownSegments:
        from epochgate.spark.files.known_segments import KnownSegments
        from epochgate.spark.ingest.file_enumerator import KNOWN_FILES

        if is_url(self.state):
            return KnownSegments(f"{stream}/{KNOWN_FILES}", ObjectFiles(open_url(self.state)))
        return KnownSegments(os.path.join(self.state, stream, KNOWN_FILES), LocalFileSystem())


def parse_source(options: Mapping[str, str], *, of_frame: bool = False) -> SourceOptions:
    """Those of a stream, or of one `spark.read`. Raises OptionsWrong."""
    arguments = {
        key[len(ARGUMENT) :]: value
        for key, value in options.items()
        if key.lower().startswith(ARGUMENT)
    }
    names = FRAME if of_frame else KNOWN
    known = {name.lower(): name for name in names}
    given = {
        known.get(key.lower(), key): value
        for key, value in options.items()
        if not key.lower().startswith(ARGUMENT)
    }
    if unknown := [name for name in given if name not in names]:
        what = "spark.read" if of_frame else "the source"
        meant = instead_of(unknown[0], names)
        raise OptionsWrong(f"{what} has no option {unknown[0]!r}; {meant}")
    place = given.get("source") or given.get("path")
    if not place:
        raise OptionsWrong(
            'say what is read: .option("source", "landing/"), or "module:Name" of a Source'
        )
    named = bool(_NAMED.fullmatch(place))
    _expect_state(given, of_frame=of_frame, is_named=named)
    formats = get_args(Format)
    if (of := given.get("format")) is not None and of not in formats:
        raise OptionsWrong(f"format={of!r} is none of {', '.join(formats)}")
    state = given.get("state", "")
    return SourceOptions(
        place if named or is_remote(place) else os.path.abspath(place),
        state if is_remote(state) or not state else os.path.abspath(state),
        number_of(given, "maxSplitsPerBatch", SPLITS_MAX),
        number_of(given, "maxBytesPerBatch", None),
        number_of(given, "partitions", None),
        seconds_of(given, "settle", 0.0 if of_frame else SETTLE_S),
        cast("Any", of),
        number_of(given, "batchRows", BATCH_ROWS) or BATCH_ROWS,
        arguments,
        parse_filter(given, is_named=named),
        Waits(
            Limit("storeTimeout", seconds_of(given, "storeTimeout", STORE_TIMEOUT_S)),
            Limit(
                "enumeratorTimeout", seconds_of(given, "enumeratorTimeout", ENUMERATOR_TIMEOUT_S)
            ),
        ),
        *_left_out(given, is_named=named),
        dialect_of(given),
        encoding_of(given),
        added_of(given, is_named=named),
        taking_of(given, is_named=named),
    )


def is_of_frame(options: Mapping[str, str]) -> bool:
    """Return whether `spark.read` has all of these options."""
    names = {name.lower() for name in FRAME}
    return all(key.lower() in names for key in options)


def _expect_state(given: Mapping[str, str], *, of_frame: bool, is_named: bool) -> None:
    if of_frame and is_named:
        raise OptionsWrong("spark.read reads files; a Source of yours is read by spark.readStream")
    if given.get("state"):
        return
    if not of_frame:
        raise OptionsWrong(
            'the source needs .option("state", ...): a directory of the query, or a URL, in which '
            "its plans are kept; beside the checkpoint location is a good place"
        )
    if leaving := [name for name in ("onBadFile", "onChangedFile") if name in given]:
        raise OptionsWrong(
            f'{leaving[0]} of spark.read needs .option("state", ...): a directory, or a URL, in '
            "which the files that are left out are listed"
        )


def _left_out(given: Mapping[str, str], *, is_named: bool) -> tuple[OnBadFile, OnChangedFile]:
    bad = cast("OnBadFile", _one_of(given, "onBadFile", "fail", get_args(OnBadFile), is_named))
    changes = get_args(OnChangedFile)
    changed = cast("OnChangedFile", _one_of(given, "onChangedFile", bad, changes, is_named))
    return bad, changed


def _one_of(
    given: Mapping[str, str], name: str, default: str, known: Sequence[str], is_named: bool
) -> str:
    if is_named and name in given:
        raise OptionsWrong(f"the option {name} is one of files, and the source is a class of yours")
    value = given.get(name, default)
    if value not in known:
        raise OptionsWrong(f"{name}={value!r} is none of {', '.join(known)}")
    return value


def _no_events(event: Any) -> None:
    raise OptionsWrong(
        f"a reader has sent {event!r} to its enumerator; in a streaming query readers come and go "
        "with each batch, and are not heard"
    )
