"""Receipts: what an operator has one for when it takes its snapshot is in its coordinator's."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    RecreateOnReset,
    SendFuture,
    Work,
)
from epochgate.runtime.restart import FixedDelay
from epochgate.runtime.simulation import SimulatedJob

LETTERS = 12


class Archive(OperatorCoordinator):
    """Keeps every letter; `is_slow` ones are filed later, elsewhere."""

    def __init__(self, context: CoordinatorContext, is_slow: bool) -> None:
        self.context, self.is_slow = context, is_slow
        self.letters: set[str] = set()

    def start(self) -> None:
        pass

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(json.dumps(sorted(self.letters)).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.letters = set(json.loads(state or b"[]"))

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        if not self.is_slow:
            self.letters.add(event)
            return None
        filed: Future[Any] = Future()

        def file(_: Any, error: BaseException | None) -> None:
            self.letters.add(event)
            filed.set_result(None)

        self.context.run_async(lambda: None, file)
        return filed


class ArchiveProvider(CoordinatorProvider):
    operator_id = "archive"

    def __init__(self, is_slow: bool) -> None:
        self._is_slow = is_slow

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        return Archive(context, self._is_slow)


class Writer(Operator):
    """Writes letters, forgets each for which it has a receipt, and sends the others again."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        saved = json.loads(state or b'{"written": 0, "unreceipted": [], "receipted": []}')
        self.written: int = saved["written"]
        self.receipted: list[str] = saved["receipted"]
        self.unreceipted: list[str] = []
        for letter in saved["unreceipted"]:
            self._send(letter)

    def write(self) -> bool:
        if self.written == LETTERS:
            return False
        self.written += 1
        self._send(f"{self.context.subtask}-{self.written}")
        return True

    def _send(self, letter: str) -> None:
        self.unreceipted.append(letter)
        self.context.send_with_receipt(letter).add_done_callback(self._receipt)

    def _receipt(self, sent: SendFuture) -> None:
        self.unreceipted.remove(sent.event)
        self.receipted.append(sent.event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        parts = ("written", "unreceipted", "receipted")
        return json.dumps({part: getattr(self, part) for part in parts}).encode()


class WritingProgram(Program):
    def __init__(self) -> None:
        self.writer = Writer()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"archive": self.writer}

    def work(self) -> Work:
        if self.writer.write():
            return Work.DONE
        return Work.ENDED if not self.writer.unreceipted else Work.IDLE


def job_of(is_slow: bool, recreated: bool) -> SimulatedJob:
    def configure(_: int) -> JobConfiguration:
        provider: CoordinatorProvider = ArchiveProvider(is_slow)
        return JobConfiguration(
            "letters",
            2,
            (RecreateOnReset(provider) if recreated else provider,),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(100, 0.5),
        )

    return SimulatedJob(configure, lambda _: WritingProgram(), retained=1000)


def letters_with_receipt(states: Mapping[str, bytes]) -> set[str]:
    return set(json.loads(states["archive"])["receipted"])


def check_every_checkpoint(job: SimulatedJob) -> int:
    """How many receipts the newest checkpoint holds, after each of them was found filed."""
    found = job.master.checkpoints.latest
    if found is None:
        return 0
    filed = set(json.loads(found.coordinators["archive"] or b"[]"))
    receipted = set().union(*(letters_with_receipt(s) for s in found.subtasks.values()))
    assert receipted <= filed
    return len(receipted)


@pytest.mark.parametrize("recreated", [False, True], ids=["kept", "recreated"])
@pytest.mark.parametrize("is_slow", [False, True], ids=["quick", "slow"])
def test_what_has_a_receipt_is_in_the_coordinators_part_of_the_checkpoint(
    is_slow: bool, recreated: bool
) -> None:
    """Whatever fails meanwhile; looked at after every step in which a checkpoint may complete."""
    most = 0
    for seed in range(15):
        job, chance = job_of(is_slow, recreated), random.Random(seed)
        for _ in range(600):
            turn(job, chance)
            most = max(most, check_every_checkpoint(job))
        job.settle(partial(getattr, job, "is_over"))
        assert job.result.state == "finished"
        assert check_every_checkpoint(job) == 2 * LETTERS
    assert most > LETTERS


def turn(job: SimulatedJob, chance: random.Random) -> None:
    """Let one thing happen; some of them are failures."""
    if job.is_over:
        return
    what = chance.random()
    if what < 0.004 and job.transport.processes:
        job.transport.kill(chance.choice(sorted(job.transport.processes)))
    elif what < 0.006:
        job.master.coordinators.fail_job_now(0, "by order")
    elif what < 0.05:
        job.master.request_checkpoint()
    elif what < 0.1:
        job.run_blocking()
    elif what < 0.11:
        job.advance()
    elif steps := job.steps():
        job.step(chance.choice(steps))
    job.drain(chance.choice([1, 3, None]))


def test_a_receipt_waits_for_the_barrier() -> None:
    job = job_of(is_slow=False, recreated=False)
    job.flow(held=("work",))
    wanted = job.master.request_checkpoint()
    job.drain()
    identity = min(job.transport.processes)
    writer = job.transport.processes[identity].worker.program.writer  # type: ignore[attr-defined]  # a WritingProgram
    job.step(("work", identity))
    job.step(("hear", identity))
    job.drain()
    subtask = job.transport.processes[identity].subtask
    gateway = job.master.job.gateway[0, subtask]
    assert gateway.state == "closed"
    assert gateway.held[0].size() == 1
    assert writer.receipted == []
    job.settle(lambda: wanted.done() and len(writer.receipted) > 0)
    newest = job.master.checkpoints.latest
    assert newest is not None
    assert letters_with_receipt(newest.subtasks[subtask]) == set()


def test_an_operator_without_a_coordinator_is_told_so() -> None:
    class Lonely(WritingProgram):
        @property
        def operators(self) -> Mapping[str, Operator]:
            return {"nobody": self.writer}

    job = SimulatedJob(
        lambda _: JobConfiguration("lonely", 1, (), checkpoint_interval_s=None),
        lambda _: Lonely(),
    )
    job.settle(lambda: job.is_over)
    assert "operator 'nobody' has no coordinator to send '0-1' to" in str(job.result.reason)
