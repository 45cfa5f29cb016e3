"""The task's half of a source: reads the splits it is given, in turns, and knows where it is in
each.

Decides when to ask for another split: one ahead, so that no round trip is waited for; which split's
turn it is; and that one whose watermark is above the alignment's limit waits. Its state is the
splits at hand with the position in each. Whether more will come is not part of it: a restored
reader registers again and is told again. Source: Apache Flink's SourceOperator. Runs in the task,
on its only thread.

    def work(self) -> Work:
        return self.source.step(self.write)

A program that cannot take records at every moment looks at them with `peek`, and calls `take` when
it has processed them.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from epochgate.runtime.api.operator import Operator, OperatorContext, Work
from epochgate.runtime.source import events
from epochgate.runtime.source.errors import SplitAssignedTwice
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.runtime.source.source import Fetched, ReaderContext, Source, SourceReader
from epochgate.runtime.source.split import SourceSplit, unpack_splits


class OpenSplit:
    """A split that a reader has, and how far it was read."""

    def __init__(self, split: SourceSplit, position: Any) -> None:
        self.split, self.position = split, position
        self.watermark: int | None = None
        self.is_empty = False
        """It had nothing when it was asked last."""
        self.has_moved = False
        """It had records since the last announcement."""
        self._fetched: Iterator[Fetched | None] | None = None

    def next(self, reader: SourceReader) -> Fetched | None:
        """Read on; none when there is nothing now. Raises StopIteration at the end."""
        if self._fetched is None:
            self._fetched = self._opened(reader)
        return next(self._fetched)

    def _opened(self, reader: SourceReader) -> Iterator[Fetched | None]:
        try:
            return iter(reader.open_split(self.split, self.position))
        except StopIteration as error:  # it would pass for the end of the split
            kind = type(reader).__qualname__
            raise RuntimeError(f"{kind}.open_split has raised StopIteration") from error

    def close(self) -> None:
        """Let a generator release what it holds."""
        close = getattr(self._fetched, "close", None)
        if close is not None:
            close()

    def holds_back(self) -> bool:
        """True if the alignment waits for this split: not where there was nothing to read."""
        return self.watermark is not None and (self.has_moved or not self.is_empty)


class SourceOperator(Operator):
    """Reads `source`; its coordinator is a `SourceProvider`'s under the same operator id.

    `splits_ahead`: how many splits to have beside the one that is needed. `in_turns`: read a piece
    of each split in turn, or else each split to its end before the next.
    """

    def __init__(self, source: Source, *, splits_ahead: int = 1, in_turns: bool = True) -> None:
        self._source, self._splits_ahead, self._in_turns = source, splits_ahead, in_turns
        self._reader: SourceReader | None = None
        self._splits: deque[OpenSplit] = deque()
        self._ids: set[str] = set()
        self._peeked: tuple[OpenSplit, Fetched] | None = None
        self._has_asked = False
        self._has_no_more = False
        self._limit: int | None = None
        self._ended_watermarks: list[int] = []
        """Of splits that ended since the last announcement: their reader was not idle."""
        self._reported: tuple[int | None, bool] | None = None
        self._last_snapshot = 0
        self.records_read = 0
        """By this attempt."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Register, and go on with the splits of the state. Raises SourceStateRefused for state of
        another format, and SplitAssignedTwice for state that names a split twice.
        """
        super().open(context, state)
        reader_state = None if state is None else self._restore(state)
        context.send_to_coordinator([events.REGISTER, socket.gethostname()])
        self._reader = self._source.create_reader(
            ReaderContext(
                operator_id=context.operator_id,
                subtask=context.subtask,
                attempt=context.attempt,
                parallelism=context.parallelism,
                send_source_event=self._send_source_event,
                wake_after=context.wake_after,
                now_s=context.now_s,
                last_snapshot=lambda: self._last_snapshot,
            )
        )
        if reader_state is not None:
            self._reader.restore_state(reader_state)

    def _restore(self, state: bytes) -> Any:
        """The splits of the state; returns the reader's own, none if there is none."""
        whose = f"reader {self.context.subtask} of {self.context.operator_id!r}"
        restored = ReaderState.from_bytes(state, whose)
        for split, position in restored.splits:
            self._add(split, position)
        return restored.own

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The splits at hand, the position in each, and the reader's own state. Raises
        ValueNotPlain.
        """
        state = ReaderState(self.splits, self._opened.snapshot_state()).to_bytes()
        self._last_snapshot = checkpoint_id
        return state

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Pass it on."""
        self._opened.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        """Close the splits that are open, and the reader."""
        try:
            for one in self._splits:
                one.close()
        finally:
            if self._reader is not None:
                self._reader.close()

    @property
    def splits(self) -> list[tuple[SourceSplit, Any]]:
        """The splits at hand, the next one first, with the position in each; none where it is at
        the beginning.
        """
        return [(one.split, one.position) for one in self._splits]

    @property
    def has_ended(self) -> bool:
        """True if everything is read, and nothing more will come."""
        return self._has_no_more and not self._splits

    def handle_event(self, event: Any) -> None:
        """Splits, the news that there are no more, a source event, or a limit. Raises
        SplitAssignedTwice, and ValueError for what no source's coordinator sends.
        """
        if event[0] == events.SPLITS:
            self._has_asked = False
            for split in unpack_splits(event[1]):
                self._add(split, None)
        elif event[0] == events.NO_MORE:
            self._has_no_more = True
        elif event[0] == events.SOURCE_EVENT:
            self._opened.handle_source_event(event[1])
        elif event[0] == events.ALIGN:
            self._limit = event[1]
            self._report()
        else:
            raise ValueError(f"the coordinator sent {event!r}, which no source's coordinator sends")

    def step(self, emit: Callable[[Sequence[Any]], None]) -> Work:
        """Read one piece of the split whose turn it is, and give its records to `emit`.

        DONE when there was something; IDLE when no split has anything now or may go on; ENDED when
        all is read and nothing more will come. The position moves on once `emit` has returned.
        """
        if self._peeked is None and not self._look():
            return Work.ENDED if self.has_ended else Work.IDLE
        if self._peeked is not None:
            emit(self._peeked[1].records)
            self.take()
        return Work.DONE

    def peek(self) -> Fetched | None:
        """The next piece, the same until it is taken; none when there is none at the moment."""
        while self._peeked is None and self._look():
            pass
        return None if self._peeked is None else self._peeked[1]

    def take(self) -> None:
        """The piece that `peek` has shown is processed: a checkpoint from now on is behind it."""
        assert self._peeked is not None, "peek has shown nothing"
        one, fetched = self._peeked
        self._peeked = None
        self.records_read += len(fetched.records)
        one.position, one.watermark, one.has_moved = fetched.position, fetched.watermark, True
        if self._in_turns:
            self._splits.rotate(-1)

    def _look(self) -> bool:
        """Read on in the split whose turn it is, or see its end; False when none has anything."""
        self._ask_ahead()
        for _ in range(len(self._splits)):
            one = self._splits[0]
            if not self._is_paused(one) and self._read(one):
                return True
            self._splits.rotate(-1)
        return False

    def _read(self, one: OpenSplit) -> bool:
        """False when there is nothing now."""
        try:
            fetched = one.next(self._opened)
        except StopIteration:
            self._splits.popleft()
            self._ids.remove(one.split.split_id)
            if one.watermark is not None and one.has_moved:
                self._ended_watermarks.append(one.watermark)
            self._ask_ahead()
            return True
        one.is_empty = fetched is None
        if fetched is not None:
            self._peeked = one, fetched
        return fetched is not None

    @property
    def _opened(self) -> SourceReader:
        assert self._reader is not None, "open has not been called"
        return self._reader

    def _add(self, split: SourceSplit, position: Any) -> None:
        if split.split_id in self._ids:
            raise SplitAssignedTwice(
                f"reader {self.context.subtask} of {self.context.operator_id!r} was given split "
                f"{split.split_id!r}, which it is reading already; its enumerator must assign a "
                "split once, and again only when it came back by add_splits_back"
            )
        self._ids.add(split.split_id)
        self._splits.append(OpenSplit(split, position))

    def _ask_ahead(self) -> None:
        is_short = len(self._splits) <= self._splits_ahead
        if is_short and not self._has_asked and not self._has_no_more:
            self._has_asked = True
            self.context.send_to_coordinator([events.REQUEST])

    def _send_source_event(self, event: Any) -> None:
        self.context.send_to_coordinator([events.SOURCE_EVENT, event])

    def _is_paused(self, one: OpenSplit) -> bool:
        return self._limit is not None and one.watermark is not None and one.watermark > self._limit

    def _report(self) -> None:
        """Answer an announcement, unless it would say what the last answer did."""
        watermarks = [one.watermark for one in self._splits if one.holds_back()]
        counted = [mark for mark in (*watermarks, *self._ended_watermarks) if mark is not None]
        is_idle = not counted and all(one.is_empty for one in self._splits)
        self._ended_watermarks = []
        for one in self._splits:
            one.has_moved = False
        report = (min(counted, default=None), is_idle)
        if report not in (self._reported, (None, False)):
            self._reported = report
            self.context.send_to_coordinator([events.WATERMARK, *report])
