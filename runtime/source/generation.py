"""The context of one enumerator: what it may do, and whether it still counts.

Implements `SplitEnumeratorContext`. A reset of the whole job ends the generation and begins
another, so that nothing which the old enumerator had under way can reach the new one. What its
assignments come to is decided by the machines behind `Assignments`. Runs on the queue's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epochgate.runtime.api.coordinator import CoordinatorContext
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.source import events
from epochgate.runtime.source.assignment import Assignments
from epochgate.runtime.source.enumerator import ReaderInfo
from epochgate.runtime.source.errors import (
    AttemptNotNamed,
    EnumeratorReplaced,
    ReaderNotRegistered,
    UnknownSubtask,
)
from epochgate.runtime.source.split import SourceSplit, pack_splits


class Generation:
    """The context of one enumerator."""

    def __init__(self, context: CoordinatorContext, assignments: Assignments) -> None:
        self._context, self._assignments = context, assignments
        self._is_over = False

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
        there = self._assignments.readers
        return {subtask: attempts[min(attempts)] for subtask, attempts in there.items()}

    @property
    def registered_attempts(self) -> Mapping[int, Mapping[int, ReaderInfo]]:
        return self._assignments.readers

    def assign_split(self, split: SourceSplit, subtask: int) -> None:
        self.assign_splits({subtask: [split]})

    def assign_splits(self, assignment: Mapping[int, Sequence[SourceSplit]]) -> None:
        self._require_current("assign splits")
        wanted = {subtask: list(splits) for subtask, splits in assignment.items() if splits}
        for subtask, splits in wanted.items():
            self._require_known(subtask)
            self._assignments.require_open(subtask, splits)
            pack_splits(splits)  # what is not plain is refused before anything is assigned
        for subtask, splits in wanted.items():
            self._assignments.assign(subtask, splits)

    def signal_no_more_splits(self, subtask: int) -> None:
        self._require_current("tell a reader that there are no more splits")
        self._require_known(subtask)
        self._assignments.signal(subtask)

    def send_event_to_source_reader(
        self, subtask: int, event: Any, *, attempt: int | None = None
    ) -> SendFuture:
        self._require_current("send an event")
        there = self._assignments.readers.get(subtask, {})
        if attempt is None and self._context.concurrent_attempts_max > 1:
            raise AttemptNotNamed(
                f"the enumerator of {self.operator_id!r} sent {event!r} to reader {subtask}, in a "
                f"job with concurrent attempts; say to which of {sorted(there)} by attempt="
            )
        if not there or (attempt is not None and attempt not in there):
            raise ReaderNotRegistered(
                f"the enumerator of {self.operator_id!r} sent {event!r} to reader {subtask}, which "
                f"is not there; there are {sorted(self._assignments.readers)}. Look it up in "
                "registered_readers, and send what it missed in add_reader"
            )
        wanted = next(iter(there)) if attempt is None else attempt
        return self._assignments.send_event(subtask, wanted, [events.SOURCE_EVENT, event])

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
