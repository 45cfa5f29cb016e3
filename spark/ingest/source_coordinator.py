"""The file source's coordinator: finds files, splits them, and assigns splits to subtasks that ask.

Decides who gets which split, and that the splits a subtask was given after the checkpoint it goes
back to are given out again (rules of Apache Flink's SourceCoordinator and SplitAssignmentTracker,
section 5 of docs/protocol.md). Its checkpoint holds what is pending; what was assigned before is in
the readers' states. Runs on the job's queue; looking for new files runs elsewhere, and a checkpoint
asked for meanwhile is completed once that is done.

Events to a reader: ["layout", bytes], ["split", split], ["no more"]. Events from a reader:
["request"], ["skipped", file].
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import msgpack

from epochgate.errors import EpochgateError
from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    FatalTaskError,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.source import SplitAssignmentTracker
from epochgate.spark.files import (
    FileEnumeration,
    FileSplit,
    IncompatibleState,
    SkippedFile,
)

STATE_VERSION = 1


@dataclass(frozen=True)
class FirstLook:
    """What was found before the job started: from nothing, or on top of a restored checkpoint.

    `files` is a snapshot of the enumeration. A reset to `checkpoint_id` or before it begins here,
    so that files which are newer than the restored checkpoint stay found.
    """

    checkpoint_id: int
    files: bytes


class FileSourceCoordinator(OperatorCoordinator):
    """Assigns one split at a time; `follow_every_s` says how often to look for new files."""

    def __init__(
        self,
        context: CoordinatorContext,
        fresh: Callable[[], FileEnumeration],
        first: FirstLook,
        follow_every_s: float | None,
    ) -> None:
        self._context, self._fresh, self._first = context, fresh, first
        self._follow_every_s = follow_every_s
        self._gateways: dict[int, SubtaskGateway] = {}
        self._waiting: dict[int, None] = {}
        self._without_layout: set[int] = set()
        self._skipped: dict[str, SkippedFile] = {}
        self._is_discovering = False
        self._snapshots_due: list[tuple[int, Future[bytes]]] = []
        self._begin_at(first.files)

    def _begin_at(self, files: bytes) -> None:
        self._enumeration = self._fresh()
        self._enumeration.restore(files)
        self._tracker: SplitAssignmentTracker[FileSplit] = SplitAssignmentTracker()

    def start(self) -> None:
        """Begin to look for new files, if that is wanted."""
        if self._follow_every_s is not None:
            self._context.post_later(self._follow_every_s, self._discover)

    @property
    def skipped(self) -> list[SkippedFile]:
        """Bad files that were left out, by path; as of now."""
        skipped = [*self._enumeration.skipped, *self._skipped.values()]
        return sorted(skipped, key=lambda one: (one.path, one.split_id))

    @property
    def files_found(self) -> int:
        """How many files have been enumerated so far."""
        return len(self._enumeration.seen)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """A reader asks for a split, or reports a bad file."""
        if event[0] == "request":
            self._waiting[subtask] = None
            self._assign()
        else:
            skipped = SkippedFile.from_list(event[1])
            self._skipped[skipped.split_id] = skipped

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """A reader needs the layout before it can read; it asks for splits by itself."""
        self._gateways[subtask] = gateway
        self._without_layout.add(subtask)
        self._send_layout()

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Whatever it was given comes back when it is reset."""
        self._gateways.pop(subtask, None)
        self._waiting.pop(subtask, None)
        self._without_layout.discard(subtask)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        """Give out again what the subtask got after that checkpoint."""
        self._enumeration.add_back(self._tracker.take_back(subtask, checkpoint_id))
        self._assign()

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Complete it now, or when the look for new files is over."""
        if self._is_discovering:
            self._snapshots_due.append((checkpoint_id, result))
        else:
            self._take_snapshot(checkpoint_id, result)

    def _take_snapshot(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self._tracker.on_checkpoint(checkpoint_id)
        skipped = [value.to_list() for value in self._skipped.values()]
        result.set_result(msgpack.packb([STATE_VERSION, self._enumeration.snapshot(), skipped]))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """No reader goes back behind this one any more."""
        self._tracker.complete(checkpoint_id)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Begin again from the state, or from the first look if that is not older."""
        files, skipped = (self._first.files, []) if state is None else read_state(state)
        self._begin_at(self._first.files if checkpoint_id <= self._first.checkpoint_id else files)
        self._skipped = {value.split_id: value for value in skipped}
        self._gateways.clear()
        self._waiting.clear()
        self._without_layout.clear()

    def _discover(self) -> None:
        self._is_discovering = True
        enumeration = self._enumeration
        self._context.run_async(
            enumeration.discover, lambda _, error: self._discovered(enumeration, error)
        )

    def _discovered(self, enumeration: FileEnumeration, error: BaseException | None) -> None:
        self._is_discovering = False
        self._context.post_later(self._follow_every_s or 0.0, self._discover)
        due, self._snapshots_due = self._snapshots_due, []
        for checkpoint_id, result in due:
            self._take_snapshot(checkpoint_id, result)
        if enumeration is not self._enumeration:
            return  # everything was reset meanwhile; the next look finds the same again
        self._send_layout()
        self._assign()
        if isinstance(error, EpochgateError):
            raise FatalTaskError(str(error)) from error
        if error is not None:
            raise error

    def _send_layout(self) -> None:
        layout = self._enumeration.layout
        if layout is not None:
            for subtask in sorted(self._without_layout):
                self._gateways[subtask].send_event(["layout", layout.to_bytes()])
            self._without_layout.clear()

    def _assign(self) -> None:
        for subtask in list(self._waiting):
            split = self._enumeration.next_split()
            if split is None:
                break
            del self._waiting[subtask]
            self._tracker.record(subtask, [split])
            self._gateways[subtask].send_event(["split", split.to_list()])
        if self._follow_every_s is None:
            for subtask in self._waiting:
                self._gateways[subtask].send_event(["no more"])
            self._waiting.clear()


def read_state(state: bytes) -> tuple[bytes, list[SkippedFile]]:
    """The enumeration's snapshot and the bad files in a checkpoint of the coordinator.

    Raises `IncompatibleState` for another version.
    """
    version, *values = msgpack.unpackb(state)
    if version != STATE_VERSION:
        raise IncompatibleState("file source coordinator", version, STATE_VERSION)
    files, skipped = values
    return files, [SkippedFile.from_list(value) for value in skipped]


class FileSourceProvider(CoordinatorProvider):
    """Makes the coordinator of one file source; `fresh` makes its enumerations."""

    def __init__(
        self,
        operator_id: str,
        fresh: Callable[[], FileEnumeration],
        first: FirstLook,
        *,
        follow_every_s: float | None = None,
    ) -> None:
        self._operator_id = operator_id
        self._fresh, self._first, self._follow_every_s = fresh, first, follow_every_s
        self.coordinator: FileSourceCoordinator | None = None

    @property
    def operator_id(self) -> str:
        """The name of the source operator."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> FileSourceCoordinator:
        """Make the coordinator."""
        self.coordinator = FileSourceCoordinator(
            context, self._fresh, self._first, self._follow_every_s
        )
        return self.coordinator
