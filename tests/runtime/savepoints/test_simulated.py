"""Savepoints of simulated jobs: when a request is served, what it holds, what goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, Setting
from epochgate.runtime import CheckpointAborted, CheckpointEnded, JobOver
from epochgate.runtime.api.job_events import JobEvent, JobListener, SavepointWritten
from epochgate.runtime.savepoints import SavepointPlaceTaken, begin_from, read_savepoint
from epochgate.runtime.savepoints.errors import SavepointFailed
from epochgate.runtime.shell.savepoints import SavepointPlaceMissing
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.testing import SimulatedJob

LAST = 60


class Written:
    """A target that knows what each checkpoint has written, and survives every job."""

    def __init__(self) -> None:
        self.checkpoints: dict[int, list[int]] = {}

    def write(self, checkpoint: int, numbers: list[int]) -> None:
        self.checkpoints.setdefault(checkpoint, sorted(numbers))

    def all(self) -> list[int]:
        return sorted(n for numbers in self.checkpoints.values() for n in numbers)


class Heard(JobListener):
    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def on_event(self, event: JobEvent) -> None:
        self.events.append(event)


def read(first: int) -> range:
    return range(first, first + 5)


def add(batch: list[int], more: int) -> list[int]:
    return [n + more for n in batch]


def started(
    target: Written,
    *,
    shelf: CheckpointShelf | None = None,
    parallelism: int = 2,
    heard: Heard | None = None,
    **settings: Any,
) -> SimulatedJob:
    pipeline = Pipeline(
        source=FunctionSource(range(0, LAST, 5), read, batch_records=1),
        map=add,
        sink=target.write,
        coordinators=[Setting("more", 0)],
    )
    return SimulatedJob.of(
        pipeline,
        parallelism=parallelism,
        shelf=shelf,
        listeners=[] if heard is None else [heard],
        **settings,
    )


def work(job: SimulatedJob, rounds: int = 3) -> None:
    """Let each process work so often; no checkpoint is taken meanwhile."""
    job.flow(held=("work",))
    for _ in range(rounds):
        for identity in list(job.transport.processes):
            job.step(("work", identity))
    job.flow(held=("work",))


def without_periods(**settings: Any) -> dict[str, Any]:
    return {"checkpoint_interval_s": None, **settings}


def test_a_savepoint_is_the_checkpoint_that_was_taken_for_it(tmp_path: Path) -> None:
    target, heard = Written(), Heard()
    job = started(target, heard=heard, **without_periods())
    work(job)
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    made = asked.result(0)
    checkpoint = read_savepoint(made.path).checkpoint
    stored = job.store.load(made.checkpoint_id)
    assert (checkpoint.subtasks, checkpoint.committables) == (stored.subtasks, stored.committables)
    assert [event for event in heard.events if isinstance(event, SavepointWritten)] == [
        SavepointWritten(job.clock.now_s(), made.checkpoint_id, made.path, made.size_bytes)
    ]
    job.settle(until=lambda: job.is_over)
    assert target.all() == list(range(LAST))


def test_one_that_is_asked_for_during_a_checkpoint_waits_for_the_next(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    work(job)
    first = job.master.request_checkpoint()
    job.drain()
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    assert asked.result(0).checkpoint_id == first.result(0) + 1


def test_requests_that_wait_together_are_served_by_one_checkpoint(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    asked = [job.master.request_savepoint(str(tmp_path / name)) for name in "abc"]
    job.flow(held=("work",))
    assert {one.result(0).checkpoint_id for one in asked} == {1}
    assert len({one.result(0).savepoint_id for one in asked}) == 3


def test_one_that_is_asked_for_during_a_restart_waits_until_all_run(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    work(job)
    job.transport.kill(1)
    job.flow(held=("work",))
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    assert not asked.done()
    job.wait(5.0)
    job.flow(held=("work",))
    assert asked.result(0).checkpoint_id == 1


def test_one_whose_checkpoint_is_aborted_fails_and_leaves_nothing(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    work(job)
    job.faults.doom("acknowledge", "declined")
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    with pytest.raises(CheckpointAborted):
        asked.result(0)
    assert not (tmp_path / "savepoint").exists()


def test_one_that_cannot_be_written_changes_nothing_for_the_job(tmp_path: Path) -> None:
    target, heard = Written(), Heard()
    job = started(target, heard=heard, **without_periods())
    (tmp_path / "taken").mkdir()
    asked = job.master.request_savepoint(str(tmp_path / "taken"))
    job.settle(until=lambda: job.is_over)
    with pytest.raises(SavepointPlaceTaken):
        asked.result(0)
    assert job.result.state == "finished"
    assert any("is there already" in warning for warning in job.result.report.warnings)
    ended = [event for event in heard.events if isinstance(event, CheckpointEnded)]
    assert {event.outcome for event in ended} == {"completed"}
    assert target.all() == list(range(LAST))


def test_after_the_end_there_is_none(tmp_path: Path) -> None:
    job = started(Written())
    job.settle(until=lambda: job.is_over)
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.drain()
    with pytest.raises(JobOver):
        asked.result(0)


def test_one_that_waits_when_the_job_is_canceled_fails(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    work(job)
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.master.cancel()
    job.settle(until=lambda: job.is_over)
    with pytest.raises(CheckpointAborted):
        asked.result(0)


def test_checkpoints_in_memory_have_no_place_beside_them() -> None:
    job = started(Written(), **without_periods())
    asked = job.master.request_savepoint()
    job.drain()
    with pytest.raises(SavepointPlaceMissing):
        asked.result(0)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("more_rounds", [0, 4])
def test_a_job_that_starts_from_one_reads_each_record_once(
    tmp_path: Path, parallelism: int, more_rounds: int
) -> None:
    """Also where the first job had gone on: what it wrote later is another target's."""
    before = Written()
    job = started(before, **without_periods())
    work(job)
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    checkpoint = asked.result(0).checkpoint_id
    kept = {n: numbers for n, numbers in before.checkpoints.items() if n <= checkpoint}
    work(job, more_rounds)
    after = Written()
    after.checkpoints = kept
    shelf = CheckpointShelf()
    with InMemoryCheckpointStore(shelf, job_id="simulated") as store:
        begin_from(store, str(tmp_path / "savepoint"))
    other = started(after, shelf=shelf, parallelism=parallelism)
    other.settle(until=lambda: other.is_over)
    assert other.result.state == "finished"
    assert after.all() == list(range(LAST))
    assert other.shelf.epoch > job.store.epoch


