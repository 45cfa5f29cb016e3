"""The in-process transport keeps the contract, whether its processes die or are cut off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochgate.runtime.testing.in_process import InProcessTransport
from tests.runtime.transport_contract import (
    EchoProgram,
    RecordingInbox,
    TransportContract,
    TransportHarness,
)

ROUNDS_MAX = 2000


class InProcessHarness:
    """Moves everything that can move, in a fixed order."""

    def __init__(self, parallelism: int) -> None:
        self.transport = InProcessTransport(
            EchoProgram, parallelism=parallelism, coordinators=["echo"], run_id="run"
        )

    def pump(self, until: Callable[[], bool], timeout_s: float) -> bool:
        for _ in range(ROUNDS_MAX):
            if until():
                return True
            moves = [step for step in self.transport.steps() if step[0] != "work"]
            if not moves:
                break
            self.transport.step(*moves[0])
        return until()

    def kill(self, identity: int) -> None:
        self.transport.kill(identity)

    def close(self) -> None:
        self.transport.close()


class TestInProcess(TransportContract):
    def make(self, parallelism: int) -> TransportHarness:
        return InProcessHarness(parallelism)


def running() -> tuple[InProcessHarness, RecordingInbox, int]:
    harness, inbox = InProcessHarness(1), RecordingInbox()
    harness.transport.open(inbox)
    harness.transport.deploy(0, 0)
    harness.pump(lambda: bool(inbox.connections), 1)
    who = inbox.connections[0][1]
    harness.transport.send(0, who, ["restore", 0, 0, None])
    harness.pump(lambda: False, 1)
    return harness, inbox, who


def test_a_process_without_a_connection_speaks_late_and_hears_nothing() -> None:
    harness, inbox, who = running()
    harness.transport.send(0, who, ["event", 0, 1, "on its way"])
    harness.transport.cut(who)
    harness.transport.send(0, who, ["event", 0, 2, "never"])
    harness.transport.step("lose", who)
    assert inbox.losses == [(0, who, "its connection broke")]
    harness.pump(lambda: False, 1)
    assert [m[2] for m in inbox.messages[who] if m[0] == "event"] == ["on its way"]
    assert len(inbox.losses) == 1


def test_a_process_that_dies_before_it_connects_is_replaced() -> None:
    harness, inbox = InProcessHarness(1), RecordingInbox()
    harness.transport.open(inbox)
    harness.transport.deploy(0, 0)
    harness.kill(1)
    harness.pump(lambda: False, 1)
    assert inbox.connections == [(0, 2)]
    assert inbox.losses == []


def test_a_transport_must_be_open() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        InProcessHarness(1).transport.inbox.connected(0, 1)
