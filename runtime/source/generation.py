"""One enumerator's time: what it has assigned, which readers it has, and whether it still counts.

Implements `SplitEnumeratorContext`. A reset of the whole job ends the generation and begins
another, so that nothing which the old enumerator had under way can reach the new one. Decides what
is sent to a reader, and what waits until there is one. Runs on the queue's thread.

    assigned, reader there         recorded and sent
    assigned, reader gone          recorded; sent when one registers, unless its subtask is reset
    reset of a subtask             what it got after the checkpoint goes back to the enumerator
    "no more" to a reader          once for an attempt; again to its successor, unless there is more

A subtask with concurrent attempts has a reader in each: what is assigned to the subtask is sent to
all of them, and to one that registers later as well, from the first split on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from epochgate.runtime.coordinator import CoordinatorContext, SubtaskGateway
from epochgate.runtime.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.send_future import SendFuture
from epochgate.runtime.source import events
from epochgate.runtime.source.assignment import SplitAssignmentTracker
from epochgate.runtime.source.enumerator import ReaderInfo
from epochgate.runtime.source.errors import (
    AttemptNotNamed,
    EnumeratorReplaced,
    ReaderNotRegistered,
    SplitsAfterNoMore,
    UnknownSubtask,
)
from epochgate.runtime.source.split import SourceSplit, pack_splits


class Generation:
    """The context of one enumerator."""

    def __init__(self, context: CoordinatorContext) -> None:
        self._context = context
        self._assigned = context.metrics.counter("splits_assigned")
        self._taken_back = context.metrics.counter("splits_taken_back")
        self.tracker: SplitAssignmentTracker[SourceSplit] = SplitAssignmentTracker()
        self._is_concurrent = context.concurrent_attempts_max > 1
        self._attempts: dict[int, dict[int, ReaderInfo]] = {}
        """The registered readers, by subtask and attempt; no subtask without one."""
        self._gateways: dict[int, dict[int, SubtaskGateway]] = {}
        self._unsent: dict[int, list[SourceSplit]] = {}
        self._has_no_more: set[int] = set()
        self._had_no_more: set[int] = set()
        """Subtasks whose attempt before had been told, and which got nothing since."""
        self._is_over = False
        self.has_forgotten = False
        """Whether readers' states hold splits whose assignment nobody remembers."""

    # for the enumerator

    @property
    def operator_id(self) -> str:
        return self._context.operator_id

    @property
    def parallelism(self) -> int:
        return self._context.parallelism

    @property
    def metrics(self) -> CoordinatorMetrics:
        return self._context.metrics

    @property
    def registered_readers(self) -> Mapping[int, ReaderInfo]:
        return {subtask: there[min(there)] for subtask, there in self._attempts.items()}

    @property
    def registered_attempts(self) -> Mapping[int, Mapping[int, ReaderInfo]]:
        return self._attempts

    def assign_split(self, split: SourceSplit, subtask: int) -> None:
        self.assign_splits({subtask: [split]})

    def assign_splits(self, assignment: Mapping[int, Sequence[SourceSplit]]) -> None:
        self._require_current("assign splits")
        wanted = {subtask: list(splits) for subtask, splits in assignment.items() if splits}
        for subtask, splits in wanted.items():
            self._require_assignable(subtask, splits)
        packed = {subtask: pack_splits(splits) for subtask, splits in wanted.items()}
        for subtask, splits in wanted.items():
            self._had_no_more.discard(subtask)
            self.tracker.record(subtask, splits)
            self._assigned.add(len(splits))
            if subtask in self._attempts:
                self._send(subtask, [events.SPLITS, packed[subtask]])
            else:
                self._unsent.setdefault(subtask, []).extend(splits)

    def signal_no_more_splits(self, subtask: int) -> None:
        self._require_current("tell a reader that there are no more splits")
        self._require_known(subtask)
        if subtask not in self._has_no_more:
            self._has_no_more.add(subtask)
            if subtask in self._attempts:
                self._send(subtask, [events.NO_MORE])

    def _send(self, subtask: int, event: Any) -> None:
        for attempt in self._attempts[subtask]:
            self._gateways[subtask][attempt].send_event(event)

    def send_event_to_source_reader(
        self, subtask: int, event: Any, *, attempt: int | None = None
    ) -> SendFuture:
        self._require_current("send an event")
        there = self._attempts.get(subtask, {})
        if attempt is None and self._is_concurrent:
            raise AttemptNotNamed(
                f"the enumerator of {self.operator_id!r} sent {event!r} to reader {subtask}, in a "
                f"job with concurrent attempts; say to which of {sorted(there)} by attempt="
            )
        if not there or (attempt is not None and attempt not in there):
            raise ReaderNotRegistered(
                f"the enumerator of {self.operator_id!r} sent {event!r} to reader {subtask}, which "
                f"is not there; there are {sorted(self._attempts)}. Look it up in "
                "registered_readers, and send what it missed in add_reader"
            )
        wanted = next(iter(there)) if attempt is None else attempt
        return self._gateways[subtask][wanted].send_event([events.SOURCE_EVENT, event])

    def call_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        *,
        on_error: Callable[[BaseException], None] | None = None,
        delay_s: float = 0.0,
        every_s: float | None = None,
    ) -> None:
        def begin() -> None:
            if not self._is_over:
                self._context.run_async(work, end)

        def end(result: Any, error: BaseException | None) -> None:
            if self._is_over:
                return
            if every_s is not None:
                self._context.post_later(every_s, begin)
            if error is None:
                then(result)
            elif on_error is not None:
                on_error(error)
            else:
                raise error

        if delay_s > 0:
            self._context.post_later(delay_s, begin)
        else:
            begin()

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self._context.post(self._call, call, arguments)

    def _call(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if not self._is_over:
            call(*arguments)

    def fail_job(self, cause: BaseException | str) -> None:
        if not self._is_over:
            self._context.fail_job(cause)

    # for the coordinator

    def gateways(self) -> Iterable[SubtaskGateway]:
        """Those of the registered readers, by subtask."""
        return [
            self._gateways[subtask][attempt]
            for subtask in sorted(self._attempts)
            for attempt in self._attempts[subtask]
        ]

    def attempt_ready(self, gateway: SubtaskGateway) -> None:
        """Its reader will register."""
        self._gateways.setdefault(gateway.subtask, {})[gateway.attempt] = gateway

    def attempt_failed(self, subtask: int, attempt: int) -> None:
        """What it was sent stays recorded until the subtask is reset."""
        self._gateways.get(subtask, {}).pop(attempt, None)
        self._attempts.get(subtask, {}).pop(attempt, None)
        if self._attempts.get(subtask):
            return
        self._attempts.pop(subtask, None)
        if subtask in self._has_no_more:
            self._has_no_more.discard(subtask)
            self._had_no_more.add(subtask)

    def register(self, subtask: int, attempt: int, host: str) -> bool:
        """A reader is there: send what waits for it; False if the subtask had one already."""
        gateway = self._gateways.get(subtask, {}).get(attempt)
        if gateway is None:
            raise ReaderNotRegistered(
                f"reader {subtask} of {self.operator_id!r} registered from attempt {attempt}, "
                "which cannot be sent events; an attempt must be ready before its reader speaks"
            )
        there = self._attempts.setdefault(subtask, {})
        if attempt in there:
            return False
        there[attempt] = ReaderInfo(subtask, attempt, host)
        unsent = self._unsent.pop(subtask, None)
        if self._is_concurrent:
            unsent = self.tracker.assigned().get(subtask)
        if unsent:
            gateway.send_event([events.SPLITS, pack_splits(unsent)])
        if subtask in self._has_no_more:
            gateway.send_event([events.NO_MORE])
        return len(there) == 1

    def repeat_no_more(self, subtask: int) -> None:
        """Tell a successor what the attempt before it was told, unless it has got more since."""
        if subtask in self._had_no_more:
            self._had_no_more.discard(subtask)
            self.signal_no_more_splits(subtask)

    def has_no_more(self, subtask: int) -> bool:
        """Whether the attempt that is there was told so."""
        return subtask in self._has_no_more

    def require_reader(self, subtask: int, attempt: int, what: str) -> None:
        """Raise ReaderNotRegistered unless the reader of this attempt is there."""
        if attempt not in self._attempts.get(subtask, {}):
            raise ReaderNotRegistered(
                f"reader {subtask} of {self.operator_id!r} sent {what!r} before it registered; it "
                "was made with another version of epochgate"
            )

    def take_back(self, subtask: int, checkpoint_id: int) -> list[SourceSplit]:
        """Take from the subtask what it got after the checkpoint."""
        self._unsent.pop(subtask, None)
        splits = self.tracker.take_back(subtask, checkpoint_id)
        if splits:
            self._taken_back.add(len(splits))
            self._has_no_more.discard(subtask)
            self._had_no_more.discard(subtask)
        return splits

    def complete(self, checkpoint_id: int) -> None:
        """No reader goes back behind this checkpoint any more."""
        self.tracker.complete(checkpoint_id)
        self.has_forgotten = True

    def unsent(self) -> list[int]:
        """The subtasks that were assigned splits and have no reader."""
        return sorted(self._unsent)

    def end(self) -> None:
        """From now on the enumerator has no say."""
        self._is_over = True

    def _require_current(self, what: str) -> None:
        if self._is_over:
            raise EnumeratorReplaced(
                f"an enumerator of {self.operator_id!r} wanted to {what} after it was closed. End "
                "its threads in close, and come back from them with the context's post"
            )

    def _require_known(self, subtask: int) -> None:
        if not 0 <= subtask < self.parallelism:
            raise UnknownSubtask(
                f"the enumerator of {self.operator_id!r} named subtask {subtask!r}; the job has 0 "
                f"to {self.parallelism - 1}"
            )

    def _require_assignable(self, subtask: int, splits: Sequence[SourceSplit]) -> None:
        self._require_known(subtask)
        if subtask in self._has_no_more:
            names = [split.split_id for split in splits]
            raise SplitsAfterNoMore(
                f"the enumerator of {self.operator_id!r} assigned {names} to reader {subtask}, "
                "which it has told that there are no more: it may have ended. Assign them to "
                "another reader, or signal later"
            )
