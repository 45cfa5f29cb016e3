"""Each message that can fail is declared so, is answered by the surroundings of a closed system,
and its failure is taken there.

`fsm.subset.answers` holds the rows of one machine to the declaration; here are those who answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from inspect import getsource, signature

import pytest

from epochgate.fsm import Answers, Machine, Port
from epochgate.fsm.closed import Environment
from epochgate.models.catalogue import MACHINES
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.runtime import JobConfiguration, RecreateOnReset

COUNTED = "two numbers of one process are compared; `flooding` has each thread that does"
PASSED_OVER = "what it raises ends the attempt (`task.fail`), and this machine with it"
NOT_ASKED = {
    "attempt.scheduler.starting": "a timer of the queue, whose end is an answer to `restore`",
    "in_flight.batches.ask": PASSED_OVER,
    "in_flight.batches.look": PASSED_OVER,
    "in_flight.batches.map": PASSED_OVER,
    "lifecycle.driver.ending": "a timer of the queue",
    "receive_window.reading.watch": COUNTED,
    "send_window.room.watch": COUNTED,
    "subtask_committer.task.pause": "a timer of the queue",
}
"""Messages whose description names a trigger or an answer, and that cannot fail for the machine."""


def outputs(machine: type[Machine]) -> Iterator[tuple[str, type[Port], str]]:
    """The messages of a machine: name of the port, its class, name of the message."""
    for name, field in machine.PORTS.items():
        for message in field.port.messages():
            yield name, field.port, message


FALLIBLE: dict[str, Answers] = {
    f"{name}.{port}.{message}": answers
    for name, machine in MACHINES.items()
    for port, kind, message in outputs(machine)
    if (answers := kind.answers(message)) is not None
}


def is_question(machine: type[Machine], kind: type[Port], message: str) -> bool:
    """Return whether the description of a message speaks of an answer, or of a trigger of the
    machine.
    """
    text = getattr(kind, message).__doc__ or ""
    named = {name.partition("(")[0] for name in re.findall(r"`([a-z_]+)", text)}
    triggers = {row.trigger for row in machine.ROWS}
    return bool(re.search(r"\b[Aa]nswer\b", text) or named & triggers)


def test_what_is_described_as_a_question_is_declared_with_its_answers_or_cannot_fail() -> None:
    asking = {
        f"{name}.{port}.{message}"
        for name, machine in MACHINES.items()
        for port, kind, message in outputs(machine)
        if is_question(machine, kind, message) and kind.answers(message) is None
    }
    assert asking == set(NOT_ASKED)


def text_of(machine: type[Machine]) -> str:
    """The source of a machine of the environment, with what it inherits; a peer is called by the
    name of its machine.
    """
    text = "".join(
        getsource(kind)
        for kind in machine.__mro__
        if issubclass(kind, Environment) and kind is not Environment
    )
    for peer, name in machine.PEERS.items():
        text = re.sub(rf"\bself\.{peer}\b", f"self.system.{name}", text)
    return text


@cache
def text_of_surroundings(system: str) -> str:
    """The source of all machines of the environment."""
    machines = SYSTEMS[system].MACHINES.values()
    return "".join(text_of(machine) for machine in machines if issubclass(machine, Environment))


def is_given(system: str, name: str, answer: str) -> bool:
    """Return whether the surroundings fire this trigger of the machine."""
    fires = rf"self\.system\.{name}(\[[^\n]*\])?\.{answer}\b"
    return bool(re.search(fires, text_of_surroundings(system)))


def is_taken(system: str, name: str, trigger: str) -> bool:
    """Return whether a system that passes has taken a row of this trigger: one that it does not
    excuse, or that others leave to it.
    """
    excuses = [
        SYSTEMS[system].excuse(name, trigger, row.because)
        for row in SYSTEMS[system].MACHINES[name].ROWS
        if row.trigger == trigger
    ]
    return any(excuse in ("", f"explored by the system `{system}`") for excuse in excuses)


def answering(message: str) -> list[tuple[str, str]]:
    """The closed systems that are wired to a message, and the name of the machine in them."""
    machine, port, _ = message.split(".")
    return [
        (system, name)
        for system, closed in SYSTEMS.items()
        for name, kind in closed.MACHINES.items()
        if issubclass(kind, MACHINES[machine]) and f"{name}.{port}" in closed.WIRING
    ]


@pytest.mark.parametrize("message", FALLIBLE)
def test_each_answer_is_given_by_surroundings_and_taken_where_it_is_a_failure(message: str) -> None:
    answers, places = FALLIBLE[message], answering(message)
    given = {a for a in answers.all if any(is_given(*place, a) for place in places)}
    assert given == set(answers.all)
    taken = {a for a in answers.failure if any(is_taken(*place, a) for place in places)}
    assert taken == set(answers.failure)


ALIKE = {
    "assignment.enumerator.announce": "an enumerator that raises has failed the job in the same "
    "event: until that resets all readers, the assignment only has to be in a state of its own",
}
"""Messages whose success and failure are one trigger."""


def test_success_and_failure_are_told_apart() -> None:
    alike = {name for name, answers in FALLIBLE.items() if {*answers.success} & {*answers.failure}}
    assert alike == set(ALIKE)


def test_each_limit_is_an_option() -> None:
    options = {field.name for field in fields(JobConfiguration)}
    options |= signature(RecreateOnReset).parameters.keys()
    limits = {answers.within for answers in FALLIBLE.values() if answers.within}
    assert limits - options == set()
    assert limits, "some message is waited for by an option"
