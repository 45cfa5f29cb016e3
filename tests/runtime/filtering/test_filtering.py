"""The collection of one operator decides which splits another's source gives out."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import msgpack
import pytest

from epochgate.runtime import CoordinatorContext
from epochgate.runtime.api.coordinator_store import CoordinatorStore
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.filtering import (
    AlreadyReported,
    DynamicFilteringProvider,
    FilteredQueueEnumerator,
    FilteringData,
    FilteringDataChanged,
    FilteringDataOperator,
    FilteringMisconfigured,
)
from epochgate.runtime.filtering.coordinator import DynamicFilteringCoordinator
from epochgate.runtime.source.assignment import Assignments
from epochgate.runtime.source.generation import Generation
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.filtering.joining import (
    BUILD,
    KEYS,
    SOURCE,
    JoinProgram,
    KeyedSource,
    join_configuration,
    may_match,
    numbers_of,
)
from tests.runtime.happenings import let_anything_happen
from tests.runtime.source.by_hand import HandContext
from tests.runtime.source.ranges import NumberCommitter


class JoinJob(SimulatedJob):
    """`keys`: those of each subtask's build side, as of now."""

    def __init__(
        self, keys: dict[int, list[int]], *, values_max: int = 100, **configuration: Any
    ) -> None:
        self.keys, self.table, self.source = keys, NumberCommitter(), KeyedSource()
        super().__init__(
            lambda start: join_configuration(
                lambda: self.source, checkpoint_timeout_s=3.0, **configuration
            ),
            lambda subtask: JoinProgram(self.keys[subtask], self.source, values_max),
            committer=lambda: self.table,
        )

    def finish(self) -> None:
        self.settle(lambda: self.is_over)
        assert self.result.state == "finished", self.result.reason


