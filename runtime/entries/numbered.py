"""The entries of one folder, by their numbers.

Decides that a file of another name is ignored, and that an entry which is not as it was written is
refused. Any process, any thread.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from epochgate.runtime.entries.encoding import opened, sealed
from epochgate.runtime.entries.errors import EntryDamaged
from epochgate.runtime.entries.stores import SUFFIX, Entries
from epochgate.runtime.filesystem import NotAFile

OUT_OF_THE_FOLDER: Final = "Restore the file from a backup, or move it out of the folder"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kind:
    """The kind of entries in a folder: names that none lacks, which of them is the number of the
    entry, if one is, and what to do when a file is damaged.
    """

    names: frozenset[str]
    number: str | None
    next_step: str


class Numbered:
    """The entries of one folder, by number. Files of other names in it are told, and ignored."""

    def __init__(self, entries: Entries, folder: str, kind: Kind) -> None:
        self._entries, self._folder, self._kind = entries, folder, kind
        self._names = re.compile(
            rf"^{re.escape(folder)}/(\d{{15}})\.json$", re.ASCII | re.MULTILINE
        )

    @property
    def shown(self) -> str:
        """The path or URL of the folder, for people."""
        return self._entries.place(self._folder)

    def numbers(self) -> list[int]:
        """Return the numbers that there are, ascending. Raises OSError."""
        keys = self._entries.list(self._folder)
        # In one search: a batch lists a hundred names three times.
        found = list(map(int, self._names.findall("\n".join(keys))))
        if len(found) != len(keys):
            for key in keys:
                if not self._names.fullmatch(key):
                    _tell_foreign(self._entries.place(key))
        return found

    def get(self, number: int) -> dict[str, Any]:
        """Raises OSError, and EntryDamaged for one that is not as it was written."""
        key = self._key(number)
        try:
            entry = opened(self._entries.get(key))
            self._insist_on_kind(entry, number)
        except (ValueError, NotAFile, IsADirectoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            place = self._entries.place(key)
            raise EntryDamaged(place, reason, self._kind.next_step) from error
        return entry

    def _insist_on_kind(self, entry: dict[str, Any], number: int) -> None:
        kind = self._kind
        if missing := kind.names - entry.keys():
            raise ValueError(f"it has no {sorted(missing)[0]!r}")
        if kind.number is not None and entry[kind.number] != number:
            raise ValueError(f"it is that of number {entry[kind.number]!r}")

    def create(self, number: int, entry: dict[str, Any]) -> None:
        """Raises FileExistsError, NotCreated, OSError."""
        self._entries.create(self._key(number), sealed(entry))

    def delete(self, number: int) -> None:
        """Raises OSError."""
        self._entries.delete(self._key(number))

    def sweep(self) -> None:
        """Remove what crashes have left. Raises OSError."""
        self._entries.sweep(self._folder)

    def _key(self, number: int) -> str:
        return f"{self._folder}/{number:015d}{SUFFIX}"


@lru_cache(maxsize=1000)
def _tell_foreign(place: str) -> None:
    """Once in each process."""
    _log.warning(
        "%s is no file of epochgate, and is ignored; move it out of the store if it is not needed",
        place,
    )
