"""Watermark alignment: readers of one job that read far ahead of the slowest wait for it.

Decides how far each may read: the least watermark in the group and the drift allowed on top. The
group spans all sources of the job that name it, through the coordinators' store; its members are
their readers. A reader reports in
answer to an announcement, so that only the coordinators need a clock:

    coordinator  -- align, limit -->  reader  -- watermark, value, is idle -->  coordinator

A reader that is idle or has ended holds no other back; one that is gone keeps its last watermark
until its successor reports. Announcements go to readers that are there; one that gets lost is made
up for by the next. Source: Apache Flink's watermark alignment in SourceCoordinator. Runs on the
queue's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from epochgate.errors import UsageError
from epochgate.runtime.api.coordinator import CoordinatorContext, SubtaskGateway
from epochgate.runtime.source import events

STORE_KEY: Final = "watermark alignment"


class AlignmentMisconfigured(UsageError):
    """The parameters of an alignment cannot be meant."""


@dataclass(frozen=True)
class WatermarkAlignment:
    """`group`: whose sources wait for each other. `drift`: how far a split may be ahead of the
    slowest reader, in the unit of the watermarks. `every_s`: seconds between announcements; a limit
    is at most two of them old. Raises AlignmentMisconfigured.
    """

    group: str
    drift: int
    every_s: float = 1.0

    def __post_init__(self) -> None:
        if self.drift < 0 or self.every_s <= 0:
            raise AlignmentMisconfigured(
                f"alignment of group {self.group!r} has drift {self.drift} and every_s "
                f"{self.every_s}; the drift must be at least 0 and the interval more than 0 seconds"
            )


class AlignmentGroup:
    """The watermarks of all readers of a group, by their source's aligner and their subtask."""

    def __init__(self) -> None:
        self._watermarks: dict[tuple[Aligner, int], int] = {}

    def report(self, source: Aligner, subtask: int, watermark: int) -> None:
        """A reader has read so far; it may be less than before, after a restart."""
        self._watermarks[source, subtask] = watermark

    def release(self, source: Aligner, subtask: int) -> None:
        """A reader has nothing to read, so that no other waits for it."""
        self._watermarks.pop((source, subtask), None)

    def forget(self, source: Aligner) -> None:
        """All readers of a source begin again."""
        for member in [known for known in self._watermarks if known[0] is source]:
            del self._watermarks[member]

    def minimum(self) -> int | None:
        """The least watermark; none when no reader has one."""
        return min(self._watermarks.values(), default=None)


class Aligner:
    """One source's part in its group: takes its readers' reports, and announces the limit."""

    def __init__(
        self,
        context: CoordinatorContext,
        alignment: WatermarkAlignment,
        present: Callable[[], Iterable[SubtaskGateway]],
    ) -> None:
        self._context, self._alignment, self._present = context, alignment, present
        self._group: AlignmentGroup = context.coordinator_store.compute_if_absent(
            (STORE_KEY, alignment.group), AlignmentGroup
        )
        self._is_closed = False

    def start(self) -> None:
        """Begin to announce; called once, however often the source begins again."""
        self._context.post_later(self._alignment.every_s, self._announce)

    def report(self, subtask: int, watermark: int | None, is_idle: bool) -> None:
        """A reader has answered."""
        if is_idle:
            self._group.release(self, subtask)
        elif watermark is not None:
            self._group.report(self, subtask, watermark)

    def limit(self) -> int | None:
        """Up to which watermark a split may be read on; none: without limit."""
        minimum = self._group.minimum()
        return None if minimum is None else minimum + self._alignment.drift

    def forget(self) -> None:
        """All readers go back, and will report again."""
        self._group.forget(self)

    def close(self) -> None:
        """Announce no more, and hold no reader back."""
        self._is_closed = True
        self.forget()

    def _announce(self) -> None:
        if self._is_closed:
            return
        self._context.post_later(self._alignment.every_s, self._announce)
        limit = self.limit()
        for gateway in self._present():
            gateway.send_event([events.ALIGN, limit])
