"""An exception of user code is told with its place, and with no frame of ours before it."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import Work
from epochgate.runtime.api import own_frames as own_frames_module
from epochgate.runtime.api.own_frames import own_frames, split_frames
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.shell.blocking_work import Outcome
from epochgate.testing import ScriptedCoordinator, ScriptedProgram
from tests.runtime.scripted import EchoOperator, Script, simulated


def fail_at(depth: int) -> None:
    if depth == 0:
        raise KeyError("boom")
    go_down(depth)


def go_down(depth: int) -> None:
    fail_at(depth - 1)


def frames(work: Callable[[], Any]) -> list[str]:
    return own_frames(Outcome(work).error).split("\n")[1:]


def test_the_frames_begin_with_the_users_and_end_where_it_was_raised() -> None:
    told = frames(lambda: fail_at(1))
    assert told[0].endswith("in <lambda>")
    assert told[-1] == '    raise KeyError("boom")'
    assert not any("blocking_work.py" in line for line in told)


def test_many_frames_are_cut_in_the_middle() -> None:
    told = [line for line in frames(lambda: fail_at(50)) if line.startswith('  File "')]
    assert len(told) == 8
    assert told[0].endswith("in <lambda>")
    assert told[-1].endswith("in fail_at")


def test_what_epochgate_raises_of_itself_has_none() -> None:
    assert own_frames(ValueError("never raised")) == ""
    assert own_frames(None) == ""


def test_the_frames_are_found_again_behind_a_reason() -> None:
    error = Outcome(lambda: fail_at(0)).error
    told = own_frames(error)
    assert split_frames(f"KeyError: 'boom'{told}") == ("KeyError: 'boom'", told)
    assert split_frames("a reason\nof two lines") == ("a reason\nof two lines", "")
    result = doctest.testmod(own_frames_module)
    assert (result.attempted, result.failed) == (1, 0)


class Broken(ScriptedCoordinator):
    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        fail_at(0)


def test_a_coordinator_that_fails_the_job_is_told_with_its_line() -> None:
    script = Script()
    job = simulated(script, coordinator=Broken, restarts=NoRestart)
    job.flow()
    script.coordinator.send(0, "hello")
    job.settle(lambda: job.is_over)
    assert 'raise KeyError("boom")' in str(job.result.reason)


class BrokenProgram(ScriptedProgram):
    def work(self) -> Work:
        fail_at(0)
        return super().work()


class BrokenOperator(EchoOperator):
    def snapshot(self, checkpoint_id: int) -> bytes:
        fail_at(0)
        return super().snapshot(checkpoint_id)


BROKEN: dict[str, Callable[[Script], ScriptedProgram]] = {
    "work": lambda script: BrokenProgram({"op": EchoOperator(script)}, script),
    "snapshot": lambda script: ScriptedProgram({"op": BrokenOperator(script)}, script),
}


@pytest.mark.parametrize("place", BROKEN)
def test_an_operator_that_fails_is_told_with_its_line(place: str) -> None:
    job = simulated(Script(), restarts=NoRestart, program=BROKEN[place])
    job.flow()
    job.master.request_checkpoint()
    job.settle(lambda: job.is_over)
    reason = str(job.result.reason)
    assert 'raise KeyError("boom")' in reason
    assert "test_own_frames.py" in reason
    assert "worker.py" not in reason
