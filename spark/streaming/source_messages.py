"""Errors of files in the words of a streaming query, which has options of its own.

Messages name an option as `epochgate ingest` has it, followed by its name in Python: `--on-bad-file
skip (on_bad_file in Python)`. Here each becomes what a query is given instead; one that a query
does not have is named as one of the command. Runs wherever Spark calls the source.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Final

from epochgate.errors import EpochgateError
from epochgate.runtime import FatalTaskError

_OPTION: Final = re.compile(
    r"(?P<new>a new )?--(?P<flag>[a-z-]+)(?P<value> (?:'[^']*'|[^\s(,.]+))? "
    r"\((?P<name>[a-z_]+)(?:=\w+)?(?: in Python)?\)"
)
HERE: Final = {
    "on_bad_file": "onBadFile",
    "on_changed_file": "onChangedFile",
    "format": "format",
    "settle_s": "settle",
    "delimiter": "delimiter",
    "quote": "quote",
    "escape": "escape",
    "null": "null",
    "encoding": "encoding",
    "schema_hints": "schemaHints",
    "on_bad_row": "onBadRow",
    "modified_after": "modifiedAfter",
    "modified_before": "modifiedBefore",
    "new_only": "newOnly",
}
"""The options that both doors have, by their names in Python."""
SCHEMA: Final = ("schema", "columns")
"""A stream or a frame leaves columns out that its schema does not name."""


class SourceFailed(EpochgateError):
    """An error of files as a streaming query tells it: its type, what it says here."""

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def told_here(text: str) -> str:
    """Return a message with the options of the streaming source.

    >>> told_here("Start again with --on-bad-file skip (on_bad_file in Python) to continue.")
    'Start again with .option("onBadFile", "skip") to continue.'
    """
    return _OPTION.sub(_here, text)


def _here(found: re.Match[str]) -> str:
    name, new, value = found["name"], found["new"] or "", (found["value"] or "").strip(" '")
    if name in HERE and (name, value) != ("on_bad_row", "reject"):
        shown = "..." if found["value"] is None else json.dumps(value, ensure_ascii=False)
        return f'{new}.option("{HERE[name]}", {shown})'
    if name == "header":
        return f'{new}.option("header", "false")'
    if name in SCHEMA:
        return f"{new}.schema(...)"
    if name == "checkpoint_directory":
        return f'{new}checkpoint location with {new}.option("state", ...)'
    given = found["value"] or ""
    return f"{new}`epochgate ingest --{found['flag']}{given}`, as this reader has no such option,"


@contextlib.contextmanager
def told_at_this_door() -> Iterator[None]:
    """Let what is raised inside name options of the streaming source. Raises SourceFailed in the
    place of an error that names others.
    """
    try:
        yield
    except (EpochgateError, FatalTaskError) as error:
        said = str(error)
        told = told_here(said)
        if told == said:
            raise
        raise SourceFailed(type(error).__name__, told) from None
