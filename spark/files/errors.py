"""Errors of a source of files, one exception type per cause.

Every type keeps its facts as constructor arguments, so it survives being pickled between processes.
"""

from __future__ import annotations

import os
import shlex

from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.objects.client import is_remote
from epochgate.runtime.objects.errors import advice
from epochgate.spark.files.compression import ENDINGS, REFUSED


class SourceMissing(UsageError):
    """Neither a file, nor a directory, nor a pattern that matches a file: the source, and what
    matches it and is not read, if anything does.
    """

    def __str__(self) -> str:
        if any(self.args[1:]):
            return f"source {self.args[0]!r} matches no file that is read. {_listed(*self.args)}"
        what = f"source {self.args[0]!r} does not exist, or no file matches it"
        if is_remote(self.args[0]):
            return f"{what}. Check the spelling, capitals too; a prefix ends where a name ends."
        return (
            f"{what}. Check the spelling and the working directory; the path must be the same on "
            "every machine that reads it."
        )


class SourceEmpty(UsageError):
    """There is a source, and not one file in it that could be read: the source, and what is not
    read, if anything is there.
    """

    def __str__(self) -> str:
        return (
            f"source {self.args[0]!r} holds no data file. {_listed(*self.args)} Wait until "
            "the files are there, or follow the directory with --follow (follow=True in Python) to "
            "have them read as they appear."
        )


def _listed(source: str, unread: str = "") -> str:
    listed = f"`epochgate unread {shlex.quote(source)}` lists them with the reasons"
    return f"Not read: {unread}; {listed}." if unread else "Nothing is there."


class SourceCompacted(UsageError):
    """Files that were read, or are to be, have become part of another: the target, the new file."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r}, which this job reads, was compacted: {self.args[1]!r} holds rows "
            "of files that this job has taken before, and they would be taken twice. Compact no "
            "target that a job reads; to read this one from its beginning, give a new target and a "
            "new --checkpoint-dir (checkpoint_directory in Python)."
        )


class SourceUnreadable(UsageError):
    """The operating system or a store refuses to list or read the source: path, reason."""

    def __str__(self) -> str:
        told = f"cannot read {self.args[0]!r}: {self.args[1]}."
        if is_remote(self.args[0]):
            return (
                f"{told} {advice(self.args[0])} The credentials have to allow listing and reading."
            )
        return f"{told} Check the owner and the permissions of it and of the directories above it."


class UnknownFormat(UsageError):
    """A file whose extension does not tell its format: path."""

    def __str__(self) -> str:
        return (
            f"{self._compressed()}cannot tell the format of {self.args[0]!r} from its extension: "
            "expected .parquet, .orc, .avro, "
            f".csv, .jsonl, .ndjson or .json (the last four also with {', '.join(ENDINGS)}). Name "
            "the format with --format (format in Python), narrow the source with a pattern, or "
            "hide the file with a leading '_' or '.'."
        )

    def _compressed(self) -> str:
        stem, ending = os.path.splitext(self.args[0].lower())
        if ending in ENDINGS and stem.endswith((".parquet", ".orc", ".avro")):
            return f"such a file is compressed within, and not read from {ending}; decompress it: "
        told = f"{ending} files are compressed in a way that is not read: "
        return told if ending in REFUSED else ""


class MixedFormats(UsageError):
    """Two files of one source differ in format: first path, its format, other path, its format."""

    def __str__(self) -> str:
        first, first_format, other, other_format = self.args
        stem, ending = os.path.splitext(first)
        if ending in ENDINGS:
            ending = os.path.splitext(stem)[1] + ending
        return (
            f"the source mixes formats: {first!r} is {first_format}, {other!r} is {other_format}. "
            "One job reads one format: narrow the source with a pattern such as "
            f"'**/*{ending}', and run a job for each format. Several may write "
            "to one Delta, Iceberg or PostgreSQL table, each with a --checkpoint-dir "
            "(checkpoint_directory in Python) of its own."
        )


class SchemaChanged(UsageError):
    """A file's columns differ from those expected: path, differences, whose they are, expected."""

    def __str__(self) -> str:
        path, differences, first, expected = self.args
        return (
            f"the schema changes between files, at {path}.\n  {first}: {expected}\n  {path}:\n    "
            + "\n    ".join(differences)
            + "\nStart with --schema-evolution add (schema_evolution in Python) to take new "
            "columns and do without missing ones, or with --schema-evolution widen "
            "(schema_evolution) to let INT become BIGINT or DOUBLE as well; or with "
            "--on-bad-file skip (on_bad_file), which records the file and continues without it; "
            "or rewrite the file, or move it to a source of its own."
        )


class TypeUnreadable(UsageError):
    """A column is to have a type that files of this format cannot hold: column, type, format."""

    def __str__(self) -> str:
        column, kind, file_format = self.args
        return (
            f"--schema (schema in Python) gives column {column!r} the type {kind}, which cannot be "
            f"read from {file_format} files. Read it as STRING, and make it in the transform."
        )


