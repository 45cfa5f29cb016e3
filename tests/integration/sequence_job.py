"""Coordinators that send a sequence of numbers to each subtask, and operators that list them.

After Apache Flink's CoordinatorEventsExactlyOnceITCase and its variant for receivers that are no
sources: what they demand, in our own words and on our own API. A coordinator works on a thread of
its own and fails the job once; it then stands still until a successor of its tasks runs, so that
what it had begun is done when it is too late for it. In the end each subtask has listed 0 to n - 1.

The module travels to the tasks by value; what is here for the driver is not used there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import msgpack

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    FatalTaskError,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    SendFuture,
    SubtaskGateway,
    Work,
)
from tests.integration.ledger import Ledger
from tests.integration.mailbox import Mailbox

END = "end"
SENDS_TOO_LATE = 3
SNAPSHOT_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Sequence:
    """The numbers that one coordinator sends to each subtask: 0 to `count` - 1, one each
    `interval_s`, then an end. Once it has sent `fails_at` of them and a checkpoint is completed, it
    fails the job.

    `is_behind_source`: its receivers take their snapshots only when it has left word that an event
    is held back from them, and then it fails the job; and it goes by what a subtask says that it
    has, instead of by what it remembers.
    """

    operator_id: str
    count: int
    interval_s: float
    fails_at: int
    is_behind_source: bool = False


class SequenceCoordinator(OperatorCoordinator):
    """Does everything in its mailbox, which is a thread if `is_threaded`."""

    def __init__(
        self, context: CoordinatorContext, sequence: Sequence, ledger: Ledger, is_threaded: bool
    ) -> None:
        self.context, self.sequence, self._ledger = context, sequence, ledger
        self._is_threaded = is_threaded
        self.mailbox = Mailbox(lambda error: context.fail_job(FatalTaskError(repr(error))))
        self.next = dict.fromkeys(range(context.parallelism), 0)
        self.gateways: dict[int, SubtaskGateway] = {}
        self.sends: list[SendFuture] = []
        self.disagreements: list[str] = []
        self.has_failed = False
        self._unreported: dict[int, SubtaskGateway] = {}
        self._snapshots = {0: dict(self.next)}
        self._failed_attempts: dict[int, int] = {}
        self._is_armed = self._has_completed = False
        self._answered = 0
        """The checkpoint whose future it has completed and that is not over; 0 for none."""

    def start(self) -> None:
        if self._is_threaded:
            self.mailbox.start()

    def close(self) -> None:
        self.mailbox.close()

    # called on the queue's thread, and done in the mailbox

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.mailbox.put(self._answer, checkpoint_id, result)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.mailbox.put(self._reset, checkpoint_id, state)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.mailbox.put(self._rewind, subtask, checkpoint_id)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.mailbox.put(self._take_gateway, subtask, gateway)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.mailbox.put(self._drop_gateway, subtask)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.mailbox.put(self._end_checkpoint, checkpoint_id, True)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.mailbox.put(self._end_checkpoint, checkpoint_id, False)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        what, count = event
        if what == "has":
            self.mailbox.put(self._compare, subtask, attempt, count)
        elif attempt > self._failed_attempts.get(subtask, attempt):
            self.mailbox.resume()

    # in the mailbox: attempts

    def _take_gateway(self, subtask: int, gateway: SubtaskGateway) -> None:
        gateways = self._unreported if self.sequence.is_behind_source else self.gateways
        gateways[subtask] = gateway
        self._arm()

    def _drop_gateway(self, subtask: int) -> None:
        self.gateways.pop(subtask, None)
        self._unreported.pop(subtask, None)

    def _compare(self, subtask: int, attempt: int, count: int) -> None:
        gateway = self._unreported.get(subtask)
        if gateway is None or gateway.attempt != attempt:
            return
        if self.next[subtask] != count:
            remembered = f"the coordinator remembers {self.next[subtask]}"
            self.disagreements.append(f"attempt {attempt} of {subtask} has {count}, {remembered}")
        self.next[subtask] = count
        self.gateways[subtask] = self._unreported.pop(subtask)
        self._arm()

    def _reset(self, checkpoint: int, state: bytes | None) -> None:
        nothing = dict.fromkeys(self.next, 0)
        self.next = nothing if state is None else msgpack.unpackb(state, strict_map_key=False)
        self._snapshots = {checkpoint: dict(self.next)}
        self._answered = 0
        self.gateways.clear()
        self._unreported.clear()

    def _rewind(self, subtask: int, checkpoint: int) -> None:
        self.next[subtask] = self._snapshots[checkpoint][subtask]

    # in the mailbox: sending

    def _arm(self) -> None:
        is_all_sent = all(self._is_all_sent(subtask) for subtask in self.gateways)
        if not self._is_armed and not is_all_sent:
            self._is_armed = True
            interval_s = self.sequence.interval_s
            self.context.post(self.context.post_later, interval_s, self.mailbox.put, self._tick)

    def _is_all_sent(self, subtask: int) -> bool:
        return self.next[subtask] > self.sequence.count

    def _tick(self) -> None:
        self._is_armed = False
        sent = max((self.next[subtask] for subtask in self.gateways), default=0)
        must_fail = not self.has_failed and sent >= self.sequence.fails_at
        is_holding = self._answered > 0 or not self.sequence.is_behind_source
        is_time = self._has_completed and is_holding
        if must_fail and not is_time:
            for subtask in self.next if self._answered else ():
                self._tell_held(self._answered, subtask)  # nothing is sent until it fails
            self._arm()
            return
        for subtask in self.gateways:
            self._send(subtask)
        if must_fail:
            self._fail()
        else:
            self._arm()

    def _fail(self) -> None:
        self.has_failed = True
        self._failed_attempts = {s: gateway.attempt for s, gateway in self.gateways.items()}
        for subtask in self.gateways:
            for _ in range(SENDS_TOO_LATE):
                self.mailbox.put(self._send, subtask)
        self.mailbox.stall()
        self.context.fail_job("by order of the test")

    def _send(self, subtask: int) -> None:
        if subtask not in self.gateways or self._is_all_sent(subtask):
            return
        number = self.next[subtask]
        self.next[subtask] = number + 1
        event = number if number < self.sequence.count else END
        self.sends.append(self.gateways[subtask].send_event(event))
        if self._answered:
            self._tell_held(self._answered, subtask)

    # in the mailbox: checkpoints

    def _answer(self, checkpoint: int, result: Future[bytes]) -> None:
        self._snapshots[checkpoint] = dict(self.next)
        self._answered = checkpoint
        result.set_result(msgpack.packb(self.next))
        for subtask in self.next:
            if self._is_all_sent(subtask):
                self._tell_held(checkpoint, subtask)

    def _end_checkpoint(self, checkpoint: int, is_completed: bool) -> None:
        self._has_completed = self._has_completed or is_completed
        if self._answered == checkpoint:
            self._answered = 0
        for subtask in self.next:
            self._tell_held(checkpoint, subtask)

    def _tell_held(self, checkpoint: int, subtask: int) -> None:
        # Posted, so that the gateway has got the event before anybody hears of it.
        if self.sequence.is_behind_source:
            self.context.post(self._ledger.tell, held_word(checkpoint, subtask))


def held_word(checkpoint: int, subtask: int) -> str:
    """Says that the checkpoint holds an event back from the subtask, or has none to hold back."""
    return f"held-{checkpoint}-{subtask}"


class SequenceProvider(CoordinatorProvider):
    """Makes the coordinator, and keeps it in `coordinator`."""

    def __init__(self, sequence: Sequence, ledger: Ledger, *, is_threaded: bool) -> None:
        self.sequence, self._ledger, self._is_threaded = sequence, ledger, is_threaded
        self.coordinator: SequenceCoordinator

    @property
    def operator_id(self) -> str:
        return self.sequence.operator_id

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = SequenceCoordinator(
            context, self.sequence, self._ledger, self._is_threaded
        )
        return self.coordinator


class SequenceOperator(Operator):
    """Lists the numbers that it gets, and writes down what happens to it.

    Its first attempt raises at the number `poison`. A record from upstream is listed as a negative
    number. If it `is_behind_source`, its snapshot waits for word that an event is held back.
    """

    def __init__(
        self, ledger: Ledger, *, poison: int | None = None, is_behind_source: bool = False
    ) -> None:
        self._ledger, self._poison, self._is_behind_source = ledger, poison, is_behind_source
        self.values: list[int] = []
        self.is_ended = False

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        if state is not None:
            self.values, self.is_ended = msgpack.unpackb(state)
        self._write = self._ledger.open(context.operator_id, context.subtask, context.attempt)
        self._write(["began", self.values])
        context.send_to_coordinator(["has", self._events_handled()])

    def _events_handled(self) -> int:
        return sum(value >= 0 for value in self.values) + self.is_ended

    def handle_event(self, event: Any) -> None:
        if event == self._poison and self.context.attempt == 0:
            raise RuntimeError("by order of the test")
        if event == END:
            self.is_ended = True
        else:
            self._list(event)

    def handle_record(self, record: int) -> None:
        """The operator before this one has passed on a record, 0 or more."""
        self._list(-1 - record)

    def _list(self, value: int) -> None:
        self.values.append(value)
        self._write(["handled", value])

    def snapshot(self, checkpoint_id: int) -> bytes:
        if self._is_behind_source:
            self._wait(held_word(checkpoint_id, self.context.subtask))
        self._write(["snapshot", checkpoint_id])
        return bytes(msgpack.packb([self.values, self.is_ended]))

    def _wait(self, word: str) -> None:
        deadline_s = time.monotonic() + SNAPSHOT_PATIENCE_S
        while not self._ledger.is_told(word):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{word} was not said within {SNAPSHOT_PATIENCE_S} s")
            time.sleep(0.002)


class SequenceProgram(Program):
    """Several of them; tells each coordinator when it has begun to run."""

    def __init__(self, operators: dict[str, SequenceOperator]) -> None:
        self._operators = operators
        self._has_told = False

    @property
    def operators(self) -> Mapping[str, Operator]:
        return self._operators

    def work(self) -> Work:
        if not self._has_told:
            self._has_told = True
            for operator in self._operators.values():
                operator.context.send_to_coordinator(["runs", 0])
        is_over = all(operator.is_ended for operator in self._operators.values())
        return Work.ENDED if is_over else Work.IDLE


class RecordSource(Operator):
    """Counts the records that it has passed on: it is a source, and has no coordinator."""

    position = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.position = 0 if state is None else msgpack.unpackb(state)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb(self.position))


class ReceiverProgram(SequenceProgram):
    """A source whose `records` go to the operator behind it, which gets events too."""

    def __init__(self, receiver_id: str, receiver: SequenceOperator, records: int) -> None:
        super().__init__({receiver_id: receiver})
        self._source, self._receiver, self._records = RecordSource(), receiver, records

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"source": self._source, **super().operators}

    def work(self) -> Work:
        outcome = super().work()
        if self._source.position == self._records:
            return outcome
        self._receiver.handle_record(self._source.position)
        self._source.position += 1
        return Work.DONE
