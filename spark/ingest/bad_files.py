"""The list of files that were left out, for a script: JSON lines, beside the target.

Decides its form: one object for each file, or rest of a file, with path, split, position and
reason; it is replaced as a whole, by a rename. It repeats what checkpoints hold, so a list that is
lost is written again. Written on the driver, by one writer at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from epochgate.runtime.filesystem import LocalFileSystem, WrittenOnce
from epochgate.spark.files import SkippedFile


class BadFilesList:
    """The list at `path`, as it was when this was made; one without a file is not begun."""

    def __init__(self, path: str, files: WrittenOnce | None = None) -> None:
        self.path = path
        self._files: WrittenOnce = LocalFileSystem() if files is None else files
        try:
            found = self._files.read_bytes(path)
        except FileNotFoundError:
            found = b""
        self._before = set(found.decode("utf-8", "replace").splitlines())
        self._written = found

    def new_of(self, skipped: Sequence[SkippedFile]) -> list[SkippedFile]:
        """Those that an earlier run has not listed."""
        return [one for one in skipped if _line(one) not in self._before]

    def write(self, skipped: Sequence[SkippedFile]) -> None:
        """Replace the list, durably, unless it is the same. Raises OSError."""
        data = "".join(f"{_line(one)}\n" for one in skipped).encode()
        if data != self._written:
            self._files.write_bytes_durably(self.path, data)
            self._written = data


def _line(skipped: SkippedFile) -> str:
    values = {
        "path": skipped.path,
        "split": skipped.split_id,
        "position": skipped.position,
        "reason": skipped.reason,
    }
    return json.dumps(values, ensure_ascii=False)
