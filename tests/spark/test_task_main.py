"""A process and its attempts over the real wire, without Spark: when it begins again, and when it
leaves.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from epochgate.runtime.api.operator import OperatorContext
from epochgate.spark import attempt_loop
from epochgate.spark.attempt_loop import AttemptOver
from epochgate.spark.identities import identity_of
from epochgate.spark.task_main import run_task
from epochgate.spark.task_settings import TaskSettings
from epochgate.spark.wire import MESSAGE_BYTES_MAX, Connection, TaskServer, new_key
from tests.runtime.transport_contract import EchoOperator, EchoProgram

Message = list[Any]
RELEASE, FINISH, POISON = ["release"], ["finish"], ["event", 0, 1, "poison"]
COMPLETE = ["complete", 1]
SHUT = ["shut"]
"""Instead of a message: the connection is closed."""
TASK, ATTEMPTS_MAX = 6, 7
GOES_ON = threading.Event()
"""A hanging operator goes on once the driver was warned."""
RETURNED = "the task has returned"


class Driver:
    """Tells each attempt its part once it runs, the last attempt again and again; releases what
    fails, and lets leave what wants to.
    """

    def __init__(self, parts: list[list[Message]]) -> None:
        self._parts = parts
        self.identities: list[int] = []
        self.leaving: list[str] = []
        self.warnings: list[str] = []
        self.acknowledged: list[Message] = []
        self.lost_ones: list[str] = []

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        self.identities.append(hello["identity"])
        connection.send(["restore", len(self.identities) - 1, 0, None])

    def received(self, connection: Connection, messages: list[Message]) -> None:
        for message in messages:
            if message == ["run"]:
                self._tell(connection)
            elif message[0] == "failed":
                connection.send(RELEASE)
            elif message[0] == "acknowledge":
                self.acknowledged.append(message)
            elif message[0] == "warning":
                self.warnings.append(message[1])
                GOES_ON.set()
            elif message[0] == "leaving":
                self.leaving.append(message[1])
                connection.close("it may leave")

    def _tell(self, connection: Connection) -> None:
        for message in self._parts[min(len(self.identities), len(self._parts)) - 1]:
            if message is SHUT:
                connection.close("a newer process is there")
            else:
                connection.send(message)

    def lost(self, connection: Connection, reason: str) -> None:
        self.lost_ones.append(reason)


def run(
    *parts: list[Message], program: Callable[[int], EchoProgram] = EchoProgram
) -> tuple[Driver, str]:
    """Run a task whose attempts are told these; the driver, and why the process left."""
    driver, key = Driver(list(parts)), new_key()
    with TaskServer(key=key, host="127.0.0.1", listener=driver) as server:
        settings: TaskSettings = {
            "host": "127.0.0.1",
            "port": server.address[1],
            "key": key,
            "certificate": None,
            "run_id": "run",
            "parallelism": 1,
            "coordinators": ["echo"],
            "commits_in_tasks": False,
            "program": pickle.dumps(program),
            "heartbeat_interval_s": 1.0,
            "silence_timeout_s": 30.0,
            "detection": {},
            "message_bytes_max": MESSAGE_BYTES_MAX,
            "tracing": None,
        }
        try:
            run_task(settings, subtask=0, task_attempt_id=TASK, attempts_max=ATTEMPTS_MAX)
        except AttemptOver as over:
            return driver, str(over)
    return driver, RETURNED


def identities(count: int) -> list[int]:
    return [identity_of(TASK, number) for number in range(1, count + 1)]


def test_a_process_whose_attempt_is_taken_back_begins_again_under_the_next_identity() -> None:
    driver, over = run([RELEASE], [RELEASE], [FINISH])
    assert driver.identities == identities(3)
    assert over == RETURNED
    assert [reason for reason in driver.lost_ones if "begins again" in reason] != []


def test_a_process_whose_attempt_fails_begins_again_with_a_program_of_its_own() -> None:
    fails = [["event", 0, 1, "a"], ["event", 0, 2, "poison"]]
    driver, over = run(fails, [["event", 0, 1, "b"], ["barrier", 1], FINISH])
    assert driver.identities == identities(2)
    assert driver.acknowledged == [["acknowledge", 1, False, {"echo": b"b"}, []]]
    assert over == RETURNED


def test_a_process_in_which_attempts_fail_one_after_the_other_leaves() -> None:
    driver, over = run([POISON])
    assert driver.identities == identities(2)
    assert driver.leaving == [over]
    assert over == "two attempts failed in it, and no checkpoint was completed since"


def test_a_failure_after_a_completed_checkpoint_is_the_first_again() -> None:
    driver, _ = run([POISON], [COMPLETE, POISON], [COMPLETE, POISON], [FINISH])
    assert driver.identities == identities(4)
    assert driver.leaving == []


def test_an_attempt_that_is_taken_back_has_not_failed_nor_got_on() -> None:
    driver, _ = run([RELEASE], [POISON], [RELEASE], [RELEASE], [POISON], [FINISH])
    assert driver.identities == identities(5)
    assert len(driver.leaving) == 1


def test_a_process_leaves_after_as_many_attempts_as_it_may_have() -> None:
    driver, over = run([RELEASE])
    assert driver.identities == identities(ATTEMPTS_MAX)
    assert driver.leaving == [over]
    assert over == "it has had as many attempts as a process may have"


IS_OVER = threading.Event()


class Litterer(EchoOperator):
    """Starts a thread that it does not end, in one attempt."""

    def __init__(self, attempt: int) -> None:
        super().__init__()
        self.attempt = attempt

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        if context.attempt == self.attempt:
            threading.Thread(target=IS_OVER.wait, name="poller", daemon=True).start()


class Litter(EchoProgram):
    """Has that operator."""

    def __init__(self, attempt: int, subtask: int) -> None:
        self._operators = {"echo": Litterer(attempt)}


@pytest.fixture
def tidied() -> Iterator[None]:
    """End the threads that are left."""
    IS_OVER.clear()
    yield
    IS_OVER.set()


@pytest.mark.usefixtures("tidied")
@pytest.mark.parametrize(("part", "attempts"), [(RELEASE, 1), (POISON, 2), (RELEASE, ATTEMPTS_MAX)])
def test_a_process_in_which_something_is_left_leaves_and_says_what(
    part: Message, attempts: int
) -> None:
    driver, over = run([part], program=partial(Litter, attempts - 1))
    assert driver.identities == identities(attempts)
    assert driver.leaving == [over]
    assert over == "something of the attempt is left in it: thread 'poller'"


def test_a_process_that_has_had_its_attempts_leaves_for_that_also_where_they_failed() -> None:
    _, over = run(*[[RELEASE]] * (ATTEMPTS_MAX - 2), [POISON])
    assert over == "it has had as many attempts as a process may have"


def test_a_process_whose_connection_the_driver_closes_leaves_without_a_word() -> None:
    driver, over = run([RELEASE], [SHUT])
    assert driver.identities == identities(2)
    assert driver.leaving == []
    assert "a newer process is there" in over


def test_a_process_that_is_told_to_finish_returns() -> None:
    driver, over = run([FINISH])
    assert (driver.identities, over) == (identities(1), RETURNED)


class HangingOperator(EchoOperator):
    """Hangs in an event until the driver was warned."""

    def handle_event(self, event: Any) -> None:
        if event == "hang":
            assert GOES_ON.wait(60)
        super().handle_event(event)


class HangingProgram(EchoProgram):
    def __init__(self, subtask: int) -> None:
        super().__init__(subtask)
        self._operators = {"echo": HangingOperator()}


def test_an_operator_that_hangs_is_named_with_its_place_while_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    GOES_ON.clear()
    monkeypatch.setattr(attempt_loop, "OPERATOR_WARN_S", 0.01)
    driver, over = run([["event", 0, 1, "hang"], FINISH], program=HangingProgram)
    assert over == RETURNED
    told = driver.warnings[0]
    assert told.startswith("an operator's call for the message 'event' has been under way for ")
    assert "in handle_event" in told
    assert [t for t in threading.enumerate() if t.name == "epochgate-operators"] == []
