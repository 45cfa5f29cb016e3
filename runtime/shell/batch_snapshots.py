"""The shell around snapshots without checkpoints: asks coordinators, counts what is on its way, and
hands the bytes to who wanted them.

Decides nothing: the holder says whether one may be asked for, and this machine when it may be
handed over. Its system is its own, beside the job's, and moved in the same queue. A job that is
given such a snapshot begins from it, as the holder says: its coordinators are reset to
BATCH_CHECKPOINT before they start, and again when everything goes back to the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from epochgate.errors import EpochgateError, UsageError
from epochgate.fsm import Handles, Timer
from epochgate.models.batch_snapshot import BatchSnapshots as BatchSystem
from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT
from epochgate.runtime.api.raised import let_pass, quoted
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.shell.client_requests import insist_on_operator
from epochgate.runtime.shell.futures import SnapshotFuture, reject, resolve

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


class BatchSnapshotRefused(UsageError):
    """No snapshot without a checkpoint can be taken of this coordinator in this job now."""


class BatchSnapshotFailed(EpochgateError):
    """A snapshot without a checkpoint has failed; the message says why."""


class BatchSnapshotRequest(Future[bytes]):
    """The bytes to come."""

    def __str__(self) -> str:
        return "request for a snapshot without a checkpoint"


class BatchSnapshots:
    """The snapshots without checkpoints of one job; everything on the queue's thread."""

    def __init__(self, master: JobMaster) -> None:
        self._master = master
        self._system = Handles(BatchSystem, coordinators=len(master.configuration.providers))
        self._system.bind("batch_snapshot", "requester", self)
        self._asking = BatchSnapshotRequest()
        self._wanted: dict[int, BatchSnapshotRequest] = {}
        self._states: dict[int, Any] = {}
        self._reason = ""
        """Why a snapshot fails in the event under way, if one does."""
        self._timers: dict[int, Timer] = {}
        """While a future is waited for."""

    def request(self, operator_id: str) -> Future[bytes]:
        """Ask the holder of an operator's coordinator; any thread."""
        configuration, wanted = self._master.configuration, BatchSnapshotRequest()
        try:
            insist_on_operator(operator_id, configuration.operator_ids)
        except EpochgateError as error:
            reject(wanted, error)
        else:
            holder = self._master.job.holder[configuration.operator_ids.index(operator_id)]
            self._master.queue.post(holder.batch_snapshot, wanted)
        return wanted

    def begin(self, coordinator: int, wanted: BatchSnapshotRequest) -> None:
        """The holder lets the request through."""
        coordinators = self._master.coordinators
        name = coordinators.operator_id(coordinator)
        try:
            question = coordinators[coordinator].supports_batch_snapshot
            is_supported = coordinators.watched(coordinator, question)
        except BaseException as raised:  # noqa: BLE001  # user code may raise anything
            let_pass(raised)
            what = f"supports_batch_snapshot of coordinator {name!r}: {quoted(raised)}"
            reject(wanted, BatchSnapshotFailed(what))
            return
        if not is_supported:
            error = BatchSnapshotRefused(
                f"coordinator {name!r} does not support snapshots without a checkpoint; override "
                f"supports_batch_snapshot if it can take them"
            )
            reject(wanted, error)
            return
        self._asking = wanted
        self._fire(self._system.batch_snapshot[coordinator].ask)

    def cancel(self, coordinator: int, reason: str) -> None:
        """Its state is about to be another one."""
        self._reason = reason
        self._fire(self._system.batch_snapshot[coordinator].cancel)

    def _fail(self, coordinator: int, number: int, reason: str) -> None:
        self._reason = reason
        self._fire(self._system.batch_snapshot[coordinator].fail, number)

    def _fire(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        trigger(*arguments)
        self._system.settle()

    # port `requester`

    def ask_coordinator(self, coordinator: int, number: int) -> None:
        self._wanted[coordinator] = self._asking
        coordinators = self._master.coordinators
        result = SnapshotFuture()
        result.dropped = partial(coordinators.relay, self._dropped, coordinator, number)
        post = self._master.queue.post
        result.add_done_callback(lambda done: post(self._done, coordinator, number, done))
        limit_s = self._master.configuration.checkpoint_timeout_s
        timer = self._master.queue.post_later(limit_s, self._expire, coordinator, number)
        self._timers[coordinator] = timer
        ask = coordinators[coordinator].checkpoint
        coordinators.guarded(coordinator, ask, BATCH_CHECKPOINT, result)

    def _dropped(self, coordinator: int, number: int) -> None:
        self._fail(coordinator, number, "its future was dropped uncompleted")

    def _expire(self, coordinator: int, number: int) -> None:
        limit_s = self._master.configuration.checkpoint_timeout_s
        reason = f"its future was not completed within {limit_s:g} s (checkpoint_timeout_s)"
        self._fail(coordinator, number, reason)

    def _done(self, coordinator: int, number: int, result: Future[bytes]) -> None:
        error = None if result.cancelled() else result.exception()
        if result.cancelled() or error is not None:
            reason = f"its future ended with {error or 'being cancelled'!r}"
            self._fail(coordinator, number, reason)
            return
        pending = self._master.coordinators.pending(coordinator)
        succeed = self._system.batch_snapshot[coordinator].succeed
        self._fire(succeed, number, len(pending), result.result())
        for future in pending:
            future.add_done_callback(partial(self._settled, coordinator, number))

    def _settled(self, coordinator: int, number: int, future: SendFuture) -> None:
        machine = self._system.batch_snapshot[coordinator]
        self._reason = "an event sent before it was lost"
        self._fire(machine.confirm if future.exception() is None else machine.lose, number)

    def keep(self, coordinator: int, state: bytes) -> None:
        self._timers.pop(coordinator).cancel()
        self._states[coordinator] = state

    def taken(self, coordinator: int) -> None:
        resolve(self._wanted.pop(coordinator), self._states.pop(coordinator))

    def failed(self, coordinator: int) -> None:
        if timer := self._timers.pop(coordinator, None):
            timer.cancel()
        self._states.pop(coordinator, None)
        name = self._master.coordinators.operator_id(coordinator)
        reject(
            self._wanted.pop(coordinator),
            BatchSnapshotFailed(f"coordinator {name!r} has no snapshot: {self._reason}"),
        )

    def refused(self, coordinator: int) -> None:
        name = self._master.coordinators.operator_id(coordinator)
        reject(
            self._asking,
            BatchSnapshotRefused(f"a snapshot of coordinator {name!r} is being taken already"),
        )
