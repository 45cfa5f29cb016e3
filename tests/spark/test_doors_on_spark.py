"""Whatever user code raises, returns or hangs in: a job on Spark ends or goes on by the rules in
`ENDS_WITHIN_S`, with type, file and line; nothing is lost or doubled where it goes on.

The doors and what comes through them are those of simulated jobs, `tests/runtime/doors.py`.
`make test` goes through a sample; `make kills` through the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import JobResult
from epochgate.runtime.api.restart_strategies import FixedDelay, NoRestart
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.spark.handle import JobHandle
from epochgate.spark.job import run_job
from tests.runtime import doors
from tests.spark import doors_program, numbers_program
from tests.spark.doors_program import HANG, DoorCommitter, DoorProgram, Fault, Value
from tests.spark.numbers_program import (
    NumberCoordinator,
    NumberProvider,
    RangeCommitter,
    number_configuration,
)
from tests.spark.running import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(120)]
ENDS_WITHIN_S = 30.0
LAST = 40
LIMITS: dict[str, Any] = {
    "checkpoint_timeout_s": 1.5,
    "attempt_start_timeout_s": 1.5,
    "coordinator_call_timeout_s": 1.5,
    "store_timeout_s": 1.5,
    "commit_timeout_s": 1.5,
    "end_timeout_s": 1.5,
    "tolerable_checkpoint_failures": 0,
}
IN_TASKS = (*doors.OPERATOR, *doors.ON_SPARK)
ENDING = (*doors.COMMITTER, *doors.STRATEGY)
"""Doors behind which an error ends the job."""


class ScriptedStrategy(FixedDelay):
    """Asks a script before it answers."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(1000, 0.0)
        object.__setattr__(self, "fault", fault)

    def next_delay_s(self, now_s: float) -> float | None:
        returned = self.fault.happens("strategy.next_delay_s")  # type: ignore[attr-defined]
        return returned.value if returned else super().next_delay_s(now_s)

    def notify_healthy(self, now_s: float) -> None:
        self.fault.happens("strategy.notify_healthy")  # type: ignore[attr-defined]
        super().notify_healthy(now_s)


class DoorStore(InMemoryCheckpointStore):
    def __init__(self, fault: Fault) -> None:
        super().__init__(CheckpointShelf(), job_id="numbers")
        self.fault = fault

    def close(self) -> None:
        self.fault.happens("store.close")
        super().close()


class DoorCoordinator(NumberCoordinator):
    """Fails its job once after the second checkpoint, where a door is behind a restart."""

    fault: Fault
    goes_back = False

    def _at(self, method: str, *arguments: Any) -> None:
        super()._at(method, *arguments)
        self.fault.happens(f"op.{method}")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        if checkpoint_id == 2 and self.goes_back:
            self.context.fail_job("everything goes back")


class Job:
    """A number job of one subtask, held until `let_end`, with a fault at a door."""

    def __init__(self, spark: Any, door: str, what: Any, folder: Path, **settings: Any) -> None:
        first = None
        if door in ("op.execution_attempt_failed", "op.subtask_reset"):
            first = Fault("operator.notify_checkpoint_complete", RuntimeError, folder / "first")
        fault = Fault(door, what, folder / "once", first)
        goes_back = door in ("op.reset_to_checkpoint", "strategy.next_delay_s")
        kind = type("Coordinator", (DoorCoordinator,), {"fault": fault, "goes_back": goes_back})
        self.provider = NumberProvider(LAST, None, kind)
        self.committer: RangeCommitter = DoorCommitter(fault)
        configuration = number_configuration(
            self.provider,
            1,
            **{
                "checkpoint_interval_s": 0.1,
                "restart_strategy": ScriptedStrategy(fault),
                "end_timeout_s": 1.5,
                **settings,
            },
        )
        self.handle: JobHandle = run_job(
            spark,
            configuration,
            lambda subtask: DoorProgram(LAST, fault),
            store=DoorStore(fault),
            committer=self.committer,
            by_value=[numbers_program, doors_program, doors],
        )

    def wait(self) -> JobResult:
        return self.handle.wait(ENDS_WITHIN_S)

    def told(self) -> list[str]:
        report = self.handle.report
        failures = [one.reason for one in report.failures]
        checkpoints = [one.reason or "" for one in report.checkpoints]
        return [*failures, *checkpoints, *report.warnings, report.failure_reason or ""]


@pytest.fixture
def start(spark: Any, tmp_path: Path) -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def started(door: str, what: Any, **settings: Any) -> Job:
        job = Job(spark, door, what, tmp_path, **settings)
        jobs.append(job)
        return job

    yield started
    (tmp_path / "go").touch()
    for job in jobs:
        job.handle.cancel()
        job.handle.wait(ENDS_WITHIN_S)


def sampled(sample: set[tuple[str, Any]], cases: list[tuple[str, Any]]) -> list[Any]:
    """All cases; those that are not in the sample only in `make kills`."""
    return [
        pytest.param(
            door,
            what,
            id=f"{door}-{what if isinstance(what, str) else getattr(what, '__name__', what)}",
            marks=() if (door, what) in sample else pytest.mark.kills,
        )
        for door, what in cases
    ]


FILES = ("doors_program.py", "test_doors_on_spark.py")


def is_told(text: str, raised: type[BaseException]) -> bool:
    """Return whether a reason names the type, and a file and line of the user's code."""
    return raised.__name__ in text and any(f'{file}", line ' in text for file in FILES)


