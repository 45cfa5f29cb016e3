"""State of older code is upgraded by its author, in tasks and on the driver; newer is refused."""

from __future__ import annotations

import doctest
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    NotRescalable,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    RecreateOnReset,
    StateTooNew,
    Work,
)
from epochgate.runtime.api import state_versions
from epochgate.runtime.api.rescaling import SubtaskStates
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell.task_messages import MessageMalformed, MessageReader
from epochgate.runtime.store import CheckpointShelf, decode_checkpoint
from epochgate.testing import SimulatedJob

WORK = 3


class First(Operator):
    """Counts in one byte."""

    def __init__(self) -> None:
        self.n = 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.n = int.from_bytes(state or b"", "big")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return self.n.to_bytes(1, "big")


class Second(First):
    """Counts in text, in a later form."""

    state_version = 2

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.n = int(state or b"0")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return str(self.n).encode()

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        assert version == 1
        return str(int.from_bytes(state, "big")).encode()


class Third(Second):
    """Reads no older version."""

    state_version = 3
    upgrade_state = Operator.upgrade_state


class Counting(Program):
    def __init__(self, count: First) -> None:
        self.count = count

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"count": self.count}

    def work(self) -> Work:
        self.count.n += 1
        return Work.ENDED if self.count.n % WORK == 0 else Work.DONE


