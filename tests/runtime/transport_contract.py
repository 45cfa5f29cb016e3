"""The contract of transports, as one suite: a test module subclasses it with a harness of its own.

A harness brings up a transport whose subtasks run `EchoProgram`. It has to be told nothing about
Spark or sockets: `pump` lets whatever moves messages move them.

    class TestInProcess(TransportContract):
        def make(self, parallelism): return InProcessHarness(parallelism)

What the suite needs is `TransportHarness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from epochgate.runtime.api.operator import Operator, OperatorContext, Program, Work
from epochgate.runtime.api.transport import Message, Transport

TIMEOUT_S = 30.0


class RecordingInbox:
    """Keeps what a transport reports, in order; any thread may call it."""

    def __init__(self) -> None:
        self.connections: list[tuple[int, int]] = []
        self.losses: list[tuple[int, int, str]] = []
        self.messages: dict[int, list[Message]] = {}

    def connected(self, subtask: int, identity: int) -> None:
        self.connections.append((subtask, identity))

    def received(self, subtask: int, identity: int, messages: list[Message]) -> None:
        self.messages.setdefault(identity, []).extend(messages)

    def when_handled(self, call: Callable[[], None]) -> None:
        call()

    def lost(self, subtask: int, identity: int, reason: str) -> None:
        self.losses.append((subtask, identity, reason))


class TransportHarness(Protocol):
    """The needs of the suite on the place where a transport runs."""

    @property
    def transport(self) -> Transport:
        """Not open yet; its processes run `EchoProgram`, with one coordinator of the id "echo"."""
        ...

    def pump(self, until: Callable[[], bool], timeout_s: float) -> bool:
        """Let messages move until `until` holds; whether it does, after at most `timeout_s`."""
        ...

    def kill(self, identity: int) -> None:
        """Kill the process without asking it."""
        ...

    def close(self) -> None:
        """Close the transport and end every process that is left."""
        ...


class EchoOperator(Operator):
    """Sends back what it gets; its state is what it got."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.got = [] if state is None else state.decode().split()

    def handle_event(self, event: Any) -> None:
        if event == "poison":
            raise ValueError("it was poison")
        self.got.append(event)
        self.context.send_to_coordinator(event)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return " ".join(map(str, self.got)).encode()


class EchoProgram(Program):
    """One `EchoOperator` under the id "echo"; never ends by itself."""

    def __init__(self, subtask: int) -> None:
        self._operators = {"echo": EchoOperator()}

    @property
    def operators(self) -> dict[str, EchoOperator]:
        return self._operators

    def work(self) -> Work:
        return Work.IDLE


