"""The Spark transport keeps the contract of transports."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime.api.transport import Message, TaskInbox
from epochgate.spark.program_pickling import pickled
from epochgate.spark.transport import SparkTransport
from tests.runtime import transport_contract
from tests.runtime.transport_contract import EchoProgram, TransportContract, TransportHarness
from tests.spark.running import send_signal


class SparkHarness:
    """Waits while Spark moves the messages; all its processes come up at once."""

    def __init__(self, context: Any, parallelism: int) -> None:
        self._parallelism = parallelism
        self._is_up = False
        self.broken: list[str] = []
        self.transport = SparkTransport(
            context,
            program=pickled(EchoProgram, [transport_contract]),
            parallelism=parallelism,
            coordinators=["echo"],
            run_id=f"run-{time.monotonic_ns()}",
            bind_host="127.0.0.1",
            advertised_host="127.0.0.1",
        )
        self.transport.on_broken = self.broken.append

    def pump(self, until: Callable[[], bool], timeout_s: float) -> bool:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            assert self.broken == []
            self._is_up = self._is_up or len(self.transport.processes()) == self._parallelism
            if self._is_up and until():
                return True
            time.sleep(0.005)
        return until()

    def kill(self, identity: int) -> None:
        pids = {process.identity: process.pid for process in self.transport.processes()}
        send_signal(pids[identity], signal.SIGKILL)

    def close(self) -> None:
        self.transport.close()


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(300)
@pytest.mark.versions
def test_tasks_that_cannot_reach_the_driver_end_the_job_with_its_address(spark: Any) -> None:
    broken: queue.SimpleQueue[str] = queue.SimpleQueue()
    transport = SparkTransport(
        spark.sparkContext,
        program=b"",
        parallelism=1,
        coordinators=[],
        run_id="unreachable",
        bind_host="127.0.0.1",
        advertised_host="127.0.0.2",
    )
    transport.on_broken = broken.put
    try:
        transport.open(SilentInbox())
        transport.deploy(0, 0)
        reason = broken.get(timeout=60)
    finally:
        transport.close()
    assert "the tasks fail before they can speak to the driver" in reason
    assert f"CannotConnect: cannot reach the driver at 127.0.0.2:{transport.address[1]}" in reason
    assert "spark.driver.host is an address the executors can reach" in reason


class SilentInbox(TaskInbox):
    """Hears of no process; one that came would fail the test."""

    def connected(self, subtask: int, identity: int) -> None:
        raise AssertionError(f"process {identity} has come")

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        raise AssertionError(f"process {identity} has said {messages}")

    def when_handled(self, call: Callable[[], None]) -> None:
        raise AssertionError("a process has said much")

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        raise AssertionError(f"process {identity} is lost: {reason}")


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(300)
class TestSpark(TransportContract):
    @pytest.fixture(autouse=True)
    def _session(self, spark: Any) -> None:
        self.context = spark.sparkContext

    def make(self, parallelism: int) -> TransportHarness:
        return SparkHarness(self.context, parallelism)
