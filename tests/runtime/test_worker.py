"""The worker's answers to the driver's messages, be they repeated, missing or early."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from epochgate.fsm import VirtualClock
from epochgate.runtime import Operator, Work
from epochgate.runtime.shell.worker import Worker
from epochgate.runtime.testing.scripted import ScriptedProgram
from tests.runtime.scripted import Script, echo_program

RESTORE = ["restore", 0, 0, None]


def worker(script: Script, sent: list[Any]) -> Worker:
    """One whose operator listens to the first of two coordinators."""
    return Worker(
        echo_program(script),
        subtask=0,
        parallelism=1,
        run_id="run",
        coordinators=["op", "other"],
        send=sent.append,
        clock=VirtualClock(),
    )


def said(sent: list[Any]) -> list[Any]:
    """Return what was sent since the last look."""
    lines, sent[:] = list(sent), []
    return lines


def test_events_are_handled_in_order_and_confirmed_together() -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([RESTORE])
    assert said(sent) == [["initialize"], ["run"]]
    one.handle([["event", 0, 1, "a"], ["event", 0, 2, "b"]])
    assert said(sent) == [["event", 0, "a"], ["event", 0, "b"], ["confirm", 0, 2]]


def test_an_event_that_comes_once_more_is_handled_once() -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([RESTORE, ["event", 0, 1, "a"], ["event", 0, 2, "b"]])
    said(sent)
    one.handle([["event", 0, 2, "b"], ["event", 0, 1, "a"]])
    assert said(sent) == []
    assert len(script.told("op[0].handle_event")) == 2
    assert not one.is_over
    one.handle([["event", 0, 3, "c"]])
    assert said(sent) == [["event", 0, "c"], ["confirm", 0, 3]]


@pytest.mark.parametrize("work", [Work.IDLE, Work.ENDED])
def test_an_event_after_one_that_is_missing_ends_the_attempt(work: Work) -> None:
    sent: list[Any] = []
    script = Script(work=work)
    one = worker(script, sent)
    one.handle([RESTORE, ["event", 0, 1, "a"]])
    assert one.work() is work
    said(sent)
    one.handle([["event", 0, 3, "c"]])
    (failed,) = said(sent)
    tag, reason, is_fatal = failed
    assert (tag, is_fatal) == ("failed", False)
    assert "event 3 of 'op' arrived, one before it did not" in reason
    assert one.is_over
    assert len(script.told("op[0].handle_event")) == 1


def test_a_restore_that_comes_when_the_attempt_is_over_is_ignored() -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([RESTORE, ["event", 0, 2, "b"]])
    assert one.is_over
    said(sent)
    one.handle([RESTORE])
    assert said(sent) == []
    assert len(script.told("op[0].open")) == 1


@pytest.mark.parametrize("last", [["finish"], ["event", 0, 9, "x"]], ids=["finished", "failed"])
def test_an_attempt_that_is_over_does_nothing_more(last: list[Any]) -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([RESTORE, last])
    assert one.is_over
    said(sent)
    before = list(script.calls)
    late: list[list[Any]] = [RESTORE, ["event", 0, 1, "a"], ["event", 0, 7, "b"], ["barrier", 1]]
    late += [["complete", 1], ["aborted", 1], ["finish"]]
    for message in late:
        one.handle([message])
    assert (said(sent), script.calls) == ([], before)


def test_a_message_that_cannot_be_read_ends_an_attempt_that_has_not_begun() -> None:
    sent: list[Any] = []
    one = worker(Script(), sent)
    one.handle([["event", 0]])
    ((tag, _, _),) = said(sent)
    assert (tag, one.is_over) == ("failed", True)


@pytest.mark.parametrize("notice", ["complete", "aborted"])
def test_a_notice_that_comes_before_the_restore_is_ignored(notice: str) -> None:
    sent: list[Any] = []
    one = worker(Script(), sent)
    one.handle([[notice, 1]])
    assert said(sent) == []
    one.handle([RESTORE])
    assert said(sent) == [["initialize"], ["run"]]


def test_a_process_that_has_nothing_to_do_leaves_when_it_is_told() -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([["finish"]])
    assert one.is_over
    assert said(sent) == [["finished"]]
    assert script.calls == []


def test_operators_hear_of_completed_and_aborted_checkpoints() -> None:
    sent: list[Any] = []
    script = Script()
    one = worker(script, sent)
    one.handle([RESTORE, ["barrier", 1], ["aborted", 1], ["barrier", 2], ["complete", 2]])
    assert script.calls == [
        "op[0].open(None)",
        "op[0].prepare_commit(1)",
        "op[0].snapshot(1)",
        "op[0].notify_checkpoint_aborted(1)",
        "op[0].prepare_commit(2)",
        "op[0].snapshot(2)",
        "op[0].notify_checkpoint_complete(2)",
    ]


@pytest.mark.parametrize("returned", [None, True, "done", 0])
def test_a_program_that_returns_no_work_fails_the_job_and_is_named(returned: Any) -> None:
    sent: list[Any] = []
    script = Script(work=returned)
    one = worker(script, sent)
    one.handle([RESTORE])
    said(sent)
    assert one.work() is Work.IDLE
    ((tag, reason, is_fatal),) = said(sent)
    assert (tag, is_fatal, one.is_over) == ("failed", True, True)
    assert f"ScriptedProgram.work() returned {returned!r}" in reason
    assert "Work.DONE" in reason
    assert ("is a `return` missing" in reason) == (returned is None)


class Handing(Operator):
    """Hands over what it is told to."""

    def __init__(self, rows: Any, state: Any = b"") -> None:
        self.rows, self.state = rows, state

    def prepare_commit(self, checkpoint_id: int) -> Any:
        return self.rows

    def snapshot(self, checkpoint_id: int) -> Any:
        return self.state


def answer_to_a_barrier(operator: Operator) -> Any:
    """Return what a worker of this one operator sends last after the barrier of checkpoint 1."""
    sent: list[Any] = []
    one = Worker(
        ScriptedProgram({"sink": operator}),
        subtask=0,
        parallelism=1,
        run_id="run",
        coordinators=[],
        send=sent.append,
        clock=VirtualClock(),
    )
    one.handle([RESTORE, ["barrier", 1]])
    return sent[-1]


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (
            Handing([[1], [datetime.date(2026, 1, 31)]]),
            r"row 1 of prepare_commit of operator 'sink' is not plain: datetime.date\(",
        ),
        (
            Handing([7, {4}]),
            r"row 1 of prepare_commit of operator 'sink' is not plain: \{4\} is a set",
        ),
        (Handing(None), "'sink' returned None, and must return a list .* is a `return` missing"),
        (
            Handing([], None),
            "snapshot of operator 'sink' returned None, a NoneType, and must return",
        ),
        (Handing([], {"n": 1}), "'sink' returned .* a dict, and must return bytes: pack it"),
    ],
)
def test_what_cannot_be_handed_over_fails_the_job_with_operator_and_row(
    operator: Handing, told: str
) -> None:
    tag, reason, is_fatal = answer_to_a_barrier(operator)
    assert (tag, is_fatal) == ("failed", True)
    assert re.search(told, reason), reason


def test_rows_of_tuples_and_what_an_iterator_gives_are_handed_over() -> None:
    rows = iter([(1, "a"), (2, b"b")])
    answer = answer_to_a_barrier(Handing(rows, bytearray(b"state")))
    assert answer == ["acknowledge", 1, False, {"sink": b"state"}, [(1, "a"), (2, b"b")]]
