"""The collect sink's operator: buffers a subtask's rows until the client has consumed them.

Decides which rows go to the driver: no more than the coordinator has asked for, in their order.
Its state is every row that was not consumed when the snapshot was taken, and their numbers. Leaves
to its coordinator when a row counts as consumed. Runs in the task.

Events to the coordinator: ["opened", first, end], ["rows", first, rows], ["snapshot", checkpoint,
end], ["waiting"]. Events from it: ["begin", next, consumed, until, bytes] once for each attempt,
then ["grant", consumed, until, bytes]. Numbers count the rows of a subtask from 0; `end` is the
number of the next one, `until` that of the first row that is not asked for, `bytes` a bound for
what is sent and not consumed. A row travels as msgpack.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any, Final

import msgpack

from epochgate.errors import InvariantBroken
from epochgate.runtime.api.operator import Operator, OperatorContext, Work
from epochgate.runtime.api.plain_values import insist_on_plain
from epochgate.runtime.collect.errors import (
    BufferFull,
    CollectMisconfigured,
    RowTooLarge,
    StateUnreadable,
)

STATE_VERSION: Final = 1
BATCH_ROWS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 256 * 1024
ROW_BYTES_MAX: Final = 8 * 1024 * 1024
BUFFER_BYTES_LIMIT: Final = 16 * 1024 * 1024
"""The buffer travels in one message when a snapshot is taken."""


class CollectSinkOperator(Operator):
    """Takes rows with `collect`; a program asks `has_room` before it makes any, and ends by `end`::

        def work(self) -> Work:
            if not self.results.has_room():
                return Work.IDLE
            ...
            self.results.collect(row)

    `buffer_rows_max` and `buffer_bytes_max` (packed) bound what is not consumed. The bytes are
    looked at between pieces of work: one piece may exceed them by the rows it makes. Raises
    CollectMisconfigured.
    """

    def __init__(
        self, *, buffer_rows_max: int = 10_000, buffer_bytes_max: int = 8 * 1024 * 1024
    ) -> None:
        if buffer_rows_max < 1 or not 1 <= buffer_bytes_max <= BUFFER_BYTES_LIMIT:
            raise CollectMisconfigured(
                f"a buffer of {buffer_rows_max} rows and {buffer_bytes_max} bytes; it holds at "
                f"least one row, and at most {BUFFER_BYTES_LIMIT} bytes, since it is part of each "
                "checkpoint"
            )
        self._rows_max, self._bytes_max = buffer_rows_max, buffer_bytes_max
        self._rows: deque[bytes] = deque()
        self._first = 0
        """The number of the oldest row in the buffer."""
        self._bytes = 0
        self._next: int | None = None
        """The number of the next row to send; None until the coordinator has said where to begin.
        """
        self._bytes_sent = 0
        """Of the rows that were sent and are still in the buffer."""
        self._until = self._window_bytes = 0
        self._has_said_waiting = False

    # what a program calls

    def has_room(self, rows: int = 1) -> bool:
        """Return whether the next piece of work may make `rows` rows; if not, it returns
        `Work.IDLE`.

        Raises CollectMisconfigured for more than the buffer ever holds.
        """
        if rows > self._rows_max:
            raise CollectMisconfigured(
                f"one piece of work makes {rows} rows, and the buffer never holds more than "
                f"{self._rows_max}; make fewer at once, or raise buffer_rows_max"
            )
        self._send()
        has_room = len(self._rows) + rows <= self._rows_max and self._bytes < self._bytes_max
        if not has_room:
            self._say_waiting()
        return has_room

    def collect(self, row: Any) -> None:
        """Add a row, a plain value; tuples arrive as lists. The order of a subtask's rows is kept.

        Raises BufferFull when there was no room, ValueNotPlain, and RowTooLarge for more than 8 MiB
        packed; each of them ends the job, since trying again does not help.
        """
        if len(self._rows) >= self._rows_max:
            raise BufferFull(
                f"the buffer for collected rows holds {self._rows_max} rows that are not "
                "consumed yet, and the program adds more. Return Work.IDLE while has_room() is "
                "false; ask has_room(rows) if one piece of work makes several"
            )
        insist_on_plain("a collected row", row)
        packed: bytes = msgpack.packb(row)
        if len(packed) > ROW_BYTES_MAX:
            raise RowTooLarge(
                f"a collected row has {len(packed)} bytes, and at most {ROW_BYTES_MAX} travel in "
                "one message; collect it in parts, or write it to files and collect their names"
            )
        self._rows.append(packed)
        self._bytes += len(packed)
        if self._next is not None and self._end - self._next >= BATCH_ROWS_MAX:
            self._send()

    def end(self) -> Work:
        """Return the word of `work` when there is no more input: ENDED once the driver has every
        row.
        """
        self._send()
        if self._next == self._end:
            return Work.ENDED
        self._say_waiting()
        return Work.IDLE

    # what the runtime calls

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Take up the rows of the state, and tell the coordinator which those are.

        Raises StateUnreadable for state of another format.
        """
        super().open(context, state)
        if state is not None:
            version, *values = msgpack.unpackb(state)
            if version != STATE_VERSION:
                raise StateUnreadable(
                    f"the collected rows in the checkpoint have format {version}, and this version "
                    f"reads {STATE_VERSION}; start with the version that has written it"
                )
            self._first, rows = values
            self._rows.extend(rows)
            self._bytes = sum(map(len, rows))
        context.send_to_coordinator(["opened", self._first, self._end])

    def handle_event(self, event: Any) -> None:
        """More is asked for, or something was consumed."""
        if event[0] == "begin":
            self._next = event[1]
            self._bytes_sent = sum(map(len, islice(self._rows, self._next - self._first)))
        consumed, self._until, self._window_bytes = event[-3:]
        self._forget(consumed)
        self._has_said_waiting = False
        self._send()

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Everything that is not consumed, also what the driver has."""
        self._send()
        self.context.send_to_coordinator(["snapshot", checkpoint_id, self._end])
        packed: bytes = msgpack.packb([STATE_VERSION, self._first, list(self._rows)])
        return packed

    @property
    def _end(self) -> int:
        return self._first + len(self._rows)

    def _forget(self, consumed: int) -> None:
        if self._next is None or consumed > self._next:
            raise InvariantBroken(f"row {consumed - 1} was consumed, and {self._next} is not sent")
        while self._first < consumed:
            size_bytes = len(self._rows.popleft())
            self._bytes -= size_bytes
            self._bytes_sent -= size_bytes
            self._first += 1

    def _send(self) -> None:
        while rows := self._next_batch():
            self.context.send_to_coordinator(["rows", self._next, rows])
            self._next = (self._next or 0) + len(rows)

    def _next_batch(self) -> list[bytes]:
        """Rows that are asked for and not sent; one too large for every bound goes alone."""
        if self._next is None or self._next >= self._until:
            return []
        batch: list[bytes] = []
        size_bytes = 0
        for row in islice(self._rows, self._next - self._first, self._until - self._first):
            unconsumed_bytes = self._bytes_sent + len(row)
            if self._bytes_sent > 0 and unconsumed_bytes > self._window_bytes:
                break
            if batch and (len(batch) == BATCH_ROWS_MAX or size_bytes + len(row) > BATCH_BYTES_MAX):
                break
            batch.append(row)
            size_bytes += len(row)
            self._bytes_sent = unconsumed_bytes
        return batch

    def _say_waiting(self) -> None:
        if self._next is not None and not self._has_said_waiting:
            self._has_said_waiting = True
            self.context.send_to_coordinator(["waiting"])