RAISING = [
    (door, raised)
    for door in (*doors.COORDINATOR, *IN_TASKS, *doors.COMMITTER, *doors.STRATEGY)
    for raised in doors.RAISED
]
SAMPLE: set[tuple[str, Any]] = {
    ("operator.snapshot", doors.OwnBase),
    ("program.metrics", SystemExit),
    ("op.checkpoint", KeyboardInterrupt),
}


@pytest.mark.parametrize(("door", "raised"), sampled(SAMPLE, RAISING))
def test_what_user_code_raises_is_told_and_nothing_is_lost_or_doubled(
    door: str, raised: type[BaseException], start: Callable[..., Job]
) -> None:
    job = start(door, raised)
    result = job.wait()
    assert any(is_told(text, raised) for text in job.told()), job.told()
    if door in ENDING:
        assert result.state == "failed"
        assert raised.__name__ in (result.reason or "")
    else:
        assert result.state == "finished", result.reason
        assert job.committer.problems(1, LAST) == []


@pytest.mark.kills
@pytest.mark.parametrize(
    "door", [*(one for one in doors.COORDINATOR if one not in doors.RESTARTING), *IN_TASKS]
)
def test_without_restarts_the_error_is_the_reason_of_the_end(
    door: str, start: Callable[..., Job]
) -> None:
    result = start(door, doors.OwnBase, restart_strategy=NoRestart()).wait()
    assert result.state == "failed"
    assert is_told(result.reason or "", doors.OwnBase), result.reason


HANGING = [
    (door, HANG)
    for door in (*doors.COORDINATOR, *doors.OPERATOR, *doors.COMMITTER, *doors.STRATEGY)
]


@pytest.mark.parametrize(("door", "what"), sampled({("op.checkpoint", HANG)}, HANGING))
def test_what_hangs_ends_its_job_at_a_limit_that_is_named_and_in_a_task_is_replaced(
    door: str, what: str, start: Callable[..., Job]
) -> None:
    job = start(door, what, **LIMITS)
    result, told = job.wait(), "\n".join(job.told())
    if door in doors.OPERATOR:
        assert result.state == "finished", result.reason
        assert job.committer.problems(1, LAST) == []
        assert "1.5 s" in told
    else:
        assert result.state == "failed", told
        assert any(option in told for option in LIMITS), told


@pytest.mark.kills
@pytest.mark.parametrize(("door", "what"), [*HANGING, ("program.work", HANG)])
def test_a_job_that_hangs_is_canceled_within_its_limit(
    door: str, what: str, start: Callable[..., Job], tmp_path: Path
) -> None:
    job = start(door, what)
    wait_for((tmp_path / "once").exists, "the job hangs")
    job.handle.cancel()
    assert job.wait().state == "canceled"


@pytest.mark.kills
@pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("door", doors.CLOSING)
def test_what_is_closed_last_is_told_and_the_job_has_finished(
    door: str, raised: type[BaseException], start: Callable[..., Job]
) -> None:
    job = start(door, raised)
    result = job.wait()
    assert result.state == "finished", result.reason
    assert job.committer.problems(1, LAST) == []
    if door != "operator.close":  # its process has no one to tell, and logs it
        assert any(is_told(text, raised) for text in job.told()), job.told()


@pytest.mark.parametrize(
    ("door", "what"), sampled({("op.close", HANG)}, [(door, HANG) for door in doors.CLOSING])
)
def test_a_close_that_hangs_leaves_the_job_finished(
    door: str, what: str, start: Callable[..., Job]
) -> None:
    job = start(door, what, **LIMITS)
    result = job.wait()
    assert result.state == "finished", result.reason
    assert job.committer.problems(1, LAST) == []
    if door != "operator.close":  # Spark ends its process
        assert any('doors_program.py", line ' in text for text in job.told()), job.told()


@pytest.mark.kills
def test_a_callback_of_a_client_that_hangs_holds_nothing_up(
    start: Callable[..., Job], tmp_path: Path
) -> None:
    job = start("program.work", HANG)
    wait_for((tmp_path / "once").exists, "the job is up")
    wanted = job.handle.request("numbers", "a question")
    wanted.add_done_callback(lambda _: wait_for((tmp_path / "go").exists, "it may go on"))
    wanted.exception(ENDS_WITHIN_S)
    job.handle.cancel()
    assert job.wait().state == "canceled"


RETURNED = [
    ("operator.snapshot", None),
    ("operator.snapshot", "text"),
    ("operator.prepare_commit", None),
    ("operator.prepare_commit", [{1}]),
    ("program.work", None),
    ("program.work", True),
    ("program.operators", None),
    ("program.operators", {"numbers": None}),
    ("program.metrics", None),
    ("program.metrics", {"number": {1}}),
    ("program.metrics", {"number": "many"}),
    ("strategy.next_delay_s", "soon"),
    ("strategy.next_delay_s", -1.0),
]


@pytest.mark.kills
@pytest.mark.parametrize(("door", "value"), RETURNED, ids=str)
def test_a_value_of_another_kind_is_told_with_the_method_that_returned_it(
    door: str, value: Any, start: Callable[..., Job]
) -> None:
    settings = {} if door.startswith("strategy.") else {"restart_strategy": NoRestart()}
    result = start(door, Value(value), **settings).wait()
    method = door.partition(".")[2]
    assert result.state == "failed"
    assert method in (result.reason or ""), result.reason
