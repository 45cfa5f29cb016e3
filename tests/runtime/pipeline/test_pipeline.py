"""A pipeline of the usual parts keeps the promises of the job below it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgpack
import pytest

from epochgate.pipeline import (
    CoordinatedOperator,
    FunctionSource,
    MapOperator,
    Pipeline,
    PipelineMisconfigured,
    RateLimit,
    Setting,
)
from epochgate.runtime import (
    Committer,
    CoordinatorContext,
    Operator,
    OperatorCoordinator,
    Sink,
    SinkStart,
    SinkWriter,
)
from epochgate.runtime.pipeline.record_sink import FunctionCommitter
from epochgate.runtime.pipeline.setting import SettingRefused
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.opening import UrlNotSupported, open_checkpoints
from epochgate.runtime.testing.scripted import ScriptedCoordinator, ScriptedProvider
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.objects.stores import Memory

Committed = dict[int, list[Any]]


def look() -> list[list[int]]:
    return [[first, first + 10] for first in range(0, 100, 10)]


def read(split: list[int], position: int | None) -> Iterator[tuple[list[int], int]]:
    for number in range(split[0] if position is None else position, split[1]):
        yield [number], number + 1


def without_position(split: list[int], position: Any) -> Any:
    yield split[0]


def with_limit(numbers: list[int], limit: int) -> list[list[int]]:
    return [[number, limit] for number in numbers]


def writing_to(committed: Committed) -> Any:
    def write(checkpoint_id: int, records: list[Any]) -> None:
        committed[checkpoint_id] = records

    return write


def numbers(committed: Committed) -> list[Any]:
    return sorted(record for records in committed.values() for record in records)


def simulated(committed: Committed, parallelism: int = 2, **parts: Any) -> SimulatedJob:
    pipeline = Pipeline(source=FunctionSource(look, read), sink=writing_to(committed), **parts)
    return SimulatedJob.of(pipeline, parallelism=parallelism, checkpoint_interval_s=None)


def change(job: SimulatedJob, setting: Setting, value: Any) -> Future[Any]:
    """Change a setting; the tasks have not heard of it when this returns."""
    changed = setting.set(job.master, value)
    job.drain()
    return changed


def test_every_record_is_written_once_by_functions_alone() -> None:
    committed: Committed = {}
    job = simulated(committed)
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    assert numbers(committed) == list(range(100))


@pytest.mark.versions
def test_every_record_is_written_once_although_a_process_and_the_driver_die() -> None:
    committed: Committed = {}
    job = simulated(committed, coordinators=[RateLimit(20)])
    for _ in range(3):
        job.settle()
        job.wait(1.0)
        job.master.request_checkpoint()
        job.flow()
        job.wait(0.3)
        job.transport.kill(max(job.transport.processes))
        job.settle()
    job.crash_driver()
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    assert numbers(committed) == list(range(100))


def settings_in(found: CompletedCheckpoint) -> list[Any]:
    coordinator = msgpack.unpackb(found.coordinators["limit"])
    return [coordinator, *(msgpack.unpackb(s["limit"]) for s in found.subtasks.values())]


def test_all_parts_of_a_checkpoint_agree_on_a_setting_that_changes() -> None:
    committed: Committed = {}
    limit, rate = Setting("limit", 900), RateLimit(20)
    job = simulated(committed, map=with_limit, coordinators=[limit, rate])
    seen = []
    for value in (800, 700, 600):
        job.settle()
        job.wait(0.5)
        changed = change(job, limit, value)
        wanted = job.master.request_checkpoint()
        job.flow()
        assert changed.result(timeout=0) == value
        found = settings_in(job.store.load(wanted.result(timeout=0)))
        assert len(set(found)) == 1, found
        seen.append(found[0])
        job.transport.kill(max(job.transport.processes))
    assert seen == [800, 700, 600]
    job.settle(until=lambda: job.is_over)
    assert [number for number, _ in numbers(committed)] == list(range(100))
    limits = [{limit for _, limit in committed[checkpoint]} for checkpoint in sorted(committed)]
    assert limits[-1] == {600}


def test_a_start_goes_on_with_the_setting_of_its_checkpoint() -> None:
    limit = Setting("limit", 900)
    job = simulated({}, map=with_limit, coordinators=[limit, RateLimit(20)])
    job.settle()
    change(job, limit, 500)
    job.master.request_checkpoint()
    job.flow()
    change(job, limit, 400)
    job.crash_driver()
    job.settle()
    now = limit.get(job.master)
    job.drain()
    assert now.result(timeout=0) == 500


def test_a_start_with_more_subtasks_gives_each_the_setting_of_the_checkpoint() -> None:
    committed: Committed = {}
    limit = Setting("limit", 900)
    pipeline = Pipeline(
        source=FunctionSource(look, read),
        map=with_limit,
        sink=writing_to(committed),
        coordinators=[limit, RateLimit(20)],
    )
    job = SimulatedJob.of(
        pipeline, parallelism=lambda start: 2 + 2 * start, checkpoint_interval_s=None
    )
    job.settle()
    change(job, limit, 500)
    job.settle()
    job.wait(0.5)
    job.master.request_checkpoint()
    job.settle()
    job.crash_driver()
    job.settle()
    wanted = job.master.request_checkpoint()
    job.settle()
    assert settings_in(job.store.load(wanted.result(timeout=0))) == [500] * 5
    job.settle(until=lambda: job.is_over)
    assert [number for number, _ in numbers(committed)] == list(range(100))


def test_a_rate_is_kept_by_all_subtasks_together_and_can_be_changed() -> None:
    committed: Committed = {}
    rate = RateLimit(10)
    job = simulated(committed, coordinators=[rate])

    def written() -> int:
        job.settle()
        job.master.request_checkpoint()
        job.flow()
        return len(numbers(committed))

    before = written()
    job.wait(2.0)
    assert written() - before == 20
    change(job, rate, 40)
    before = written()
    for _ in range(10):
        job.wait(0.1)
        job.flow()  # the splits that are asked for
    assert abs(written() - before - 40) <= 2
    change(job, rate, None)
    job.settle(until=lambda: job.is_over)
    assert numbers(committed) == list(range(100))


class Summing(MapOperator):
    """Numbers the records of each attempt's subtask, on from its checkpoint."""

    def open(self, context: Any, state: bytes | None) -> None:
        super().open(context, state)
        self.count = 0 if state is None else msgpack.unpackb(state)

    def map(self, batch: list[int]) -> list[list[int]]:
        first = self.count + 1
        self.count += len(batch)
        return [[number, first + n] for n, number in enumerate(batch)]

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb(self.count))


