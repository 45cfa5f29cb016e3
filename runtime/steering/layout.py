"""The layout of controls in their store.

    STORE/pricing/versions/000000000000005.json            the fifth update, and what it comes to
    STORE/pricing/queries/QUERY ID/000000000000041.json    what batch 41 of this query runs with
    STORE/pricing/sources/STREAM ID/000000000000001.json   the initial values of a source's filter

Decides what each kind of entry has, and what is no entry of a control. Any process, any thread.
"""

from __future__ import annotations

import re
from typing import Any, Final

from epochgate.runtime.entries.numbered import OUT_OF_THE_FOLDER, Kind, Numbered
from epochgate.runtime.entries.stores import SUFFIX, Entries
from epochgate.runtime.steering.errors import ControlUnusable

VERSIONS: Final = "versions"
QUERIES: Final = "queries"
SOURCES: Final = "sources"
_ENTRY: Final = re.compile(r"\d{15}\.json", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION: Final = Kind(
    frozenset(("version", "value", "changes", "token", "at", "by")),
    "version",
    f"{OUT_OF_THE_FOLDER}: the update before it applies then, so update the control with the "
    "values that are to hold, and start the query again",
)
_DECISION: Final = Kind(
    frozenset(("batch", "version", "since", "value", "at", "by")),
    "batch",
    f"{OUT_OF_THE_FOLDER} and start the query again: the batch is decided with the newest values "
    "then, and what an earlier run of it has written may have others",
)
_INITIAL_VALUES: Final = Kind(
    frozenset(("value",)),
    None,
    f"{OUT_OF_THE_FOLDER}: the next start of the query writes it again",
)


def versions_of(entries: Entries, control: str) -> Numbered:
    """The versions of a control."""
    return Numbered(entries, f"{control}/{VERSIONS}", _VERSION)


def decisions_of(entries: Entries, control: str, query: str) -> Numbered:
    """The decisions of a control for a query."""
    return Numbered(entries, f"{control}/{QUERIES}/{query}", _DECISION)


def initials_of(entries: Entries, control: str, stream: str) -> Numbered:
    """The initial values of a control for a source that it prunes, one after the other."""
    return Numbered(entries, f"{control}/{SOURCES}/{stream}", _INITIAL_VALUES)


def controls_in(entries: Entries) -> list[str]:
    """The controls that there are. Raises OSError."""
    parts = (key.split("/") for key in entries.list(""))
    return sorted({part[0] for part in parts if _is_of_a_control(part)})


def queries_of(entries: Entries, control: str) -> list[str]:
    """The queries that a control has decided for. Raises OSError."""
    return _below(entries, control, QUERIES)


def sources_of(entries: Entries, control: str) -> list[str]:
    """The streams of the sources that a control prunes. Raises OSError."""
    return _below(entries, control, SOURCES)


def newest_decisions(
    entries: Entries, control: str, known: dict[str, dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """The newest decision for each query. `known`: by query, what was read before, which is read
    again where it is not the newest any more, since an entry is never written again. Raises
    OSError, EntryDamaged.
    """
    known = {} if known is None else known
    newest: dict[str, int] = {}
    for key in reversed(entries.list(f"{control}/{QUERIES}")):
        query, _, name = key[len(control) + len(QUERIES) + 2 :].partition("/")
        if query not in newest and _ENTRY.fullmatch(name):
            newest[query] = int(name.removesuffix(SUFFIX))
    for query, number in newest.items():
        if query not in known or known[query]["batch"] != number:
            known[query] = decisions_of(entries, control, query).get(number)
    return [known[query] for query in sorted(newest)]


def foreign_in(entries: Entries, control: str) -> list[str]:
    """The files in the folders of a control that are no entries of it. Raises OSError."""
    return [key for key in entries.list(control) if not _is_of_a_control(key.split("/"))]


def _below(entries: Entries, control: str, folder: str) -> list[str]:
    parts = (key.split("/") for key in entries.list(f"{control}/{folder}"))
    return sorted({part[2] for part in parts if _is_of_a_control(part)})


def _is_of_a_control(parts: list[str]) -> bool:
    """Return whether a key is that of a version, a decision, or initial values."""
    depth = {VERSIONS: 3, QUERIES: 4, SOURCES: 4}.get(parts[1] if len(parts) > 1 else "")
    return len(parts) == depth and _ENTRY.fullmatch(parts[-1]) is not None


def insist_on_name(what: str, name: str) -> None:
    """Raise ControlUnusable for what cannot be the name of a directory everywhere."""
    if not _NAME.fullmatch(name):
        raise ControlUnusable(
            f"{name!r} cannot be the name of {what}: give letters, digits, '.', '_' and '-', "
            "100 at most, the first a letter or digit"
        )
