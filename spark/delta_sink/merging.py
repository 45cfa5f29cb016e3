"""A Delta table into which rows are merged, instead of added: the same claims and numbers, with
another entry of the log for a checkpoint.

Decides that staged files stay apart from the table, which refers to files of the library's making,
and that a table which is not there is made without rows before. A commit fails where any entry has
come since the table was read, and is made again from the newest. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from epochgate.spark.delta_sink.features import APPEND_ONLY
from epochgate.spark.delta_sink.log import Files
from epochgate.spark.delta_sink.target import DeltaTarget
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.tables.errors import TableUnusable
from epochgate.spark.tables.last_rows import LastRows, without_mark
from epochgate.spark.tables.merge import Merge


class MergingDeltaTarget(DeltaTarget):
    """The table as one run of one job merges rows into it; `claim` it first."""

    def __init__(self, path: str, job_id: str, run_id: str, *, merge: Merge, **given: Any) -> None:
        """Raises what `DeltaTarget` raises."""
        super().__init__(path, job_id, run_id, **given)
        self._merge = merge

    def require_one_schema(self, committables: Sequence[Committable]) -> None:
        """In addition KeyAmbiguous, for rows of a key of which none is the last."""
        super().require_one_schema(committables)
        if committables:
            self._rows(committables).require_clear()

    def _rows(self, files: Sequence[Committable]) -> LastRows:
        return LastRows(self._staged, files, self._merge, self._shown)

    def _schema_of(self, file: Committable) -> pa.Schema:
        return without_mark(super()._schema_of(file))

    def _commit(
        self, checkpoint: int, files: list[Committable], *, replaces: bool, are_moved: bool
    ) -> bool:
        if files and not self._log.read():
            self._owner.absent(partial(self._make, checkpoint, files, are_moved=are_moved))
        return super()._commit(checkpoint, files, replaces=replaces, are_moved=are_moved)

    def _make(self, checkpoint: int, files: list[Committable], *, are_moved: bool) -> None:
        """Make the table without rows, which the commit finds then."""
        self._create(checkpoint, files, {}, {})

    def _placed(self, checkpoint: int, files: Sequence[Committable], *, are_moved: bool) -> Files:
        self._staged.look(files, checkpoint)
        return {}

    def _put(
        self,
        files: Sequence[Committable],
        named: Files,
        numbers: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        replaces: bool,
    ) -> None:
        if not files:
            super()._put(files, named, numbers, metadata, replaces=replaces)
            return
        rows = self._rows(files)
        rows.require_clear()
        self._log.merge(rows.reader(), self._merge, numbers, metadata)

    def _require_usable(self) -> None:
        super()._require_usable()
        if self._log.metadata().configuration.get(APPEND_ONLY) == "true":
            found = f"it is append-only ({APPEND_ONLY}), and a merge replaces rows"
            way_on = "Add rows, without --merge-on (merge_on in Python), or turn that off."
            raise TableUnusable(self._shown, found, way_on)
        names = self._log.schema().names
        if lacks := [name for name in self._merge.columns if name not in names]:
            found = f"it has no column {lacks[0]!r}, by which rows are to be merged"
            way_on = "Name its columns in --merge-on and --merge-order (merge_on and merge_order)."
            raise TableUnusable(self._shown, found, way_on)