class HintUnused(UsageError):
    """A file lacks a column that a hint declares: path, name, the columns that it has."""

    def __str__(self) -> str:
        path, name, names = self.args
        return (
            f"--schema-hints (schema_hints in Python) declares the column {name!r}, and {path!r} "
            f"has {', '.join(names)}. Correct the name, capitals too; or start with "
            "--schema-evolution add (schema_evolution), with which files may lack columns."
        )


class FileChanged(EpochgateError):
    """A file is not the one that was enumerated: path, what was expected, what was found."""

    def __str__(self) -> str:
        path, expected, found = self.args
        objects = (
            "Of a Parquet object above 1 MiB the driver reads the footer alone, so that each other "
            "ETag counts as a change. "
        )
        return (
            f"{path!r} has changed since it was enumerated: expected {expected}, found {found}. "
            f"{objects if is_remote(path) and path.endswith('.parquet') else ''}"
            "Nothing that was read of it is lost. Start again with --on-changed-file skip "
            "(on_changed_file in Python) to leave "
            "its new content out, or with --on-changed-file new (on_changed_file in Python) to "
            "take all of it as another file's (rows that stayed the same come twice). To prevent "
            "it, write files under a hidden or .tmp name and rename them, put new rows into new "
            "files, and give slow copies more time by --settle-s (settle_s)."
        )


class BadFile(EpochgateError):
    """A file, or a part of it, cannot be read: path, split id, position, cause (all plain values).

    `position` is "row group 3, row 12" or "byte 4096".
    """

    @property
    def path(self) -> str:
        """The file, absolute."""
        return str(self.args[0])

    @property
    def split_id(self) -> str:
        """The split that was read."""
        return str(self.args[1])

    @property
    def position(self) -> str:
        """The place in the file, for a person to read."""
        return str(self.args[2])

    @property
    def cause(self) -> str:
        """The fault there."""
        return str(self.args[3])

    def __str__(self) -> str:
        return (
            f"bad file {self.path!r}, split {self.split_id}, at {self.position}: {self.cause}. "
            "Nothing from this position on was taken. Start again with --on-bad-file skip "
            "(on_bad_file in Python) to record it and continue without the rest of it, which may "
            "come in a new file. Or replace it by a repaired one, and start again with "
            "--on-changed-file new (on_changed_file in Python), which takes all of it (rows of it "
            "that were taken come twice then)."
        )


class FileGone(BadFile):
    """A file is not there any more, or the rest of it is not: path, split id, position, cause."""

    def __str__(self) -> str:
        return (
            f"{self.path!r} is gone since it was enumerated ({self.cause}). Of split "
            f"{self.split_id} the rows from {self.position} on are not taken, and those before are "
            "not lost. Bring it back as it was, and start again. Or start again with --on-bad-file "
            "skip (on_bad_file in Python) to record it and continue without it."
        )


class BadRow(BadFile):
    """A row that does not fit, and the rest of its file; `position` is "line 7, column 'x'".

    The line is that of the file; in a Parquet file, the position is a row's.
    """

    def __str__(self) -> str:
        return (
            f"bad row in {self.path!r}, at {self.position}: {self.cause}. Nothing from this row on "
            "was taken. Start again with --on-bad-row reject (on_bad_row in Python) to keep bad "
            "rows in a table beside the target and take all others, or with --on-bad-file skip "
            "(on_bad_file) to continue without the rest of the file. If the column should have "
            "another type, begin with --schema (schema), a new target and a new --checkpoint-dir "
            "(checkpoint_directory)."
        )


class DelimiterDoubtful(UsageError):
    """A CSV file of one column that looks like several: path, first record, delimiter, likely."""

    def __str__(self) -> str:
        path, record, delimiter, likely = self.args
        return (
            f"{path!r} would be read as one column, {record!r}, because the delimiter is "
            f"{delimiter}. Start with --delimiter {likely} (delimiter in Python). If it is one "
            "column, put its name in quotes, or name it by --schema (schema)."
        )


class TransformFailed(EpochgateError):
    """The user's function failed: path, split id, first row, row after the last, cause, frames.

    Rows count from 0 within the split. The frames are those of the user's code, each on lines of
    its own, or empty.
    """

    @property
    def path(self) -> str:
        """The file, absolute."""
        return str(self.args[0])

    @property
    def split_id(self) -> str:
        """The split that was read."""
        return str(self.args[1])

    @property
    def rows(self) -> range:
        """The rows of the batch it failed on, counted within the split."""
        return range(self.args[2], self.args[3])

    def __str__(self) -> str:
        path, split_id, first, after, cause, frames = self.args
        return (
            f"the transform failed on rows {first} to {after - 1} of split {split_id} ({path!r}): "
            f"{cause}. These rows were not taken; correct the function and start again with the "
            f"same "
            f"checkpoint directory.{frames}"
        )


class IncompatibleState(UsageError):
    """A checkpoint's bytes were written by another version: what, version found, version known."""

    def __str__(self) -> str:
        what, found, known = self.args
        return (
            f"the checkpointed {what} has version {found}, this release reads version {known}. "
            "Continue with the release that wrote it, or start from the beginning with a new "
            "target and a new "
            "--checkpoint-dir (checkpoint_directory in Python)."
        )
