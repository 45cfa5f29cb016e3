"""The rows of a running job on their way from its coordinator to the client that iterates.

Decides which rows may be handed over, and that each is handed over once: a subtask's rows are
numbered, those below the number that it had at the last completed checkpoint are final, and what an
attempt has sent beyond that is thrown away when its successor begins. Holds, for each subtask, no
more than the coordinator has asked for.

The coordinator calls from the queue's thread; one client iterates, takes and closes on a thread of
its own. Nothing here outlives the driver.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgpack

from epochgate.errors import InvariantBroken
from epochgate.runtime.collect.errors import RowsIncomplete

if TYPE_CHECKING:
    from epochgate.runtime.api.reports import JobResult


@dataclass
class SubtaskRows:
    """The rows of one subtask that have arrived and are not consumed."""

    consumed: int
    """The number of the first row that is not consumed, and of the first in `rows`."""
    final: int
    """Rows below this number are in a completed checkpoint."""
    rows: deque[bytes] = field(default_factory=deque)

    @property
    def end(self) -> int:
        """The number of the next row to arrive."""
        return self.consumed + len(self.rows)


class CollectedRows(Iterator[Any]):
    """The rows of a job, as an iterator that waits for the next one.

    In order for each subtask, in any order between subtasks. Ends when the job has finished, also
    by `stop`; raises RowsIncomplete, after the last row that is final, when it has failed or was
    canceled. As a context manager it is closed at the end of the block.

    For one client. What a client leaves is closed: from then on the job's rows are dropped
    without being consumed, so that the job goes on; leaving the block of the job itself cancels it.
    """

    def __init__(self, parallelism: int, *, uncheckpointed: bool) -> None:
        self.is_uncheckpointed = uncheckpointed
        self.is_collected = False
        """A client has asked for these rows."""
        self.on_consumed: Callable[[], None] = lambda: None
        """Called on the client's thread when rows were consumed that the tasks should know of."""
        self._subtasks: dict[int, SubtaskRows] = {}
        self._turns: deque[int] = deque(range(parallelism))
        self._changed = threading.Condition()
        self._at_hand: deque[Any] = deque()
        self._result: JobResult | None = None
        self._is_closed = False

    # for the client

    def __next__(self) -> Any:
        """Wait for the next row."""
        if not self._at_hand:
            self._at_hand.extend(self._wait())
        if not self._at_hand:
            raise StopIteration
        return self._at_hand.popleft()

    def take(self) -> list[Any]:
        """The rows that may be handed over now, without waiting: a list of plain values, oldest
        first for each subtask. Raises RowsIncomplete as the iteration does.
        """
        rows = [*self._at_hand]
        self._at_hand.clear()
        while part := self._consume():
            rows += part
        if not rows and self._has_ended():
            self._raise_failure()
        return rows

    def close(self) -> None:
        """Ask for no more: the iteration ends, and what the job yields from now on is dropped."""
        with self._changed:
            self._is_closed = True
            self._at_hand.clear()
            for subtask in self._subtasks.values():
                self._drop(subtask)
            self._changed.notify_all()
        self.on_consumed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wait(self) -> list[Any]:
        """The next rows; none when there will be no more."""
        while not (rows := self._consume()):
            with self._changed:
                self._changed.wait_for(lambda: self._ready() is not None or self._has_ended())
                if self._ready() is None:
                    break
        if not rows:
            self._raise_failure()
        return rows

    def _has_ended(self) -> bool:
        return self._is_closed or self._result is not None

    def _raise_failure(self) -> None:
        if self._result is not None and not self._result.is_success() and not self._is_closed:
            raise RowsIncomplete(self._result)

    def _consume(self) -> list[Any]:
        """Take what is ready of the subtask whose turn it is."""
        with self._changed:
            if (number := self._ready()) is None:
                return []
            self._turns.remove(number)
            self._turns.append(number)
            subtask = self._subtasks[number]
            packed = [subtask.rows.popleft() for _ in range(self._ready_count(subtask))]
            subtask.consumed += len(packed)
        self.on_consumed()
        return [msgpack.unpackb(row) for row in packed]

    def _ready(self) -> int | None:
        for number in self._turns:
            subtask = self._subtasks.get(number)
            if subtask is not None and self._ready_count(subtask) > 0:
                return number
        return None

    def _ready_count(self, subtask: SubtaskRows) -> int:
        if self.is_uncheckpointed:
            return len(subtask.rows)
        return min(len(subtask.rows), max(0, subtask.final - subtask.consumed))

    # for the coordinator

    @property
    def has_ready(self) -> bool:
        """True if the client could take a row now."""
        with self._changed:
            return self._ready() is not None

    def begin(self, number: int, first: int, end: int) -> SubtaskRows:
        """An attempt has begun with rows `first` to `end` of its checkpoint, which are final.

        What came after `end` from the attempt before is dropped; the attempt will send again from
        the end of what is left.
        """
        with self._changed:
            subtask = self._subtasks.setdefault(number, SubtaskRows(first, end))
            if subtask.consumed > end:
                self._go_back(number, subtask, end)
            while subtask.end > end:
                subtask.rows.pop()
            subtask.final = end
            self._changed.notify_all()
            return subtask

    def _go_back(self, number: int, subtask: SubtaskRows, end: int) -> None:
        if not self.is_uncheckpointed and not self._is_closed:
            raise InvariantBroken(
                f"subtask {number} goes back to row {end}, and {subtask.consumed} were handed over"
            )
        subtask.rows.clear()
        subtask.consumed = end

    def receive(self, number: int, first: int, rows: list[bytes]) -> None:
        """Rows have arrived."""
        with self._changed:
            subtask = self._subtasks[number]
            if first != subtask.end:
                raise InvariantBroken(
                    f"row {first} of subtask {number} arrived instead of {subtask.end}"
                )
            subtask.rows.extend(rows)
            if self._is_closed:
                self._drop(subtask)
            self._changed.notify_all()

    def confirm(self, number: int, end: int) -> None:
        """A completed checkpoint holds the subtask's rows below `end`."""
        with self._changed:
            subtask = self._subtasks[number]
            subtask.final = max(subtask.final, end)
            self._changed.notify_all()

    def consumed(self, number: int) -> int:
        """Up to which number the rows of a subtask that has begun are consumed."""
        with self._changed:
            return self._subtasks[number].consumed

    def expected(self, number: int) -> int:
        """The number of the next row of a subtask that has begun."""
        with self._changed:
            return self._subtasks[number].end

    def end(self, result: Future[JobResult]) -> None:
        """The job is over."""
        with self._changed:
            self._result = result.result()
            self._changed.notify_all()

    def _drop(self, subtask: SubtaskRows) -> None:
        subtask.consumed = subtask.end
        subtask.rows.clear()
