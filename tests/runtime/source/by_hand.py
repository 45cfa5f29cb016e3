"""The drive of a source's coordinator whose time, threads and tasks are moved by a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, cast

from epochgate.runtime import CoordinatorContext, SendFuture
from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.source import (
    ReaderContext,
    Source,
    SourceCoordinator,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    WatermarkAlignment,
)
from epochgate.runtime.source.split import unpack_splits

Work = tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]


class HandGateway:
    """A gateway that keeps what was sent through it."""

    def __init__(self, subtask: int, attempt: int = 0) -> None:
        self.subtask, self.attempt = subtask, attempt
        self.sent: list[Any] = []

    def send_event(self, event: Any) -> SendFuture:
        self.sent.append(event)
        return SendFuture(event)

    def send_events(self, events: Iterable[Any]) -> SendFuture:
        together = list(events)
        self.sent += together
        return SendFuture(together)

    def when_room(self) -> SendFuture:
        return SendFuture(None)

    @property
    def splits(self) -> list[str]:
        """The ids of all splits that were sent."""
        return [s.split_id for e in self.sent if e[0] == "splits" for s in unpack_splits(e[1])]

    @property
    def told(self) -> list[Any]:
        """Everything but splits."""
        return [event for event in self.sent if event[0] != "splits"]


class HandContext:
    """A context whose timers and threads move when a test says so."""

    def __init__(
        self,
        operator_id: str = "source",
        store: CoordinatorStore | None = None,
        concurrent_attempts_max: int = 1,
    ) -> None:
        self.operator_id, self.parallelism = operator_id, 3
        self.concurrent_attempts_max = concurrent_attempts_max
        self.coordinator_store = CoordinatorStore() if store is None else store
        self.metrics = CoordinatorMetrics()
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.work: list[Work] = []
        self.failures: list[Any] = []

    def fail_job(self, cause: BaseException | str) -> None:
        self.failures.append(cause)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        self.timers.append((delay_s, lambda: call(*arguments)))

    def run_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any, BaseException | None], None],
        *,
        lane: str = "",
    ) -> None:
        self.work.append((work, then))

    def tick(self) -> None:
        """Let all timers be due that wait now."""
        due, self.timers = self.timers, []
        for _, call in due:
            call()

    def finish_work(self) -> None:
        """Run the oldest piece of work and hand its outcome over."""
        work, then = self.work.pop(0)
        try:
            result, error = work(), None
        except Exception as raised:  # noqa: BLE001  # handed over, as the runtime does
            result, error = None, raised
        then(result, error)


class HandEnumerator(SplitEnumerator):
    """Keeps what it hears; its state is the ids of the splits that are not assigned."""

    def __init__(self, context: SplitEnumeratorContext, state: Any) -> None:
        self.context = context
        self.unassigned: list[str] = ["1", "2", "3", "4", "5", "6"] if state is None else state
        self.heard: list[Any] = []
        self.errors: dict[str, BaseException] = {}

    def _hear(self, *what: Any) -> None:
        self.heard.append(what)
        if what[0] in self.errors:
            raise self.errors[what[0]]

    def assign(self, *ids: str, to: int) -> None:
        self.unassigned = [one for one in self.unassigned if one not in ids]
        self.context.assign_splits({to: [SourceSplit(one) for one in ids]})

    def start(self) -> None:
        self._hear("start")

    def handle_split_request(self, subtask: int) -> None:
        self._hear("request", subtask)

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        ids = [split.split_id for split in splits]
        self.unassigned += ids
        self._hear("back", ids, subtask)

    def add_reader(self, subtask: int) -> None:
        self._hear("reader", subtask)

    def handle_source_event(self, subtask: int, event: Any) -> None:
        self._hear("event", subtask, event)

    def handle_coordinator_event(self, event: Any) -> None:
        self._hear("coordinator", event)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        self._hear("snapshot", checkpoint_id)
        return list(self.unassigned)

    def supports_batch_snapshot(self) -> bool:
        return True

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._hear("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._hear("aborted", checkpoint_id)

    def close(self) -> None:
        self._hear("close")


class HandSource(Source):
    """Makes enumerators and keeps them, the last one at the end."""

    def __init__(self, kind: type[HandEnumerator] = HandEnumerator) -> None:
        self.kind = kind
        self.enumerators: list[HandEnumerator] = []
        self.errors: list[Exception] = []

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        if self.errors:
            raise self.errors.pop(0)
        self.enumerators.append(self.kind(context, state))
        return self.enumerators[-1]

    def create_reader(self, context: ReaderContext) -> SourceReader:
        raise NotImplementedError("nothing is read here")


class HandJob:
    """A coordinator, and the calls that a job makes of it."""

    def __init__(
        self,
        *,
        source: HandSource | None = None,
        context: HandContext | None = None,
        alignment: WatermarkAlignment | None = None,
        listening_id: str | None = None,
    ) -> None:
        self.source = HandSource() if source is None else source
        self.context = HandContext() if context is None else context
        used = cast(CoordinatorContext, self.context)  # all that a source uses of one
        self.coordinator = SourceCoordinator(
            used, self.source, alignment=alignment, listening_id=listening_id
        )

    def started(self) -> HandJob:
        self.coordinator.start()
        return self

    @property
    def enumerator(self) -> HandEnumerator:
        return self.source.enumerators[-1]

    def ready(self, subtask: int, attempt: int = 0) -> HandGateway:
        gateway = HandGateway(subtask, attempt)
        self.coordinator.execution_attempt_ready(subtask, attempt, gateway)
        return gateway

    def registered(self, subtask: int, attempt: int = 0) -> HandGateway:
        gateway = self.ready(subtask, attempt)
        self.say(subtask, "register", "host", attempt=attempt)
        return gateway

    def say(self, subtask: int, *event: Any, attempt: int = 0) -> None:
        self.coordinator.handle_event_from_operator(subtask, attempt, list(event))

    def failed(self, subtask: int, back_to: int, attempt: int = 0) -> None:
        self.coordinator.execution_attempt_failed(subtask, attempt, "killed")
        self.coordinator.subtask_reset(subtask, back_to)

    def checkpoint(self, checkpoint_id: int) -> bytes:
        result: Future[bytes] = Future()
        self.coordinator.checkpoint(checkpoint_id, result)
        return result.result(timeout=0)
