"""The messages of a process to the driver; the wrong ones are made from the declared forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.runtime import CommitTopology, SinkOperator
from epochgate.runtime.api.committing import Share
from epochgate.runtime.shell.task_messages import (
    COMMITTABLES,
    SHARE,
    SHARES,
    WARNINGS,
    Argument,
    forms_of,
    forms_of_commits,
)
from epochgate.runtime.store.checkpoint import PLAIN_DEPTH_MAX
from epochgate.runtime.testing.scripted import ScriptedProgram
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.committing.sinks import Target, TargetSink
from tests.runtime.scripted import EchoOperator, Script, simulated

COORDINATORS = 1
COMMITS = forms_of_commits()
FORMS = forms_of(COORDINATORS) | COMMITS
SAMPLES: dict[type, list[Any]] = {
    type(None): [None],
    bool: [True, False],
    int: [0, 1, 7, -1, 2**64 - 1],
    float: [0.0, 1.0, float("nan")],
    str: ["", "1"],
    bytes: [b"", b"1"],
    list: [[], [1]],
    dict: [{}, {"1": 1}],
}


def job_of(script: Script, subtasks: int = 1) -> SimulatedJob:
    """A job whose tasks commit."""
    sink = TargetSink(Target())
    return simulated(
        script,
        subtasks=subtasks,
        program=lambda script: ScriptedProgram(
            {"op": EchoOperator(script), "sink": SinkOperator(sink)}, script
        ),
        topology=CommitTopology.of(sink),
    )


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def wrong(argument: Argument) -> Iterator[Any]:
    """Values that the argument must not have: every other type, past its range, wrong items."""
    if not argument.types:
        return
    for kind, values in SAMPLES.items():
        if kind not in argument.types:
            yield from values
    if argument.types == (int,):
        yield from (argument.least - 1, -argument.most - 1, argument.most + 1)
    if argument.values:
        yield from ({key: right_items(argument)[0]} for key in (b"op", 1, None))
        for kind, values in SAMPLES.items():
            if kind not in argument.values:
                yield {"op": values[0]}
                yield {"right": right_items(argument)[0], "op": values[0]}
    if argument in (COMMITTABLES, SHARES):
        yield from ([{b"key": 1}], nested(PLAIN_DEPTH_MAX), [(1, 2)], [2**64], ["\ud800"])


def right_items(argument: Argument) -> list[Any]:
    return [SAMPLES[kind][0] for kind in argument.values]


def share_with(position: int, value: Any) -> list[Any]:
    share = Share(0, [], True, ["row"], 0, ["row"]).flat()
    share[position] = value
    return share


WRONG_SHARES: list[Any] = [
    *(value for values in SAMPLES.values() for value in values),
    *([], [0], share_with(0, 0)[:-1], [*share_with(0, 0), None], tuple(share_with(0, 0))),
    *(
        share_with(0, -1),
        share_with(4, -1),
        share_with(6, -1),
        {str(n): n for n in range(7)},
        "shares1",
    ),
    *(
        share_with(position, value)
        for position, argument in enumerate(SHARE)
        for kind, values in SAMPLES.items()
        for value in values
        if kind not in argument.types
    ),
]
"""Shares with a value of each wrong type at each position, and of other lengths."""
SHARES_OF: dict[str, list[Any]] = {
    "committed": [share_with(1, ["row"]), share_with(5, None)],
    "commit_later": [share_with(5, ["row"])],
}
"""Those that cannot be true of what the message says."""


def right(argument: Argument) -> list[Any]:
    """Values that the argument may have, its bounds among them."""
    if argument.types == (int,):
        return [argument.least, argument.most]
    if argument.values:
        return [{}, *({"op": item} for item in right_items(argument))]
    if argument is SHARES:
        return [[]]
    if argument is WARNINGS:
        return [[], [""]]
    return [value for kind in argument.types or SAMPLES for value in SAMPLES[kind]]


def wrong_messages() -> Iterator[Any]:
    yield from (value for values in SAMPLES.values() for value in values)
    yield from ([value] for values in SAMPLES.values() for value in values)
    for tag, form in FORMS.items():
        good = [right(argument)[0] for argument in form.arguments]
        yield [tag, *good, None]
        for position, argument in enumerate(form.arguments):
            yield [tag, *good[:position]]
            yield from ([tag, *good[:position], v, *good[position + 1 :]] for v in wrong(argument))
    for tag in COMMITS:
        reason = [""] * (tag == "commit_later")
        for share in [*WRONG_SHARES, *SHARES_OF[tag]]:
            yield [tag, 1, 0, [share], 0, [], *reason]
            yield [tag, 1, 0, [share_with(5, None if reason else ["row"]), share], 0, [], *reason]
        yield from ([tag, 1, 0, [], 0, ["a", text], *reason] for text in (1, None, b"a", ["a"]))


WRONG = list(wrong_messages())


def test_every_message_has_wrong_forms() -> None:
    tags = [message[0] for message in WRONG if isinstance(message, list) and message]
    assert set(FORMS) <= {tag for tag in tags if isinstance(tag, str)}
    for tag, form in FORMS.items():
        least = sum(1 for argument in form.arguments if argument.types) * 10 + 1
        assert tags.count(tag) >= least, tag


@pytest.mark.parametrize("message", WRONG, ids=lambda message: repr(message)[:60])
def test_a_malformed_message_costs_its_attempt_alone(message: Any) -> None:
    script = Script()
    job = job_of(script, subtasks=2)
    job.settle()
    job.transport.inbox.received(0, job.machines.attempt[0].identity, [message])
    job.settle()
    report = job.master.report
    assert (report.regional_restarts, report.global_restarts) == (1, 0)
    assert report.failures[0].subtask == 0
    assert report.failures[0].reason.startswith("it sent a malformed message: ")
    assert len(report.failures[0].reason) < 400
    assert "event" not in script.calls
    wanted = job.master.request_checkpoint()
    job.settle(wanted.done)
    assert wanted.result(timeout=0) == 1


@pytest.mark.parametrize("tag", FORMS)
def test_every_value_of_the_declared_form_is_taken(tag: str) -> None:
    form = FORMS[tag]
    good = [right(argument)[0] for argument in form.arguments]
    for position, argument in enumerate(form.arguments):
        for value in right(argument):
            job = job_of(Script())
            job.settle()
            message = [tag, *good[:position], value, *good[position + 1 :]]
            job.transport.inbox.received(0, job.machines.attempt[0].identity, [message])
            job.rest()
            reasons = [failure.reason for failure in job.master.report.failures]
            assert not [reason for reason in reasons if "malformed" in reason], message


@pytest.mark.parametrize("message", [["committed", 1, 0, [], 0, []], ["commit_later"]])
def test_a_job_without_commits_in_its_tasks_knows_no_answers_to_them(message: Any) -> None:
    job = simulated(Script())
    job.settle()
    job.transport.inbox.received(0, job.machines.attempt[0].identity, [message])
    job.settle()
    reason = job.master.report.failures[0].reason
    assert reason == f"it sent a malformed message: the unknown tag {message[0]!r}"


def test_a_malformed_message_is_described_and_not_repeated() -> None:
    job = simulated(Script())
    job.settle()
    identity = job.machines.attempt[0].identity
    job.transport.inbox.received(0, identity, [["decline", 1, b"x" * 10_000_000]])
    job.settle()
    assert job.master.report.failures[0].reason == (
        "it sent a malformed message: 'decline' with a bytes of length 10000000 as a reason, "
        "expected str"
    )


def test_a_warning_of_a_task_is_one_of_the_job_and_none_of_an_evicted_process() -> None:
    job = simulated(Script())
    job.settle()
    identity = job.machines.attempt[0].identity
    job.transport.inbox.received(0, identity - 1, [["warning", "an old one"]])
    job.transport.inbox.received(0, identity, [["warning", "a piece of work is under way"]])
    job.settle()
    assert list(job.master.report.warnings) == ["subtask 0: a piece of work is under way"]
