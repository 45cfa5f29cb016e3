"""The coordinator of a source: runs the user's enumerator between the job and the readers.

Decides the order in which the enumerator hears of readers, requests, resets and checkpoints, and
that it never hears of anything before its start or after its end. Its checkpoint is the
enumerator's state and nothing else: readers register again, and what was assigned is in their own
state. A reset of the whole job makes another enumerator; whatever the old one had under way is
fenced off. Source: Apache Flink's SourceCoordinator (section 5 of docs/protocol.md). Runs on the
queue's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, Final

from epochgate.runtime.api.coordinator import (
    BATCH_CHECKPOINT,
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.malformed_event import insist_on_form
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.source import events
from epochgate.runtime.source.alignment import Aligner, WatermarkAlignment
from epochgate.runtime.source.assignment import Assignments
from epochgate.runtime.source.enumerator import SplitEnumerator
from epochgate.runtime.source.errors import (
    AlignmentAmongAttempts,
    SourceNotRunning,
    SourceStateRefused,
)
from epochgate.runtime.source.generation import Generation
from epochgate.runtime.source.redistribution import redistributed
from epochgate.runtime.source.source import Source
from epochgate.runtime.source.split import SourceSplit, pack, unpack

FORMAT_VERSION: Final = 1
"""Of what stands around the enumerator's state."""


