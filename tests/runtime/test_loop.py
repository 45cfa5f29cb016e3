"""The thread that drains a job's queue, and how callers that come too late are answered."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    EventLost,
    JobConfiguration,
    JobLoop,
    JobMaster,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import InMemoryCheckpointStore


class OneTask(Transport):
    """A process that is there at once, restores, and never confirms anything."""

    def open(self, inbox: TaskInbox) -> None:
        self.inbox = inbox

    def deploy(self, subtask: int, attempt: int) -> None:
        self.inbox.connected(subtask, attempt + 1)
        self.inbox.received(subtask, attempt + 1, [["initialize"], ["run"]])

    def send(self, subtask: int, identity: int, message: Message) -> None:
        pass

    def flush(self) -> None:
        pass

    def end(self, subtask: int, identity: int, reason: str) -> None:
        self.inbox.lost(subtask, identity, reason)

    def close(self) -> None:
        pass


class Keeper(OperatorCoordinator):
    """Hands its gateway to the test."""

    def __init__(self, ready: Future[SubtaskGateway]) -> None:
        self.is_ready = ready

    def start(self) -> None:
        pass

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        pass

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.is_ready.set_result(gateway)


class KeeperProvider(CoordinatorProvider):
    def __init__(self) -> None:
        self.ready: Future[SubtaskGateway] = Future()

    @property
    def operator_id(self) -> str:
        return "keeper"

    def create(self, context: CoordinatorContext) -> Keeper:
        return Keeper(self.ready)


def started(provider: KeeperProvider) -> JobLoop:
    loop = JobLoop(
        JobMaster(
            JobConfiguration("late", 1, (provider,), checkpoint_interval_s=None),
            transport=OneTask(),
            store=InMemoryCheckpointStore(job_id="late"),
            clock=MonotonicClock(),
            blocking=ThreadedWork,
        )
    )
    loop.start()
    return loop


def test_an_event_sent_after_the_end_fails_instead_of_waiting_for_ever() -> None:
    provider = KeeperProvider()
    loop = started(provider)
    gateway = provider.ready.result(60)
    loop.master.cancel()
    assert loop.join(60).state == "canceled"
    with pytest.raises(EventLost, match="after the job's end"):
        gateway.send_event("too late").result(60)


def test_an_event_on_the_wire_when_the_job_is_cancelled_fails() -> None:
    provider = KeeperProvider()
    loop = started(provider)
    sent = provider.ready.result(60).send_event("on its way")
    loop.master.cancel()
    with pytest.raises(EventLost):
        sent.result(60)
    loop.join(60)


def test_a_fault_of_epochgate_itself_ends_the_job_and_every_wait() -> None:
    provider = KeeperProvider()
    loop = started(provider)
    sent = provider.ready.result(60).send_event("on its way")
    wanted = loop.master.request_checkpoint()
    loop.master.queue.post(lambda: 1 / 0)
    result = loop.join(60)
    assert result.state == "failed"
    assert "ZeroDivisionError" in (result.reason or "")
    with pytest.raises(EventLost):
        sent.result(60)
    assert wanted.exception(10) is not None


def test_waiting_in_vain_says_for_how_long() -> None:
    loop = started(KeeperProvider())
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.01 s"):
        loop.join(0.01)
    loop.master.cancel()
    loop.join(60)
