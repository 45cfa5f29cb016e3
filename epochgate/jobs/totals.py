"""The totals of a run: files done, rows, checkpoints, failovers and warnings, by their names.

Decides which figures a reader sees first, in a terminal and in the browser alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from epochgate.runtime.api.reports import size
from epochgate.runtime.durations import clock, span
from epochgate.runtime.observing.run_summary import RunSummary

SAVEPOINTS_SHOWN: Final = 3
WARNINGS_SHOWN: Final = 3
_ROUNDING: Final = 1e-6
"""What the sum of all shares of a file may lack to 1."""


@dataclass(frozen=True)
class FilesDone:
    """The files that are read to their end, of those that were found, and what is left; as of one
    checkpoint, so that a failover takes nothing back. A file of several shares counts by these.
    """

    done: int
    found: int
    bytes_left: int

    @classmethod
    def of(cls, figures: Mapping[str, float], source: Mapping[str, float]) -> FilesDone:
        """From the figures of the tasks and of the source's coordinator."""
        found = int(source.get("files_found", 0))
        left = source.get("files_waiting", 0) + figures.get("files_open", 0)
        bytes_left = source.get("bytes_waiting", 0) + figures.get("bytes_open", 0)
        return cls(max(0, math.floor(found - left + _ROUNDING)), found, int(bytes_left))

    def __str__(self) -> str:
        left = f", {size(self.bytes_left)} to go" if self.bytes_left else ""
        return f"{self.done:,} of {self.found:,} files{left}"


def totals(run: RunSummary, now: float) -> Iterator[tuple[str, str]]:
    """The figures of a run by their names."""
    source = run.coordinators.get("source", {})
    if "files_found" in source:
        skipped = f", {source['files_skipped']} skipped" if source.get("files_skipped") else ""
        unread = f", {source['files_unread']} not read" if source.get("files_unread") else ""
        files = FilesDone.of(run.figures, source)
        left = f", {size(files.bytes_left)} to go" if files.bytes_left else ""
        yield "files", f"{files.done:,} of {files.found:,}{left}{skipped}{unread}"
    if "hints_up" in source:
        up = "" if source["hints_up"] else "; the queue does not answer, files are listed"
        failed = f", {source['hints_failed']:,} requests failed" if source["hints_failed"] else ""
        yield (
            "notified",
            f"{source['hints_heard']:,} times, {source['files_hinted']:,} new files, "
            f"{source['files_unhinted']:,} more by listings{failed}{up}",
        )
    if "rows_committed" in run.committed:
        yield (
            "rows",
            f"{run.committed['rows_committed']:,} committed, "
            f"{run.committed.get('rows_visible', 0):,} in the target",
        )
    for name, value in sorted({**run.figures, **run.committed}.items()):
        if "reject" in name:
            yield name.replace("_", " "), f"{value:,}"
    last = run.last_checkpoint
    when = "" if last is None else f"; the last {span(now - last['at'])} ago"
    if last is not None:
        when += f": {last['duration_s']:.2f} s, {size(last['stored_bytes'])}"
    yield (
        "checkpoints",
        f"{run.checkpoints_completed:,} completed, {run.checkpoints_aborted:,} aborted{when}",
    )
    for one in run.savepoints[-SAVEPOINTS_SHOWN:]:
        when = clock(one["at"], now)
        yield "savepoint", f"of checkpoint {one['checkpoint_id']}, {when}: {one['path']}"
    yield (
        "failovers",
        f"{run.regional_restarts:,} of one subtask, {run.global_restarts:,} of all",
    )
    yield from _commits(run)
    if run.warnings_count:
        yield "warnings", f"{run.warnings_count:,}"
    for text in run.warnings[-WARNINGS_SHOWN:]:
        yield "", text


def _commits(run: RunSummary) -> Iterator[tuple[str, str]]:
    if run.topology:
        when = "on input" if run.commit_on_input else "when a checkpoint is completed"
        yield "commit", f"{when}: {run.topology}"
    if run.commit_failures:
        yield "commits", f"{run.commit_failures:,} failed, committed up to {run.committed_upto}"
