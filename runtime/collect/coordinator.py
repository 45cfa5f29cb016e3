"""The collect sink's coordinator: asks the subtasks for rows, and learns which of them are final.

Decides how much each subtask may send: a number of rows beyond those that the client has consumed;
and that a subtask which waits for room in a job without periodic checkpoints gets one. Leaves to
`CollectedRows` which rows are handed over. It needs no state of its own: after a restart of the
driver the operators tell what they hold. Runs on the job's queue.

Rows that were handed over in the life of a driver that has died may be handed over again by the
next: the checkpoint knows only what was consumed when it was taken.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.malformed_event import EventForms, MalformedEvent, insist_on_form
from epochgate.runtime.collect.errors import (
    AlreadyCollected,
    CollectMisconfigured,
    NothingToCollect,
)
from epochgate.runtime.collect.rows import CollectedRows

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster

FROM_OPERATOR: Final[EventForms] = {
    "opened": ((int,), (int,)),
    "rows": ((int,), (list,)),
    "snapshot": ((int,), (int,)),
    "waiting": (),
}


class CollectSinkCoordinator(OperatorCoordinator):
    """Between the operators of one collect sink and `rows`."""

    def __init__(
        self, context: CoordinatorContext, rows: CollectedRows, window_rows: int, window_bytes: int
    ) -> None:
        self._context, self._rows = context, rows
        self._window_rows, self._window_bytes = window_rows, window_bytes
        self._gateways: dict[int, SubtaskGateway] = {}
        self._told: dict[int, int] = {}
        """Subtask -> up to which number it knows its rows to be consumed."""
        self._ends: dict[int, dict[int, int]] = {}
        """Checkpoint -> subtask -> the number of its next row at the snapshot."""
        self._waiting: set[int] = set()
        """Subtasks that cannot go on before rows of theirs are consumed."""
        self._requested: Future[int] = Future()
        self._requested.set_result(0)
        rows.on_consumed = lambda: context.post(self._ask_for_more)

    def start(self) -> None:
        """Nothing to do before a subtask has opened."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """It will say what it begins with."""
        self._gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Do nothing: what it has sent stays, since part of it may be in the checkpoint that its
        successor begins from.
        """
        self._forget(subtask)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        """Rows, or news of where the subtask is. Raises MalformedEvent for what no sink's operator
        says.
        """
        insist_on_form(subtask, event, FROM_OPERATOR)
        kind = event[0]
        if kind != "opened" and subtask not in self._told:
            raise MalformedEvent(f"subtask {subtask} sent {kind!r} before it opened")
        if kind == "rows":
            self._receive(subtask, event[1], event[2])
            self._ask_for_more()
        elif kind == "snapshot":
            self._ends.setdefault(event[1], {})[subtask] = event[2]
        elif kind == "waiting":
            self._waiting.add(subtask)
            self._help()
        else:
            begun = self._rows.begin(subtask, event[1], event[2])
            self._tell(subtask, begun.consumed, ["begin", begun.end])

    def _receive(self, subtask: int, first: int, rows: list[Any]) -> None:
        expected = self._rows.expected(subtask)
        if first != expected or not {type(row) for row in rows} <= {bytes}:
            raise MalformedEvent(
                f"subtask {subtask} sent rows from number {first} on, expected rows of bytes from "
                f"{expected} on"
            )
        self._rows.receive(subtask, first, rows)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Make final what the subtasks had at their snapshots."""
        for subtask, end in self._ends.get(checkpoint_id, {}).items():
            self._rows.confirm(subtask, end)
        self._ends = {c: ends for c, ends in self._ends.items() if c > checkpoint_id}

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Nothing of it counts."""
        self._ends.pop(checkpoint_id, None)
        self._help()

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """The operators have it all."""
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Every subtask will open again."""
        for subtask in list(self._gateways):
            self._forget(subtask)
        self._ends.clear()

    def _forget(self, subtask: int) -> None:
        self._gateways.pop(subtask, None)
        self._told.pop(subtask, None)
        self._waiting.discard(subtask)

    def _ask_for_more(self) -> None:
        """Tell those of whose rows half a window was consumed, or of which nothing is left."""
        is_idle = not self._rows.has_ready
        for subtask, told in self._told.items():
            consumed = self._rows.consumed(subtask)
            is_much = 2 * (consumed - told) >= self._window_rows
            if is_much or (is_idle and consumed > told):
                self._tell(subtask, consumed, ["grant"])
        self._help()

    def _tell(self, subtask: int, consumed: int, beginning: list[Any]) -> None:
        self._told[subtask] = consumed
        self._waiting.discard(subtask)
        until = consumed + self._window_rows
        self._gateways[subtask].send_event([*beginning, consumed, until, self._window_bytes])

    def _help(self) -> None:
        """Ask for a checkpoint if a subtask waits for one, and none will come by itself."""
        if not self._waiting or self._rows.is_uncheckpointed or self._rows.has_ready:
            return
        if not self._context.checkpoints.is_periodic and self._requested.done():
            self._requested = self._context.checkpoints.request()


class CollectSinkProvider(CoordinatorProvider):
    """Puts the coordinator of the collect sink `operator_id` into a job's configuration.

    `window_rows`, `window_bytes`: how much of each subtask may be on its way to the client, or wait
    for it in the driver; one row may always be. `uncheckpointed`: rows are handed over as they
    come, at least once, instead of once their checkpoint is complete, exactly once.

    Until a client collects, the subtasks wait as soon as their buffers are full. Raises
    CollectMisconfigured.
    """

    def __init__(
        self,
        operator_id: str = "results",
        *,
        window_rows: int = 1_000,
        window_bytes: int = 4 * 1024 * 1024,
        uncheckpointed: bool = False,
    ) -> None:
        if window_rows < 1 or window_bytes < 1:
            raise CollectMisconfigured(
                f"a window of {window_rows} rows and {window_bytes} bytes; without at least one of "
                "each, no row would ever arrive"
            )
        self._operator_id = operator_id
        self._window_rows, self._window_bytes = window_rows, window_bytes
        self._is_uncheckpointed = uncheckpointed
        self.rows: CollectedRows | None = None
        """Those of the newest start; use `collect`, which also tells them of the job's end."""

    @property
    def operator_id(self) -> str:
        """The name of the operator in the program."""
        return self._operator_id

    def create(self, context: CoordinatorContext) -> CollectSinkCoordinator:
        """Make the coordinator, and rows that are empty. Raises CollectMisconfigured in a job with
        concurrent attempts.
        """
        if context.concurrent_attempts_max > 1:
            raise CollectMisconfigured(
                f"{self._operator_id!r} collects rows while they are made, and "
                f"concurrent_attempts_max is {context.concurrent_attempts_max}: each attempt of a "
                "subtask makes them. Hand them to a committer, or set concurrent_attempts_max=1"
            )
        self.rows = CollectedRows(context.parallelism, uncheckpointed=self._is_uncheckpointed)
        return CollectSinkCoordinator(context, self.rows, self._window_rows, self._window_bytes)


def collect(job: JobMaster, operator_id: str = "results") -> CollectedRows:
    """The rows of a job's collect sink; `JobHandle.collect` for a job master.

    Raises NothingToCollect, and AlreadyCollected for the second client.
    """
    providers = {provider.operator_id: provider for provider in job.configuration.providers}
    provider = providers.get(operator_id)
    if not isinstance(provider, CollectSinkProvider) or provider.rows is None:
        sinks = [name for name, p in providers.items() if isinstance(p, CollectSinkProvider)]
        raise NothingToCollect(
            f"the job has no collect sink {operator_id!r}; it has {sinks or 'none'}. Add "
            f"CollectSinkProvider({operator_id!r}) to the configuration's providers, and a "
            "CollectSinkOperator of that name to the program"
        )
    rows = provider.rows
    if rows.is_collected:
        raise AlreadyCollected(
            f"the rows of {operator_id!r} are collected already, and each is handed over once; "
            "share what the first call has returned"
        )
    rows.is_collected = True
    job.result.add_done_callback(rows.end)
    return rows
