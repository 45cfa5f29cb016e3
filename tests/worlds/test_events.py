"""Events between coordinators and operators arrive in a world as they do through Spark's wire: as a
copy of plain values, or with the wire's error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorContext,
    SubtaskGateway,
)
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.testing import World, agree, simulate
from tests.worlds.rules import Applying, Rules, RulesProvider


def found_by(body: Callable[[World], Any], runs: int) -> Found:
    return simulate(body).simulation.search().at_random(runs, 0)


class SendsItself(Rules):
    """Sends its own dict once and changes it later: a task sees changes only of a shared object."""

    def __init__(self, context: CoordinatorContext) -> None:
        super().__init__(context)
        self.flags: dict[str, int] = {}

    def change(self, text: str) -> None:
        self.flags[text] = len(self.flags)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        gateway.send_event(self.flags)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(json.dumps(self.flags).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.flags = json.loads(state or b"{}")


def test_a_coordinator_that_sends_its_own_dict_and_no_change_of_it_is_found() -> None:
    def body(world: World) -> None:
        agree(
            world,
            RulesProvider(SendsItself),
            Applying,
            act=lambda coordinator, text: coordinator.change(text),
            agrees=lambda coordinator, tasks: all(t.rule == coordinator.flags for t in tasks),
            values=("a", "b"),
        )

    found = found_by(body, 1)
    assert found.failure is not None
    assert found.failure.broken is not None
    assert found.failure.broken.claim == "coordinator and tasks agree"


class Answering(Applying):
    """Sends one value to its coordinator for each event."""

    answer: Any = None

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.rules: list[Any] = []

    def handle_event(self, event: Any) -> None:
        self.rules.append(event)
        self.context.send_to_coordinator(self.answer)


class Telling(Rules):
    """Sends one value to each task that is ready, and keeps the answers."""

    event: Any = None

    def __init__(self, context: CoordinatorContext) -> None:
        super().__init__(context)
        self.answers: list[Any] = []

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        gateway.send_event(self.event)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.answers.append(event)


def telling(event: Any, answer: Any) -> tuple[CoordinatorProvider, type[Answering]]:
    """A coordinator that sends `event`, and an operator that sends `answer` back."""
    tells = type("Tells", (Telling,), {"event": event})
    return RulesProvider(tells), type("Answers", (Answering,), {"answer": answer})


def test_a_tuple_arrives_as_a_list_and_an_object_as_a_copy_in_both_directions() -> None:
    shared = {"keys": ("a", b"b", (1, None))}
    arrived = {"keys": ["a", b"b", [1, None]]}

    def body(world: World) -> None:
        provider, operators = telling(shared, shared)
        job = world.job(provider, operators=operators)
        world.calm()
        assert job.operators[0].rules == [arrived]
        assert job.coordinator.answers == [arrived]
        assert job.coordinator.answers[0] is not job.operators[0].rules[0]

    found = found_by(body, 1)
    assert found.failure is None, found.failure.broken


SET = {"flags": {1}}
NUMBERED = {1: "a"}


@pytest.mark.parametrize(
    ("event", "answer", "said"),
    [
        (
            SET,
            None,
            "a message for the task of subtask 0 cannot be sent: message 'event' cannot be sent: "
            "can not serialize 'set' object",
        ),
        (
            None,
            SET,
            "an event of operator 'rules' to its coordinator is not plain: {1} is a set",
        ),
        (NUMBERED, None, "Map keys must be str or bytes"),
        (None, NUMBERED, "Map keys must be str or bytes"),
    ],
    ids=["a set to a task", "a set to the coordinator", "int keys to a task", "int keys from it"],
)
def test_what_cannot_be_packed_fails_where_the_wire_would_fail(
    event: Any, answer: Any, said: str
) -> None:
    def body(world: World) -> None:
        provider, operators = telling(event, answer)
        world.job(provider, operators=operators)

    found = found_by(body, 1)
    assert found.failure is not None
    assert found.failure.broken is not None
    assert found.failure.broken.kind == "error"
    assert said in found.failure.broken.detail
    assert found.failure.deviations == []


def test_a_job_ends_as_failed_by_an_event_of_the_driver_that_cannot_be_packed() -> None:
    def body(world: World) -> None:
        world.tolerate("cannot be sent")
        provider, operators = telling(SET, None)
        world.job(provider, operators=operators)

    found = found_by(body, 1)
    assert found.failure is not None
    assert found.failure.broken is not None
    assert found.failure.broken.kind == "end", "the next drivers send the same"
    assert "can not serialize 'set' object" in found.failure.broken.claim
