"""The report to a person on user code that fails: at once, with its lines, and each line once."""

from __future__ import annotations

import logging

import pytest

from epochgate.runtime import Work
from epochgate.runtime.api.restart_strategies import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)
from epochgate.runtime.observing.log import JobLog
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.testing import ScriptedProgram
from tests.runtime.scripted import EchoOperator, Script, simulated


class Broken(ScriptedProgram):
    """Always fails at the same line, with a text of its own each time."""

    failures = 0

    def work(self) -> Work:
        Broken.failures += 1
        raise ValueError(f"bad row {Broken.failures}")


class FailsTwice(ScriptedProgram):
    """Fails at the same line whenever it is told to."""

    may_fail = True

    def work(self) -> Work:
        if FailsTwice.may_fail:
            FailsTwice.may_fail = False
            raise ValueError("bad row")
        return super().work()


def logged_job(
    program: type[ScriptedProgram], restarts: RestartStrategy, subtasks: int = 1
) -> SimulatedJob:
    return simulated(
        Script(),
        subtasks=subtasks,
        restarts=lambda: restarts,
        program=lambda script: program({"op": EchoOperator(script)}, script),
        listeners=[JobLog()],
    )


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def test_the_first_failure_has_its_lines_and_later_ones_at_the_same_place_one_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "epochgate.job")
    job = logged_job(Broken, FixedDelay(2, 1.0), subtasks=2)
    job.settle(lambda: job.is_over)
    first, *later = warnings(caplog)
    said, *frames = first.splitlines()
    assert said.startswith("subtask 0 failed in attempt 0, restarts in 1 s (1 more left): ")
    assert said.endswith("ValueError: bad row 1")
    assert f'File "{__file__}"' in frames[0]
    assert frames[-1].strip() == 'raise ValueError(f"bad row {Broken.failures}")'
    assert later
    assert all(len(line.splitlines()) == 1 for line in later)
    assert "0 more left" in later[-1]  # the one that ends the job is said with the job's end


def test_the_end_of_the_job_says_why_before_the_lines_of_user_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "epochgate.job")
    job = logged_job(Broken, NoRestart())
    job.settle(lambda: job.is_over)
    said, *frames = str(job.result.reason).splitlines()
    assert said.endswith("; the restart strategy allows no further attempt")
    assert frames[-1].strip().startswith("raise ValueError")
    [end] = caplog.messages
    assert end.splitlines()[1:] == frames
    assert "; the restart strategy allows no further attempt" in end.splitlines()[0]


def test_after_a_checkpoint_the_same_failure_is_told_with_its_lines_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "epochgate.job")
    job = logged_job(FailsTwice, FixedDelay(5, 1.0))
    job.settle()
    job.master.request_checkpoint()
    job.flow()
    FailsTwice.may_fail = True
    job.settle()
    assert [len(told.splitlines()) > 1 for told in warnings(caplog)] == [True, True]


def test_a_process_that_is_lost_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "epochgate.job")
    FailsTwice.may_fail = False
    job = logged_job(FailsTwice, FixedDelay(5, 1.0))
    job.settle()
    job.transport.kill(max(job.transport.processes), "killed")
    job.settle()
    assert warnings(caplog) == []
    assert "subtask 0 failed in attempt 0, restarts in 1 s (4 more left): killed" in caplog.messages


@pytest.mark.parametrize(
    ("strategy", "at_s", "left"),
    [
        (NoRestart(), [0.0], [0]),
        (FixedDelay(2, 1.0), [0.0, 9.0, 99.0], [1, 0, 0]),
        (FailureRate(2, 10.0, 1.0), [0.0, 5.0, 30.0], [1, 0, 1]),
        (ExponentialDelay(attempts_max=2), [0.0, 9.0, 9999.0], [1, 0, 1]),
        (ExponentialDelay(), [0.0, 9.0], [None, None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_strategy_counts_the_restarts_that_are_left(
    strategy: FixedDelay | FailureRate | ExponentialDelay | NoRestart,
    at_s: list[float],
    left: list[int | None],
) -> None:
    told = []
    for now_s in at_s:
        strategy.next_delay_s(now_s)
        told.append(strategy.restarts_left)
    assert told == left


class Own:
    """A strategy of a user's own, which counts nothing."""

    def next_delay_s(self, now_s: float) -> float | None:
        return 1.0 if now_s < 3.0 else None

    def notify_healthy(self, now_s: float) -> None:
        """Nothing depends on it."""


def test_a_strategy_that_counts_nothing_is_told_without_a_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "epochgate.job")
    job = logged_job(Broken, Own())
    job.settle(lambda: job.is_over)
    assert warnings(caplog)[0].startswith("subtask 0 failed in attempt 0, restarts in 1 s: ")
