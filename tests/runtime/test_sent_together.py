"""Events that a coordinator sends as one: one message, one future, one side of a checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime import EventLost, SubtaskGateway
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, simulated

MANY = [["rule", number] for number in range(100)]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def job(script: Script) -> SimulatedJob:
    job = simulated(script)
    job.settle()
    return job


def gateway(script: Script) -> SubtaskGateway:
    there: SubtaskGateway = script.coordinator.gateways[0]
    return there


def handled(script: Script) -> list[Any]:
    return [event for (event,) in script.told("op[0].handle_event")]


def test_they_arrive_in_order_between_those_before_and_after(
    script: Script, job: SimulatedJob
) -> None:
    futures = [
        gateway(script).send_event("before"),
        gateway(script).send_events(iter(MANY)),
        gateway(script).send_event("after"),
    ]
    assert not any(future.done() for future in futures)
    job.settle()
    assert handled(script) == ["before", *MANY, "after"]
    assert [(future.done(), future.exception()) for future in futures] == [(True, None)] * 3


def test_they_are_one_event_of_the_protocol(script: Script, job: SimulatedJob) -> None:
    before = job.machines.gateway[0, 0].sent
    gateway(script).send_events(MANY)
    job.settle()
    assert job.machines.gateway[0, 0].sent == before + 1


def test_none_of_them_is_in_a_checkpoint_whose_state_the_coordinator_has_given(
    script: Script, job: SimulatedJob
) -> None:
    wanted = job.master.request_checkpoint()
    job.drain()
    future = gateway(script).send_events(["later", "as well"])
    job.settle(wanted.done)
    job.settle()
    of_the_task = [place for place, _ in script.record if place.startswith("op[0].")]
    assert of_the_task.count("op[0].handle_event") == 2
    assert of_the_task.index("op[0].snapshot") < of_the_task.index("op[0].handle_event")
    assert (future.done(), future.exception()) == (True, None)


class RefusesTheSecond(Script):
    def at(self, place: str, *arguments: Any) -> None:
        super().at(place, *arguments)
        if arguments == (MANY[1],):
            raise ValueError("rule 1 is no rule")


def test_one_that_raises_loses_all() -> None:
    script = RefusesTheSecond()
    job = simulated(script)
    job.settle()
    future = gateway(script).send_events(MANY)
    job.settle()
    assert handled(script) == MANY[:2]
    lost = r"^event \['rule', 0\] and 99 after it for subtask 0 was lost: .*rule 1 is no rule"
    with pytest.raises(EventLost, match=lost):
        future.result()
    assert job.master.report.regional_restarts == 1


def test_they_are_lost_with_their_attempt(script: Script, job: SimulatedJob) -> None:
    former = gateway(script)
    on_the_way = former.send_events(MANY)
    job.drain()
    job.transport.kill(1)
    too_late = former.send_events(MANY)
    job.settle()
    assert isinstance(on_the_way.exception(), EventLost)
    assert isinstance(too_late.exception(), EventLost)


def test_a_fault_that_loses_an_event_loses_them(script: Script, job: SimulatedJob) -> None:
    job.faults.doom("event", "lost")
    gateway(script).send_events(MANY)
    gateway(script).send_event("after")
    job.flow()
    job.settle()
    assert job.master.report.regional_restarts == 1
    assert "one before it did not" in job.master.report.failures[0].reason


def test_without_events_nothing_is_sent(script: Script, job: SimulatedJob) -> None:
    before = job.machines.gateway[0, 0].sent
    gateway(script).send_events([]).result(timeout_s=0)
    job.settle()
    assert job.machines.gateway[0, 0].sent == before


def test_one_that_is_not_plain_is_refused_and_none_is_sent(
    script: Script, job: SimulatedJob
) -> None:
    with pytest.raises(ValueNotPlain, match="an event for subtask 0"):
        gateway(script).send_events(["plain", {1, 2}])
    job.settle()
    assert handled(script) == []