class TransportContract:
    """Every transport passes these."""

    def make(self, parallelism: int) -> TransportHarness:
        """Bring up the transport's surroundings."""
        raise NotImplementedError("each transport brings its own")

    @pytest.fixture
    def two(self) -> Iterator[TransportHarness]:
        harness = self.make(2)
        try:
            yield harness
        finally:
            harness.close()

    def _up(self, harness: TransportHarness, subtasks: int = 2) -> tuple[RecordingInbox, list[int]]:
        """Open, deploy and restore; the inbox, and the identity for each subtask."""
        inbox, transport = RecordingInbox(), harness.transport
        transport.open(inbox)
        for subtask in range(subtasks):
            transport.deploy(subtask, 0)
        transport.flush()
        self._expect(harness, lambda: len(inbox.connections) >= subtasks, "no process connected")
        identities = dict(inbox.connections)
        for subtask in range(subtasks):
            transport.send(subtask, identities[subtask], ["restore", 0, 0, None])
        transport.flush()
        self._expect(
            harness,
            lambda: all(["run"] in inbox.messages.get(i, []) for i in identities.values()),
            "no process runs",
        )
        return inbox, [identities[subtask] for subtask in range(subtasks)]

    def _expect(self, harness: TransportHarness, until: Callable[[], bool], what: str) -> None:
        assert harness.pump(until, TIMEOUT_S), what

    @staticmethod
    def _echoed(inbox: RecordingInbox, identity: int) -> list[Any]:
        return [m[2] for m in inbox.messages.get(identity, []) if m[0] == "event"]

    def test_a_process_says_that_it_initializes_before_it_says_that_it_runs(
        self, two: TransportHarness
    ) -> None:
        inbox, identities = self._up(two)
        for identity in identities:
            assert inbox.messages[identity][:2] == [["initialize"], ["run"]]

    def test_messages_arrive_in_their_order_both_ways(self, two: TransportHarness) -> None:
        inbox, identities = self._up(two)
        for number in range(1, 301):
            for subtask, identity in enumerate(identities):
                two.transport.send(subtask, identity, ["event", 0, number, f"{subtask}-{number}"])
        two.transport.flush()
        for subtask, identity in enumerate(identities):
            expected = [f"{subtask}-{number}" for number in range(1, 301)]
            self._expect(
                two,
                lambda i=identity: len(self._echoed(inbox, i)) >= 300,  # type: ignore[misc]  # mypy infers no defaults
                "not every event came back",
            )
            assert self._echoed(inbox, identity) == expected
            confirmed = [m[2] for m in inbox.messages[identity] if m[0] == "confirm"]
            assert confirmed == sorted(confirmed)

    def test_a_barrier_keeps_its_place_among_the_events(self, two: TransportHarness) -> None:
        inbox, identities = self._up(two)
        who = identities[0]
        for message in (["event", 0, 1, "a"], ["barrier", 7], ["event", 0, 2, "b"]):
            two.transport.send(0, who, message)
        two.transport.flush()
        self._expect(two, lambda: self._echoed(inbox, who) == ["a", "b"], "an event is missing")
        acknowledged = [m for m in inbox.messages[who] if m[0] == "acknowledge"]
        assert acknowledged == [["acknowledge", 7, False, {"echo": b"a"}, []]]

    def test_a_restored_state_reaches_the_process(self, two: TransportHarness) -> None:
        inbox, transport = RecordingInbox(), two.transport
        transport.open(inbox)
        transport.deploy(0, 3)
        transport.flush()

        def connected() -> list[int]:
            return [who for subtask, who in inbox.connections if subtask == 0]

        self._expect(two, lambda: bool(connected()), "no process connected")
        who = connected()[0]
        transport.send(0, who, ["restore", 3, 5, {"echo": b"x y"}])
        transport.send(0, who, ["barrier", 6])
        transport.flush()
        self._expect(
            two,
            lambda: any(m[0] == "acknowledge" for m in inbox.messages.get(who, [])),
            "no acknowledgement",
        )
        assert ["acknowledge", 6, False, {"echo": b"x y"}, []] in inbox.messages[who]

    def test_a_killed_process_is_lost_once_with_a_reason(self, two: TransportHarness) -> None:
        inbox, identities = self._up(two)
        two.kill(identities[1])
        self._expect(two, lambda: bool(inbox.losses), "no loss was reported")
        two.pump(lambda: len(inbox.losses) > 1, 0.2)
        assert [(subtask, who) for subtask, who, _ in inbox.losses] == [(1, identities[1])]
        assert inbox.losses[0][2]

    def test_a_process_that_is_ended_is_lost_and_hears_nothing_more(
        self, two: TransportHarness
    ) -> None:
        inbox, identities = self._up(two)
        two.transport.end(0, identities[0], "by order of the test")
        two.transport.send(0, identities[0], ["event", 0, 1, "late"])
        two.transport.flush()
        self._expect(two, lambda: bool(inbox.losses), "no loss was reported")
        assert self._echoed(inbox, identities[0]) == []

    def test_a_process_that_is_released_is_lost_and_what_comes_next_is_newer_and_runs(
        self, two: TransportHarness
    ) -> None:
        inbox, identities = self._up(two)
        two.transport.release(0, identities[0], "by order of the test")
        two.transport.send(0, identities[0], ["event", 0, 1, "late"])
        two.transport.flush()
        self._expect(two, lambda: bool(inbox.losses), "no loss was reported")
        two.transport.deploy(0, 1)
        two.transport.flush()
        self._expect(two, lambda: len(inbox.connections) > 2, "no successor connected")
        subtask, successor = inbox.connections[-1]
        two.transport.send(0, successor, ["restore", 1, 0, None])
        two.transport.flush()
        self._expect(two, lambda: ["run"] in inbox.messages.get(successor, []), "it does not run")
        assert [(subtask, who) for subtask, who, _ in inbox.losses] == [(0, identities[0])]
        assert subtask == 0
        assert successor > identities[0]
        assert self._echoed(inbox, identities[0]) == []

    def test_sending_to_a_process_that_is_gone_is_no_error(self, two: TransportHarness) -> None:
        inbox, identities = self._up(two)
        two.kill(identities[0])
        self._expect(two, lambda: bool(inbox.losses), "no loss was reported")
        two.transport.send(0, identities[0], ["finish"])
        two.transport.end(0, identities[0], "once more")
        two.transport.flush()

    def test_the_next_process_of_a_subtask_has_a_greater_identity(
        self, two: TransportHarness
    ) -> None:
        inbox, identities = self._up(two)
        two.kill(identities[0])
        self._expect(two, lambda: bool(inbox.losses), "no loss was reported")
        two.transport.deploy(0, 1)
        two.transport.flush()
        self._expect(
            two,
            lambda: any(s == 0 and i != identities[0] for s, i in inbox.connections),
            "no successor connected",
        )
        successor = next(i for s, i in inbox.connections if s == 0 and i != identities[0])
        assert successor > identities[0]

    def test_user_code_that_raises_is_reported_with_its_error(self, two: TransportHarness) -> None:
        inbox, identities = self._up(two)
        two.transport.send(0, identities[0], ["event", 0, 1, "poison"])
        two.transport.flush()
        self._expect(
            two,
            lambda: any(m[0] == "failed" for m in inbox.messages[identities[0]]),
            "the failure was not reported",
        )
        _, reason, is_fatal = next(m for m in inbox.messages[identities[0]] if m[0] == "failed")
        assert "it was poison" in reason
        assert is_fatal is False

    def test_a_process_that_is_told_to_finish_says_so_and_leaves(
        self, two: TransportHarness
    ) -> None:
        inbox, identities = self._up(two)
        two.transport.send(0, identities[0], ["finish"])
        two.transport.flush()
        self._expect(two, lambda: bool(inbox.losses), "it did not leave")
        assert inbox.messages[identities[0]][-1] == ["finished"]

    def test_nothing_is_reported_once_it_is_closed(self, two: TransportHarness) -> None:
        inbox, _ = self._up(two)
        two.transport.close()
        losses = len(inbox.losses)
        two.pump(lambda: False, 0.2)
        assert len(inbox.losses) == losses
