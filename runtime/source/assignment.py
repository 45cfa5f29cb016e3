"""The shell around the machines of a source: gateways and the user's enumerator at their ports.

Decides nothing: `epochgate.models.split_assignment` says which reader is sent a split, what comes
back, and who is listened to. Calls of the enumerator wait until everything that the same event
sends is sent, so that whatever they assign comes after it. Runs on the queue's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from epochgate.fsm import Handle, Handles, TransitionRefused
from epochgate.fsm.inside import machine_behind
from epochgate.models.split_assignment import SplitAssignment, SplitAssignments
from epochgate.runtime.api.coordinator import CoordinatorContext, SubtaskGateway
from epochgate.runtime.api.malformed_event import MalformedEvent
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.source import events
from epochgate.runtime.source.enumerator import ReaderInfo, SplitEnumerator
from epochgate.runtime.source.errors import (
    AssignmentsForgotten,
    ReaderNotRegistered,
    SplitsAfterNoMore,
)
from epochgate.runtime.source.split import SourceSplit, pack_splits


class Assignments:
    """The splits and readers of one source.

    `enumerator` returns the one that is there now; `hear` takes what a reader says beside its
    requests: subtask, attempt, event.
    """

    def __init__(
        self,
        context: CoordinatorContext,
        enumerator: Callable[[], SplitEnumerator],
        hear: Callable[[int, int, Any], None],
    ) -> None:
        self._operator_id, self._enumerator, self._hear = context.operator_id, enumerator, hear
        self._assigned = context.metrics.counter("splits_assigned")
        self._taken_back = context.metrics.counter("splits_taken_back")
        self._system = Handles(
            SplitAssignments,
            subtasks=context.parallelism,
            places=context.concurrent_attempts_max,
        )
        self._system.bind("assignment", "readers", self)
        self._system.bind("assignment", "enumerator", self)
        self._gateways: dict[tuple[int, int], SubtaskGateway] = {}
        self._host = ""
        """Of the reader that registers."""
        self._readers: dict[int, dict[int, ReaderInfo]] = {}
        self._outgoing: dict[tuple[int, int], list[SourceSplit]] = {}
        """Splits that one event sends to a reader, which gets them together."""
        self._returned: list[SourceSplit] = []
        self._listed: dict[int, list[SourceSplit]] = {}
        self._unsent: list[int] = []
        self._calls: deque[Callable[[], None]] = deque()

    @property
    def readers(self) -> Mapping[int, Mapping[int, ReaderInfo]]:
        """The registered readers, by subtask and attempt; no subtask without one."""
        return self._readers

    def gateways(self) -> Iterable[SubtaskGateway]:
        """Those of the registered readers, by subtask."""
        return [
            self._gateways[subtask, attempt]
            for subtask in sorted(self._readers)
            for attempt in self._readers[subtask]
        ]

    # what happens

    def ready(self, gateway: SubtaskGateway) -> None:
        """An attempt can be sent events; its reader will register."""
        self._gateways[gateway.subtask, gateway.attempt] = gateway
        self._fire(self._of(gateway.subtask).ready, gateway.attempt)

    def lost(self, subtask: int, attempt: int) -> None:
        """An attempt has failed."""
        self._fire(self._of(subtask).lost, attempt)
        self._gateways.pop((subtask, attempt), None)

    def register(self, subtask: int, attempt: int, host: str) -> None:
        """A reader says that it is there. Raises MalformedEvent when it cannot be."""
        self._host = host
        try:
            self._fire(self._of(subtask).register, attempt)
        except TransitionRefused as error:
            raise MalformedEvent(
                f"reader {subtask} of {self._operator_id!r} registered from attempt {attempt}, "
                "which cannot be sent events; an attempt must be ready before its reader speaks"
            ) from error

    def request(self, subtask: int, attempt: int) -> None:
        """A reader could read another split. Raises MalformedEvent."""
        try:
            self._fire(self._of(subtask).request, attempt)
        except TransitionRefused as error:
            raise self._not_registered(subtask, events.REQUEST) from error

    def speak(self, subtask: int, attempt: int, event: Any) -> None:
        """A reader says something else. Raises MalformedEvent."""
        try:
            self._fire(self._of(subtask).speak, attempt, event)
        except TransitionRefused as error:
            raise self._not_registered(subtask, event[0]) from error

    def _not_registered(self, subtask: int, what: str) -> MalformedEvent:
        return MalformedEvent(
            f"reader {subtask} of {self._operator_id!r} sent {what!r} before it registered; it "
            "was made with another version of epochgate"
        )

    def require_open(self, subtask: int, splits: Sequence[SourceSplit]) -> None:
        """Raise SplitsAfterNoMore where no row would take an assignment."""
        machine = machine_behind(self._of(subtask))
        if "assign" not in machine.accepted(machine.state):
            names = [split.split_id for split in splits]
            raise SplitsAfterNoMore(
                f"the enumerator of {self._operator_id!r} assigned {names} to reader {subtask}, "
                "which it has told that there are no more: it may have ended. Assign them to "
                "another reader, or signal later"
            )

    def assign(self, subtask: int, splits: Sequence[SourceSplit]) -> None:
        """The enumerator gives splits to a reader."""
        machine = self._of(subtask)
        for split in splits:
            machine.assign(split)
        self._assigned.add(len(splits))
        self._carry_out()

    def signal(self, subtask: int) -> None:
        """The enumerator has no more splits for a reader."""
        self._fire(self._of(subtask).signal)

    def reset(self, subtask: int, checkpoint_id: int) -> None:
        """A subtask goes back to a checkpoint."""
        self._fire(self._of(subtask).reset, checkpoint_id)

    def take(self, checkpoint_id: int) -> None:
        """A checkpoint is taken. Raises ReaderNotRegistered when splits wait for readers, so that
        they would be in no state.
        """
        self._unsent = []
        for machine in self._system.assignment:
            self._fire(machine.take, checkpoint_id)
        if self._unsent:
            raise ReaderNotRegistered(
                f"readers {self._unsent} of {self._operator_id!r} were assigned splits and have "
                "never registered, so that the splits would be in no state. Give every subtask's "
                f"program a SourceOperator under the id {self._operator_id!r}"
            )

    def complete(self, checkpoint_id: int) -> None:
        """A checkpoint is durable."""
        for machine in self._system.assignment:
            self._fire(machine.complete, checkpoint_id)

    def abort(self) -> None:
        """A checkpoint will never be."""
        for machine in self._system.assignment:
            self._fire(machine.abort)

    def assigned(self) -> dict[int, list[SourceSplit]]:
        """Everything that was assigned, by subtask, in order. Raises AssignmentsForgotten once
        some of it may be in readers' states alone.
        """
        self._listed = {}
        try:
            for machine in self._system.assignment:
                self._fire(machine.list_all)
        except TransitionRefused as error:
            raise AssignmentsForgotten(
                f"source {self._operator_id!r} has given out splits that are in the readers' "
                "state of a completed checkpoint alone. Resume from that checkpoint; a snapshot "
                "without one is for jobs that complete none"
            ) from error
        return self._listed

    def restore(self, *, is_from_checkpoint: bool) -> None:
        """Everything goes back: to a checkpoint, or to where no reader has a state."""
        self._calls.clear()
        self._returned = []
        for machine in self._system.assignment:
            self._fire(machine.restore, is_from_checkpoint)
        self._gateways.clear()

    def send_event(self, subtask: int, attempt: int, event: Any) -> SendFuture:
        """Send something else to a reader that is there."""
        return self._gateways[subtask, attempt].send_event(event)

    def _of(self, subtask: int) -> Handle[SplitAssignment]:
        return self._system.assignment[subtask]

    def _fire(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        trigger(*arguments)
        self._carry_out()

    def _carry_out(self) -> None:
        self._system.settle()
        for subtask, attempt in list(self._outgoing):
            self._flush(subtask, attempt)
        while self._calls:
            self._calls.popleft()()

    def _flush(self, subtask: int, attempt: int) -> None:
        splits = self._outgoing.pop((subtask, attempt), None)
        if splits is not None:
            self.send_event(subtask, attempt, [events.SPLITS, pack_splits(splits)])

    # port `readers`

    def send(self, subtask: int, attempt: int, split: SourceSplit) -> None:
        self._outgoing.setdefault((subtask, attempt), []).append(split)

    def tell_no_more(self, subtask: int, attempt: int) -> None:
        self._flush(subtask, attempt)
        self.send_event(subtask, attempt, [events.NO_MORE])

    # port `enumerator`

    def joined(self, subtask: int, attempt: int) -> None:
        info = ReaderInfo(subtask, attempt, self._host)
        self._readers.setdefault(subtask, {})[attempt] = info

    def left(self, subtask: int, attempt: int) -> None:
        there = self._readers.get(subtask, {})
        there.pop(attempt, None)
        if not there:
            self._readers.pop(subtask, None)

    def announce(self, subtask: int) -> None:
        self._calls.append(partial(self._announce, subtask))

    def _announce(self, subtask: int) -> None:
        try:
            self._enumerator().add_reader(subtask)
        finally:
            self._fire(self._of(subtask).announced)

    def asked(self, subtask: int, attempt: int) -> None:
        self._calls.append(partial(self._enumerator().handle_split_request, subtask))

    def said(self, subtask: int, attempt: int, event: Any) -> None:
        self._calls.append(partial(self._hear, subtask, attempt, event))

    def returned(self, subtask: int, split: SourceSplit) -> None:
        if not self._returned:
            self._calls.append(partial(self._give_back, subtask))
        self._returned.append(split)

    def _give_back(self, subtask: int) -> None:
        splits, self._returned = self._returned, []
        self._taken_back.add(len(splits))
        self._enumerator().add_splits_back(splits, subtask)

    def unsent(self, subtask: int) -> None:
        self._unsent.append(subtask)

    def listed(self, subtask: int, split: SourceSplit) -> None:
        self._listed.setdefault(subtask, []).append(split)