def test_a_map_with_state_goes_on_from_its_checkpoint() -> None:
    committed: Committed = {}
    job = simulated(committed, parallelism=1, map=Summing, coordinators=[RateLimit(10)])
    for _ in range(3):
        job.settle()
        job.wait(1.0)
        job.master.request_checkpoint()
        job.flow()
        job.wait(0.5)
        job.transport.kill(max(job.transport.processes))
    job.settle(until=lambda: job.is_over)
    assert sorted(count for _, count in numbers(committed)) == list(range(1, 101))


class Audit(CoordinatedOperator):
    """Counts the subtasks that come up."""

    operator_id = "audit"

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        return AuditCoordinator()

    def create_operator(self) -> Operator:
        return AuditOperator()


class AuditCoordinator(OperatorCoordinator):
    def __init__(self) -> None:
        self.hellos: list[int] = []

    def start(self) -> None: ...
    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None: ...
    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: Any) -> None: ...
    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None: ...
    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.hellos.append(subtask)

    def handle_client_request(self, request: Any) -> list[int]:
        return sorted(self.hellos)


class AuditOperator(Operator):
    def open(self, context: Any, state: bytes | None) -> None:
        super().open(context, state)
        context.send_to_coordinator("hello")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""


def test_a_coordinator_of_ones_own_has_its_operator_in_every_task() -> None:
    job = simulated({}, coordinators=[Audit(), RateLimit(1)])
    job.settle()
    asked = job.master.request("audit", None)
    job.drain()
    assert asked.result(timeout=0) == [0, 1]


class Bare(CoordinatedOperator):
    """Names an operator that is the pipeline's own."""

    operator_id = "source"

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        raise AssertionError("never made")

    def create_operator(self) -> Operator:
        raise AssertionError("never made")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"source": "orders"}, r"source is 'orders'; give a Source, or make one of two functions"),
        ({"map": 3}, r"map is 3; give a function of a batch"),
        ({"sink": "out"}, r"sink is 'out'; give a Sink, a Committer, or a function"),
        ({"coordinators": ["limit"]}, r"coordinators holds 'limit'; give a Setting"),
        ({"coordinators": [Bare()]}, r"'source' is the pipeline's own; name it otherwise"),
        ({"coordinators": [Setting("limit", 1)]}, r"\['limit'\] need a map that takes them"),
        (
            {"map": with_limit, "coordinators": [Setting("rule", 1)]},
            r"with_limit\(numbers.*limit.*\) .* the settings \['rule'\] by name: missing",
        ),
        ({"map": with_limit}, r"with_limit\(.* is called with a batch: .*is a Setting missing"),
        ({"coordinators": RateLimit(3)}, r"coordinators is .*RateLimit.*; give a list"),
        ({"sink": numbers}, r"sink numbers\(.* is called with a checkpoint id and the records"),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_anything_runs(
    parts: dict[str, Any], told: str
) -> None:
    fitting = {"source": FunctionSource(look, read), "sink": writing_to({})}
    with pytest.raises(PipelineMisconfigured, match=told):
        Pipeline(**{**fitting, **parts})


