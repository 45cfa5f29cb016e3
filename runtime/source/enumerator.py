"""The driver's half of a source, as a user writes it: which splits there are, and who gets which.

Source: Apache Flink's SplitEnumerator and SplitEnumeratorContext. Every method is called on the
queue's thread of the driver, one at a time, and must not block: what takes time goes through the
context's `call_async`. Remembering what was assigned since which checkpoint is left to
`SourceCoordinator`; an enumerator only hears which splits came back.

    start -> add_reader(0) -> handle_split_request(0) -> assign_split(split, 0) -> ...
    subtask 0 fails and goes back to a checkpoint -> add_splits_back([split], 0) -> add_reader(0)
    the whole job goes back -> close; another enumerator is made of the checkpoint's state -> start
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.source.errors import AttemptNotNamed
from epochgate.runtime.source.split import SourceSplit


@dataclass(frozen=True)
class ReaderInfo:
    """A reader that is there: its subtask, the attempt (from 0) and the host it runs on."""

    subtask: int
    attempt: int
    host: str


class SplitEnumeratorContext(Protocol):
    """The calls that an enumerator may make; on the queue's thread, except `post` and `fail_job`.

    It belongs to one enumerator. Once that was replaced, its calls and results are dropped, and
    assigning or sending raises EnumeratorReplaced.
    """

    @property
    def operator_id(self) -> str:
        """The operator id of the source."""
        ...

    @property
    def parallelism(self) -> int:
        """The number of readers the job has when all are there."""
        ...

    @property
    def metrics(self) -> CoordinatorMetrics:
        """The source's figures; `splits_assigned` and `splits_taken_back` are counted already."""
        ...

    @property
    def registered_readers(self) -> Mapping[int, ReaderInfo]:
        """The readers that are there now, by subtask; of concurrent attempts the lowest."""
        ...

    @property
    def registered_attempts(self) -> Mapping[int, Mapping[int, ReaderInfo]]:
        """All readers that are there now, by subtask and attempt."""
        ...

    def assign_split(self, split: SourceSplit, subtask: int) -> None:
        """Give a split to a reader. When the reader is not there it is kept: sent when the reader
        registers, or returned by `add_splits_back` when its subtask goes back to a checkpoint.

        Raises UnknownSubtask, SplitsAfterNoMore, ValueNotPlain, EnumeratorReplaced.
        """
        ...

    def assign_splits(self, assignment: Mapping[int, Sequence[SourceSplit]]) -> None:
        """Give several splits; subtask -> splits. Raises what `assign_split` raises."""
        ...

    def signal_no_more_splits(self, subtask: int) -> None:
        """Tell the reader that nothing comes after what it was given; it ends when that is read.

        A reader that is restarted is told again by itself, unless splits of it came back or it was
        given others since: then tell it again when it has all. Raises UnknownSubtask,
        EnumeratorReplaced.
        """
        ...

    def send_event_to_source_reader(
        self, subtask: int, event: Any, *, attempt: int | None = None
    ) -> SendFuture:
        """Send a plain value to the reader's `handle_source_event`; `attempt` says to which of
        several. Raises ReaderNotRegistered, EnumeratorReplaced, and AttemptNotNamed in a job with
        concurrent attempts.
        """
        ...

    def call_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        *,
        on_error: Callable[[BaseException], None] | None = None,
        delay_s: float = 0.0,
        every_s: float | None = None,
    ) -> None:
        """Run blocking `work` elsewhere, then `then(result)` on the queue's thread.

        `delay_s`: seconds before the first run; `every_s`: seconds from the end of one run to the
        next, none: run once. In a streaming query each run waits for the first trigger after its
        time. What `work` raises goes to `on_error`, by default it fails the job, as what `then`
        raises does. One piece of work runs at a time. `work` must not touch what the enumerator
        changes: give it copies.
        """
        ...

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run `call` on the queue's thread, in its turn. Any thread."""
        ...

    def fail_job(self, cause: BaseException | str) -> None:
        """Take the whole job back to its last completed checkpoint. Any thread."""
        ...


class SplitEnumerator(ABC):
    """Decides which splits there are and who reads them."""

    def start(self) -> None:
        """Begin: look for splits, usually with `call_async`. Raising fails the job."""

    @abstractmethod
    def handle_split_request(self, subtask: int) -> None:
        """The reader could read another split. Assign one, say that there are no more, or remember
        who asked; a reader asks once, and again when it was given one.
        """

    @abstractmethod
    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        """These were given to the subtask after the checkpoint that it has gone back to, in this
        order: no reader has them now. Not called when there are none.
        """

    @abstractmethod
    def add_reader(self, subtask: int) -> None:
        """The reader is there, for the first time or after a restart. Splits that a restarted
        reader had in its checkpoint are with it already.
        """

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """The reader has sent `event`, a plain value. Raises TypeError unless it is overridden."""
        raise TypeError(
            f"{type(self).__name__} got {event!r} from reader {subtask} but handles no source "
            "events; override handle_source_event"
        )

    def handle_attempt_source_event(self, subtask: int, attempt: int, event: Any) -> None:
        """Called instead of `handle_source_event` in a job with concurrent attempts; `attempt`
        counts from 0. Raises AttemptNotNamed unless it is overridden, as Flink's
        SupportsHandleExecutionAttemptSourceEvent asks.
        """
        raise AttemptNotNamed(
            f"{type(self).__name__} got {event!r} from attempt {attempt} of reader {subtask}, in a "
            "job with concurrent attempts; override handle_attempt_source_event, or run the job "
            "with concurrent_attempts_max=1"
        )

    def handle_coordinator_event(self, event: Any) -> None:
        """Another coordinator of the job has sent `event` (see `SourceProvider.listening_id`).

        Raises TypeError unless it is overridden, which fails the job.
        """
        raise TypeError(
            f"{type(self).__name__} got {event!r} from another coordinator but handles no such "
            "events; override handle_coordinator_event"
        )

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Any:
        """Return what remains to be assigned, as a plain value; not what was assigned, which is in
        the readers' states. Raising fails the checkpoint.
        """

    def supports_batch_snapshot(self) -> bool:
        """Return whether `snapshot_state(BATCH_CHECKPOINT)` may be asked in a job that completes no
        checkpoints. What is assigned is kept with it, and comes back by `add_splits_back` in a job
        that begins from it.
        """
        return False

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable; the notice may be missed, and is then subsumed by a later."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be."""

    def close(self) -> None:
        """Release everything: the job is over, or another enumerator takes over."""