class SourceCoordinator(OperatorCoordinator):
    """Runs the enumerators of one source, one after the other.

    Before its start and after its end, whatever tells it something raises SourceNotRunning: that
    is a fault of who calls, as in Flink's SourceCoordinator. Raises AlignmentAmongAttempts where
    `alignment` meets concurrent attempts, and what the user's enumerator raises, which fails the
    job.
    """

    def __init__(
        self,
        context: CoordinatorContext,
        source: Source,
        *,
        alignment: WatermarkAlignment | None = None,
        listening_id: str | None = None,
    ) -> None:
        self._context, self._source, self._listening_id = context, source, listening_id
        self._assignments = Assignments(context, self._present, self._hear_reader)
        self._generation = Generation(context, self._assignments)
        self._enumerator: SplitEnumerator | None = None
        """None before the first is made, and after one could not be made."""
        self._to_return: list[tuple[int, list[SourceSplit]]] = []
        """Assigned before the snapshot that this enumerator begins from, to readers that begin from
        nothing; it gets them back once it has started.
        """
        self._is_started = self._is_closed = self._is_broken = False
        self._aligner: Aligner | None = None
        if alignment is not None:
            if context.concurrent_attempts_max > 1:
                raise AlignmentAmongAttempts(
                    f"source {context.operator_id!r} aligns watermarks, and "
                    f"concurrent_attempts_max is {context.concurrent_attempts_max}: attempts of a "
                    "subtask read the same at different paces. Leave out one of the two"
                )
            self._aligner = Aligner(context, alignment, self._assignments.gateways)

    @property
    def enumerator(self) -> SplitEnumerator | None:
        """The enumerator that runs; None before the start and after the end."""
        return self._enumerator

    # its life

    def start(self) -> None:
        """Make the enumerator unless a checkpoint has, and start it; raising fails the job."""
        self._is_started = True
        # Where a restore before has failed, the job goes back and another is made and started.
        if not self._is_broken:
            if self._enumerator is None:
                self._begin(None, is_from_checkpoint=False)
            self._start_enumerator()
        if self._aligner is not None:
            self._aligner.start()
        if self._listening_id is not None:
            early = self._context.coordinator_store.put(self._listening_id, self)
            if early is not None and not isinstance(early, SourceCoordinator):
                self.handle_coordinator_event(early)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """End this enumerator, and begin another from the state. Raises SourceStateRefused, and
        what the user's code raises.
        """
        if self._is_closed:
            raise self._not_running("go back to a checkpoint")
        self._end()
        if self._aligner is not None:
            self._aligner.forget()
        if state is None:
            self._begin(None, is_from_checkpoint=False)
        else:
            self._restore(checkpoint_id, state)
        if self._is_started:
            self._start_enumerator()

    def close(self) -> None:
        """End everything."""
        self._is_closed = True
        if self._aligner is not None:
            self._aligner.close()
        if self._listening_id is not None:
            self._context.coordinator_store.compute(
                self._listening_id, lambda there: None if there is self else there
            )
        self._end()

    def _begin(self, state: Any, *, is_from_checkpoint: bool) -> None:
        self._assignments.restore(is_from_checkpoint=is_from_checkpoint)
        self._generation, self._to_return = Generation(self._context, self._assignments), []
        self._enumerator = self._source.create_enumerator(self._generation, state)
        self._is_broken = False

    def _start_enumerator(self) -> None:
        assert self._enumerator is not None
        try:
            self._enumerator.start()
            for subtask, splits in self._to_return:
                self._enumerator.add_splits_back(splits, subtask)
        except BaseException:
            self._is_broken = True
            raise

    def _end(self) -> None:
        self._generation.end()
        enumerator, self._enumerator = self._enumerator, None
        self._is_broken = True  # until another is there
        if enumerator is not None:
            enumerator.close()

    # what happens meanwhile

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """A reader speaks. Raises MalformedEvent for what no reader says, or none says then."""
        insist_on_form(subtask, event, events.FROM_READER)
        if self._running(f"take {event!r} from reader {subtask}") is None:
            return
        if event[0] == events.REGISTER:
            self._assignments.register(subtask, attempt, event[1])
        elif event[0] == events.REQUEST:
            self._assignments.request(subtask, attempt)
        else:
            self._assignments.speak(subtask, attempt, event)

    def _hear_reader(self, subtask: int, attempt: int, event: Any) -> None:
        if event[0] == events.SOURCE_EVENT:
            if self._context.concurrent_attempts_max > 1:
                self._present().handle_attempt_source_event(subtask, attempt, event[1])
            else:
                self._present().handle_source_event(subtask, event[1])
        elif self._aligner is not None:
            self._aligner.report(subtask, event[1], event[2])

    def handle_coordinator_event(self, event: Any) -> None:
        """Another coordinator of the job speaks; the enumerator hears of it in its turn, and what
        that raises is this source's failure. Any thread.
        """
        self._context.post(self._hear_coordinator, event)

    def _hear_coordinator(self, event: Any) -> None:
        if self._is_closed:
            return  # it was said while the job still ran
        enumerator = self._running(f"take {event!r} from another coordinator")
        if enumerator is not None:
            enumerator.handle_coordinator_event(event)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """The reader will register, as the first that it says."""
        if self._running(f"hear that reader {subtask} is ready") is not None:
            self._assignments.ready(gateway)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """The reader is gone; what it was given comes back when its subtask is reset."""
        if self._running(f"hear that reader {subtask} has failed") is not None:
            self._assignments.lost(subtask, attempt)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Give back to the enumerator what the subtask got after the checkpoint."""
        if self._running(f"take splits back from reader {subtask}") is not None:
            self._assignments.reset(subtask, checkpoint_id)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Complete the future with the enumerator's state, packed.

        What the enumerator raises fails the future, as do ReaderNotRegistered (splits were assigned
        to readers that were never there), AssignmentsForgotten (a snapshot without a checkpoint
        after one with), and ValueNotPlain.
        """
        enumerator = self._running(f"take checkpoint {checkpoint_id}")
        if enumerator is None:
            result.cancel()
            return
        try:
            state = self._snapshot(enumerator, checkpoint_id)
        except BaseException as error:  # noqa: BLE001  # it is handed to the one who asked
            let_pass(error)
            result.set_exception(error)
        else:
            result.set_result(state)

    def _snapshot(self, enumerator: SplitEnumerator, checkpoint_id: int) -> bytes:
        if checkpoint_id == BATCH_CHECKPOINT:
            return self._batch_snapshot(enumerator)
        packed = self._packed(enumerator, checkpoint_id, [])
        self._assignments.take(checkpoint_id)
        return packed

    def _batch_snapshot(self, enumerator: SplitEnumerator) -> bytes:
        """Also what is assigned: a job that begins from it has readers that begin from nothing."""
        assigned = [
            [subtask, [[split.split_id, split.value] for split in splits]]
            for subtask, splits in self._assignments.assigned().items()
        ]
        return self._packed(enumerator, BATCH_CHECKPOINT, assigned)

    def _packed(
        self, enumerator: SplitEnumerator, checkpoint_id: int, assigned: list[Any]
    ) -> bytes:
        state = enumerator.snapshot_state(checkpoint_id)
        content = [FORMAT_VERSION, self._source.state_version, state, assigned]
        return pack(content, f"the state of {type(enumerator).__name__}, with versions around it")

    def _restore(self, checkpoint_id: int, data: bytes) -> None:
        try:
            format_version, *content = unpack(data)
        except (ValueError, TypeError) as error:
            raise self._refused(checkpoint_id, "is no state of a source") from error
        if format_version != FORMAT_VERSION:
            raise self._refused(
                checkpoint_id, f"has format {format_version!r}, expected {FORMAT_VERSION}"
            )
        version, state, assigned = content
        if version != self._source.state_version:
            state = self._source.upgrade_state(version, state)
        self._begin(state, is_from_checkpoint=checkpoint_id != BATCH_CHECKPOINT)
        self._to_return = [
            (subtask, [SourceSplit(*plain) for plain in splits]) for subtask, splits in assigned
        ]

    def _refused(self, checkpoint_id: int, what: str) -> SourceStateRefused:
        return SourceStateRefused(
            f"the state of {self._context.operator_id!r} in checkpoint {checkpoint_id} {what}; it "
            "was written by another version of epochgate, or by another kind of operator. Resume "
            "with what wrote it, or start again with an empty checkpoint directory"
        )

    def supports_batch_snapshot(self) -> bool:
        """Return whether the enumerator does."""
        return self._enumerator is not None and self._enumerator.supports_batch_snapshot()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """No reader goes back behind this one any more."""
        enumerator = self._running(f"hear that checkpoint {checkpoint_id} is complete")
        if enumerator is not None:
            self._assignments.complete(checkpoint_id)
            enumerator.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Tell the enumerator."""
        enumerator = self._running(f"hear that checkpoint {checkpoint_id} was aborted")
        if enumerator is not None:
            self._assignments.abort()
            enumerator.notify_checkpoint_aborted(checkpoint_id)

    def _present(self) -> SplitEnumerator:
        assert self._enumerator is not None, "the machines are driven while there is an enumerator"
        return self._enumerator

    def _running(self, what: str) -> SplitEnumerator | None:
        """The enumerator; none when it could not be made or started, so that the job is failing.

        Raises SourceNotRunning before the start and after the end.
        """
        if self._is_closed or not (self._is_started or self._is_broken):
            raise self._not_running(what)
        return None if self._is_broken else self._enumerator

    def _not_running(self, what: str) -> SourceNotRunning:
        when = "is closed" if self._is_closed else "has not started"
        return SourceNotRunning(
            f"the coordinator of source {self._context.operator_id!r} was to {what}, and it {when}"
        )


class SourceProvider(CoordinatorProvider):
    """Makes the coordinator of `source`; tasks read it with a `SourceOperator` of the same id. At a
    reset it makes another enumerator by itself: there is no need for `RecreateOnReset` around it.

    `alignment`: let readers that are far ahead wait for the slowest. `listening_id`: the key under
    which other coordinators find this one in the coordinators' store, to give it events with
    `handle_coordinator_event`; an event that stands there before is taken first.
    """

    def __init__(
        self,
        operator_id: str,
        source: Source,
        *,
        alignment: WatermarkAlignment | None = None,
        listening_id: str | None = None,
    ) -> None:
        self._operator_id, self._source = operator_id, source
        self._alignment, self._listening_id = alignment, listening_id

    @property
    def operator_id(self) -> str:
        """The name of the source's operator."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> SourceCoordinator:
        """Make the coordinator."""
        return SourceCoordinator(
            context, self._source, alignment=self._alignment, listening_id=self._listening_id
        )

    def redistribute(self, states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        """Deal the splits of the readers, with their positions, out to the new ones."""
        return redistributed(self._source, self._operator_id, states, parallelism)

    def files_of(self, state: bytes) -> Collection[str]:
        """Those that the source names."""
        _, version, enumerator_state, *_ = unpack(state)
        files: Collection[str] = self._source.files_of(version, enumerator_state)
        return files