@pytest.mark.parametrize("is_source_first", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_only_what_was_collected_is_read_and_that_once(seed: int, is_source_first: bool) -> None:
    job = JoinJob({0: [3, 7], 1: [7, 2]}, is_source_first=is_source_first)
    let_anything_happen(job, seed, 1200)
    if seed % 4 == 0:
        job.crash_driver()
    job.finish()
    assert job.source.opened == {2, 3, 7}
    assert sorted(job.table.numbers()) == numbers_of({2, 3, 7})


def test_nothing_is_read_before_every_subtask_has_reported() -> None:
    job = JoinJob({0: [3], 1: [4]})
    job.flow(only=0)
    assert job.source.opened == set()
    job.finish()
    assert sorted(job.table.numbers()) == numbers_of({3, 4})
    assert job.master.report.coordinator_metrics[SOURCE]["splits_left_out"] == KEYS - 2


def test_checkpoints_are_completed_while_the_build_side_collects() -> None:
    job = JoinJob({0: [3], 1: list(range(1000, 1200))})
    job.flow(held=("work",))
    wanted = job.master.request_checkpoint()
    job.flow(held=("work",))
    assert wanted.result(timeout=0) == 1
    assert job.store.load(1).coordinators[BUILD] == msgpack.packb([])
    assert job.source.opened == set()


def test_too_many_values_leave_nothing_out() -> None:
    job = JoinJob({0: [1, 2, 3], 1: [4]}, values_max=2)
    job.finish()
    assert job.source.opened == set(range(KEYS))


def test_an_empty_build_side_leaves_everything_out() -> None:
    job = JoinJob({0: [], 1: []})
    job.finish()
    assert job.table.numbers() == []
    assert job.source.opened == set()


def test_equal_data_after_a_failure_is_accepted() -> None:
    job = JoinJob({0: [3], 1: [4]}, checkpoint_interval_s=None)
    job.settle(lambda: job.source.opened != set())
    job.transport.kill(1)
    job.finish()
    assert job.master.report.regional_restarts == 1
    assert job.master.report.global_restarts == 0
    assert sorted(job.table.numbers()) == numbers_of({3, 4})


def test_other_data_after_a_failure_takes_the_job_back() -> None:
    job = JoinJob({0: [3], 1: [4]}, checkpoint_interval_s=None)
    job.settle(lambda: job.source.opened != set())
    job.keys[0] = [5]
    job.transport.kill(1)
    job.finish()
    assert job.master.report.global_restarts == 1
    [reason] = [f.reason for f in job.master.report.failures if f.subtask is None]
    assert "subtask 0 of 'build' reports {5} after a failure, and had reported {3}" in reason
    assert sorted(job.table.numbers()) == numbers_of({4, 5})


def test_a_start_from_a_checkpoint_gives_the_data_again() -> None:
    job = JoinJob({0: [3], 1: [4]})
    job.settle(lambda: job.source.opened != set())
    wanted = job.master.request_checkpoint()
    job.settle(wanted.done)
    job.keys = {0: [], 1: []}
    job.crash_driver()
    job.finish()
    assert sorted(job.table.numbers()) == numbers_of({3, 4})


def test_a_report_between_the_two_snapshots_of_a_checkpoint_is_not_lost() -> None:
    job = JoinJob({0: [3], 1: [4]}, checkpoint_interval_s=None)
    job.flow(held=("work",))
    wanted = job.master.request_checkpoint()
    job.flow(held=("work", "tell"))
    job.flow(held=("tell",))
    job.settle(wanted.done)
    stored = job.store.load(1)
    assert stored.coordinators[BUILD] == msgpack.packb([])
    assert [msgpack.unpackb(states[BUILD])[1] for states in stored.subtasks.values()] == [True] * 2
    job.crash_driver()
    job.finish()
    assert sorted(job.table.numbers()) == numbers_of({3, 4})


class Listener:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def handle_coordinator_event(self, event: Any) -> None:
        self.heard.append(event)


def coordinator(operator_id: str, store: CoordinatorStore) -> DynamicFilteringCoordinator:
    """Of three subtasks."""
    context = cast(CoordinatorContext, HandContext(operator_id, store))
    return DynamicFilteringCoordinator(context, ["listener"], 100)


def report(to: DynamicFilteringCoordinator, subtask: int, value: int) -> None:
    to.handle_event_from_operator(subtask, 0, ["report", FilteringData.of([value]).to_plain()])


def test_whole_data_is_given_once_and_once_more_after_a_reset() -> None:
    listener, store = Listener(), CoordinatorStore()
    store.put("listener", listener)
    giving = coordinator("build", store)
    report(giving, 0, 0)
    report(giving, 1, 1)
    report(giving, 1, 1)
    assert listener.heard == []
    event = ["filtering data", "build", FilteringData.of([0, 1, 2]).to_plain()]
    report(giving, 2, 2)
    report(giving, 1, 1)
    assert listener.heard == [event]
    result: Future[bytes] = Future()
    giving.checkpoint(1, result)
    giving.reset_to_checkpoint(1, result.result(0))
    report(giving, 0, 0)
    assert listener.heard == [event, event]
    giving.reset_to_checkpoint(0, None)
    assert listener.heard == [event, event]


def test_data_waits_for_a_listener_that_is_not_there_yet() -> None:
    store = CoordinatorStore()
    first, second = coordinator("first", store), coordinator("second", store)
    for subtask in range(3):
        report(first, subtask, 7)
    assert store.get("listener") == ["filtering data", "first", FilteringData.of([7]).to_plain()]
    report(second, 0, 8)
    report(second, 1, 8)
    with pytest.raises(FilteringMisconfigured, match=r"'second' has filtering data .* not there"):
        report(second, 2, 8)


def enumerator(context: HandContext, state: Any) -> FilteredQueueEnumerator:
    used = cast(CoordinatorContext, context)
    made: list[FilteredQueueEnumerator] = []
    generation = Generation(used, Assignments(used, lambda: made[0], lambda *said: None))
    look = KeyedSource().look
    made.append(FilteredQueueEnumerator(generation, state, look, may_match, every_s=1.0))
    return made[0]


def test_splits_found_later_are_left_out_too_and_counted_once() -> None:
    context = HandContext()
    queue = enumerator(context, None)
    queue.handle_coordinator_event(["filtering data", "build", FilteringData.of([3]).to_plain()])
    for _ in range(2):
        queue.add_found(KeyedSource().look())
    assert context.metrics["splits_left_out"] == KEYS - 1
    assert context.metrics["splits_unassigned"] == 1


def test_an_enumerator_remembers_by_what_it_has_left_out_splits() -> None:
    queue = enumerator(HandContext(), None)
    event = ["filtering data", "build", FilteringData.of([3]).to_plain()]
    queue.handle_coordinator_event(event)
    restored = enumerator(HandContext(), queue.snapshot_state(1))
    restored.handle_coordinator_event(event)
    other = ["filtering data", "build", FilteringData.of([4]).to_plain()]
    with pytest.raises(FilteringDataChanged, match=r"gives \{4\} after splits were left .* \{3\}"):
        restored.handle_coordinator_event(other)
    with pytest.raises(TypeError, match="handles no such events"):
        restored.handle_coordinator_event(["weather", "sunny"])


def test_values_that_came_after_the_report_are_refused() -> None:
    operator = FilteringDataOperator()
    operator.has_reported = True
    with pytest.raises(AlreadyReported, match="the value 7 was added after report"):
        operator.add(7)


def test_data_says_what_it_is() -> None:
    assert str(FilteringData.of([2, 1])) == "{1, 2}"
    assert str(FilteringData.of(range(12))).endswith("and 2 more}")
    assert str(FilteringData.everything()) == "everything"
    assert FilteringData.of([["a", 1]]).allows(["a", 1])
    assert not FilteringData.of([1]).allows(True)
    with pytest.raises(ValueNotPlain, match="a value to filter by is not plain"):
        FilteringData.of([{1}])


@pytest.mark.parametrize("listening_ids", ["source", []])
def test_a_build_side_without_a_listener_is_refused(listening_ids: Any) -> None:
    with pytest.raises(FilteringMisconfigured, match="name at least one listener, in a list"):
        DynamicFilteringProvider(BUILD, listening_ids)