def test_what_settings_had_then_they_have_again(tmp_path: Path) -> None:
    target = Written()
    job = started(target, **without_periods())
    job.flow(held=("work",))
    job.master.request("more", ["set", 1000])
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    assert asked.result(0).checkpoint_id == 1
    shelf = CheckpointShelf()
    with InMemoryCheckpointStore(shelf, job_id="simulated") as store:
        begin_from(store, str(tmp_path / "savepoint"))
    after = Written()
    other = started(after, shelf=shelf, parallelism=3)
    other.settle(until=lambda: other.is_over)
    assert after.all() == list(range(1000, 1000 + LAST))


def test_every_later_checkpoint_says_with_which_savepoint_the_job_began(tmp_path: Path) -> None:
    job = started(Written(), **without_periods())
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    made = asked.result(0)
    shelf = CheckpointShelf()
    with InMemoryCheckpointStore(shelf, job_id="simulated") as store:
        begin_from(store, made.path)
    other = started(Written(), shelf=shelf)
    other.settle(until=lambda: other.is_over)
    shelf.end_driver()
    with InMemoryCheckpointStore(shelf, job_id="simulated") as store:
        latest = store.latest()
    assert latest is not None
    assert latest.checkpoint_id > made.checkpoint_id
    assert latest.begun_from == made.savepoint_id


def test_one_whose_write_hangs_fails_at_its_limit_and_the_job_goes_on(tmp_path: Path) -> None:
    job = started(Written(), **without_periods(store_timeout_s=20.0, work_warn_s=5.0))
    work(job)
    submit, submitted = job.blocking.submit, []

    def hanging_behind_the_save(lane: str, work: Callable[[], Any], then: Any) -> None:
        submitted.append(lane)
        if submitted.count("store") == 2:
            job.blocking.hanging.add("store")
        submit(lane, work, then)

    job.blocking.submit = hanging_behind_the_save  # type: ignore[method-assign]
    asked = job.master.request_savepoint(str(tmp_path / "savepoint"))
    job.flow(held=("work",))
    job.wait(6.0)
    assert any("the write of savepoint" in text for text in job.master.report.warnings)
    job.wait(15.0)
    with pytest.raises(SavepointFailed, match=r"within 20 s; store_timeout_s is the limit"):
        asked.result(0)
    assert not job.is_over