class Keeper(OperatorCoordinator):
    def __init__(self, kept: list[bytes | None], own: bytes) -> None:
        self.kept, self._own = kept, own

    def start(self) -> None:
        """Nothing to begin."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(self._own)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.kept.append(state)


class FirstKeeper(CoordinatorProvider):
    operator_id = "keeper"
    own = b"one"

    def __init__(self) -> None:
        self.kept: list[bytes | None] = []

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        return Keeper(self.kept, self.own)


class SecondKeeper(FirstKeeper):
    state_version = 2
    own = b"two"

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        return b"%d upgraded from %d" % (self.state_version, version)


def run(
    shelf: CheckpointShelf,
    kind: type[First],
    *providers: CoordinatorProvider,
    parallelism: int = 1,
    **settings: Any,
) -> SimulatedJob:
    """One start to its end, with code of its own."""
    job = SimulatedJob(
        lambda start: JobConfiguration(
            "job", parallelism, providers, restart_strategy=FixedDelay(1, 0.1), **settings
        ),
        lambda subtask: Counting(kind()),
        shelf=shelf,
    )
    job.settle(until=lambda: job.is_over)
    shelf.end_driver()
    return job


def newest(shelf: CheckpointShelf) -> Any:
    return decode_checkpoint(shelf.checkpoints[max(shelf.checkpoints)], source="the shelf")


def test_the_examples_in_the_documentation_hold() -> None:
    result = doctest.testmod(state_versions)
    assert result.attempted > 0
    assert result.failed == 0


def test_an_operator_upgrades_the_state_of_older_code() -> None:
    shelf = CheckpointShelf()
    assert run(shelf, First).result.state == "finished"
    assert (newest(shelf).subtasks, newest(shelf).versions) == ({0: {"count": b"\x03"}}, {})
    assert run(shelf, Second).result.state == "finished"
    assert newest(shelf).subtasks == {0: {"count": b"6"}}
    assert newest(shelf).versions == {0: {"count": 2}}
    assert run(shelf, Second).result.state == "finished", "its own version needs no upgrade"
    assert newest(shelf).subtasks == {0: {"count": b"9"}}


def test_it_is_upgraded_again_in_a_failover_before_the_next_checkpoint() -> None:
    shelf = CheckpointShelf()
    run(shelf, First)
    job = SimulatedJob(
        lambda start: JobConfiguration("job", 1, restart_strategy=FixedDelay(1, 0.1)),
        lambda subtask: Counting(Second()),
        shelf=shelf,
    )
    job.flow(held=("work",))
    job.step(("work", next(iter(job.transport.processes))))
    job.transport.kill(next(iter(job.transport.processes)))
    job.settle(until=lambda: job.is_over)
    assert job.result.report.regional_restarts == 1
    assert newest(shelf).subtasks == {0: {"count": b"6"}}


def test_state_of_newer_code_is_refused_and_stays() -> None:
    shelf = CheckpointShelf()
    run(shelf, Second)
    job = run(shelf, First)
    assert job.result.state == "failed"
    told = str(job.result.reason)
    assert "the state of operator 'count' in checkpoint 1 of subtask 0 is of version 2" in told
    assert "this code reads version 1 at most" in told
    assert newest(shelf).versions == {0: {"count": 2}}
    assert job.result.report.regional_restarts == 0, "trying again would not help"


def test_an_author_who_says_nothing_of_older_versions_is_asked_to() -> None:
    shelf = CheckpointShelf()
    run(shelf, First)
    told = str(run(shelf, Third).result.reason)
    assert "state of version 1 of operator Third, which reads version 3" in told
    assert "Override upgrade_state(version, state)" in told


def test_an_upgrade_that_returns_nothing_is_named() -> None:
    class Forgetful(Second):
        def upgrade_state(self, version: int, state: bytes) -> bytes:
            return None  # type: ignore[return-value]

    shelf = CheckpointShelf()
    run(shelf, First)
    told = str(run(shelf, Forgetful).result.reason)
    assert "upgrade_state(1, ...) returned None" in told
    assert "operator 'count'" in told


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_coordinator_gets_the_state_of_older_code_upgraded(is_recreated: bool) -> None:
    def provided(provider: CoordinatorProvider) -> CoordinatorProvider:
        return RecreateOnReset(provider) if is_recreated else provider

    shelf, second = CheckpointShelf(), SecondKeeper()
    run(shelf, First, provided(FirstKeeper()))
    assert newest(shelf).coordinator_versions == {}
    assert run(shelf, First, provided(second)).result.state == "finished"
    assert second.kept == [b"2 upgraded from 1"]
    assert newest(shelf).coordinator_versions == {"keeper": 2}
    again = SecondKeeper()
    run(shelf, First, provided(again))
    assert again.kept == [b"two"]


def test_a_coordinator_of_older_code_is_refused_before_the_job_begins() -> None:
    shelf = CheckpointShelf()
    run(shelf, First, SecondKeeper())
    with pytest.raises(StateTooNew, match=r"state of coordinator 'keeper' in checkpoint 1 is of"):
        run(shelf, First, FirstKeeper())


def test_an_upgrade_of_a_coordinator_that_raises_fails_the_job() -> None:
    class Broken(SecondKeeper):
        upgrade_state = CoordinatorProvider.upgrade_state

    shelf, broken = CheckpointShelf(), Broken()
    run(shelf, First, FirstKeeper())
    result = run(shelf, First, broken).result
    assert result.state == "failed"
    assert "version 1 of the coordinator of operator 'keeper'" in str(result.reason)
    assert broken.kept == []


def test_states_are_redistributed_as_they_were_written_and_upgraded_then() -> None:
    seen: list[int] = []

    def spread(states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        assert isinstance(states, SubtaskStates)
        seen.append(states.version)
        return dict.fromkeys(range(parallelism), states[0])

    shelf = CheckpointShelf()
    run(shelf, First)
    run(shelf, Second, parallelism=2, redistribute={"count": spread})
    assert newest(shelf).subtasks == {0: {"count": b"6"}, 1: {"count": b"6"}}
    run(shelf, Second, parallelism=3, redistribute={"count": spread})
    assert seen == [1, 2]
    assert newest(shelf).versions == {subtask: {"count": 2} for subtask in range(3)}


def test_states_of_two_versions_are_not_redistributed_together() -> None:
    shelf = CheckpointShelf()
    job = SimulatedJob(
        lambda start: JobConfiguration("job", 2),
        lambda subtask: Counting(Second() if subtask else First()),
        shelf=shelf,
    )
    job.settle(until=lambda: job.is_over)
    shelf.end_driver()
    with pytest.raises(NotRescalable, match=r"in versions \[1, 2\]"):
        run(shelf, Second, parallelism=1)


@pytest.mark.parametrize(
    "state", [[2], [2, b"a", 1], ["2", b"a"], [True, b"a"], [-1, b"a"], [2**31, b"a"], [2, "a"]]
)
def test_a_malformed_version_does_not_reach_a_checkpoint(state: list[Any]) -> None:
    reader = MessageReader(coordinators=0)
    with pytest.raises(MessageMalformed, match="the operators' states"):
        reader.read(0, ["acknowledge", 1, False, {"count": state}, []])
    trigger, (_, _, parts) = reader.read(0, ["acknowledge", 1, False, {"count": [2, b"a"]}, []])
    assert (trigger, parts) == ("acknowledge", ({"count": [2, b"a"]}, []))