@pytest.mark.parametrize(
    ("place", "job_id", "named"),
    [
        ("orders", None, "orders"),
        ("orders/", "bills", "bills"),
        ("s3://shop/orders/", None, "orders"),
    ],
)
def test_checkpoints_are_named_for_their_place_unless_the_job_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, job_id: str | None, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_checkpoints(place, job_id, open_objects=Memory().open)
    assert store.job_id == named
    assert (tmp_path / "orders").is_dir() is not place.startswith("s3")
    store.close()


@pytest.mark.parametrize("place", ["orders", "s3://shop/orders"])
def test_as_many_of_the_newest_checkpoints_are_kept_as_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_checkpoints(place, retained=5, open_objects=Memory().open)
    for number in range(1, 8):
        store.save(CompletedCheckpoint(number, "orders", "run", 0.0, parallelism=1))
    assert store.ids() == [3, 4, 5, 6, 7]
    store.close()


def test_checkpoints_at_a_url_that_is_no_object_stores_are_refused() -> None:
    with pytest.raises(UrlNotSupported, match="'hdfs://a/b' are at a URL of no object store"):
        open_checkpoints("hdfs://a/b")


@pytest.mark.parametrize("value", [0, -1, float("inf"), True, "fast"])
def test_a_rate_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(SettingRefused, match="give records a second"):
        RateLimit(value)


def test_a_setting_that_cannot_travel_is_refused_where_it_is_set() -> None:
    limit = Setting("limit", 1)
    with pytest.raises(SettingRefused, match="no plain value"):
        limit.set(None, object())  # type: ignore[arg-type]  # the job is not asked
    with pytest.raises(SettingRefused, match="it cannot name an argument"):
        Setting("the limit", 1)


def test_what_a_read_function_yields_by_mistake_is_told() -> None:
    job = SimulatedJob.of(
        Pipeline(source=FunctionSource(look, without_position), sink=writing_to({}))
    )
    job.settle(until=lambda: bool(job.master.report.failures))
    reason = job.master.report.failures[0].reason
    assert "without_position yielded 0; it must yield pairs: some records" in reason


class Doubled(Sink):
    """Writes to a list, twice each record; its coordinator lets writers begin."""

    def __init__(self, committed: Committed) -> None:
        self.committed = committed
        self.starts: list[SinkStart] = []

    def create_writer(self, context: Any, state: bytes | None) -> SinkWriter:
        return DoubledWriter(context)

    def create_committer(self, start: SinkStart) -> Committer:
        self.starts.append(start)
        return FunctionCommitter(writing_to(self.committed))

    def create_coordinator(self, operator_id: str, committer: Committer) -> ScriptedProvider:
        return ScriptedProvider(operator_id, coordinator=Beginning)


class Beginning(ScriptedCoordinator):
    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        super().handle_event_from_operator(subtask, attempt, event)
        self.send(subtask, "begin")


class DoubledWriter(SinkWriter):
    def __init__(self, context: Any) -> None:
        self.context, self.has_begun = context, False
        self.records: list[int] = []

    def may_write(self, batch: Any) -> bool:
        if not self.has_begun:
            self.context.send_to_coordinator("may I?")
        return self.has_begun

    def handle_event(self, event: Any) -> None:
        self.has_begun = True

    def write(self, batch: Any) -> None:
        self.records += [2 * number for number in batch]

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        records, self.records = self.records, []
        return records


def test_a_sink_of_ones_own_with_a_coordinator_gets_every_record_once() -> None:
    sink = Doubled({})
    pipeline = Pipeline(source=FunctionSource(look, read), sink=sink, coordinators=[RateLimit(20)])
    job = SimulatedJob.of(pipeline, parallelism=2, checkpoint_interval_s=1.0)
    job.settle()
    job.wait(1.5)
    job.settle()
    job.transport.kill(max(job.transport.processes))
    job.crash_driver()
    job.settle(until=lambda: job.is_over)
    assert numbers(sink.committed) == list(range(0, 200, 2))
    first, second = sink.starts
    assert (first.job_id, first.restored_checkpoint) == ("simulated", None)
    assert second.restored_checkpoint is not None
    assert first.run_id != second.run_id


@pytest.mark.parametrize(
    ("option", "told"),
    [("paralelism", "did you mean 'parallelism'?"), ("colour", "from_savepoint, has_history,")],
)
def test_an_unknown_option_is_told_with_the_nearest_or_all(option: str, told: str) -> None:
    pipeline = Pipeline(source=FunctionSource(look, read), sink=print)
    given: dict[str, Any] = {option: 1}
    with pytest.raises(TypeError) as refused:
        pipeline.start(None, "never made", **given)
    assert f"a pipeline has no option {option!r}; " in str(refused.value)
    assert told in str(refused.value)
