"""Each ready suite finds a stranger's realistic bug within the runs of the ci profile, and passes
for its mended version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import strategies as st

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import Committables, Committer
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)
from epochgate.runtime.testing.worlds.report import report
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.testing import Vacuous, World, agree, read_once, simulate
from tests.worlds.counting import Counting, CountingOn, CountingProvider, CountingShort, Listing
from tests.worlds.rules import Applying, ForgetfulRules, Rules, RulesProvider

CI_RUNS = 4 * 300


def found_by(body: Callable[[World], Any], runs: int = CI_RUNS) -> Found:
    return simulate(body).simulation.search().at_random(runs, 0)


class Numbers(Source):
    """Ranges of numbers, a few at a time."""

    def __init__(
        self,
        last: int,
        enumerator: type[SplitQueueEnumerator] = SplitQueueEnumerator,
        behind: int = 0,
    ) -> None:
        self.last, self.enumerator, self.behind = last, enumerator, behind

    def look(self) -> list[SourceSplit]:
        return [SourceSplit(f"from {first}", first) for first in range(0, self.last, 4)]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return self.enumerator(context, state, self.look)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return NumberReader(self.behind)


class NumberReader(SourceReader):
    """Says where it is behind each number; with `behind`, where it was before."""

    def __init__(self, behind: int) -> None:
        self.behind = behind

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        for number in range(split.value if position is None else position, split.value + 4):
            yield Fetched([number], number + 1 - self.behind)


class PagedReader(SourceReader):
    """Reads two numbers from a page, and says of each where its page begins."""

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        for page in range(split.value if position is None else position, split.value + 4, 2):
            yield Fetched([page], page)
            yield Fetched([page + 1], page + 2)


class Paged(Numbers):
    """A source that is wrong in the middle of a page alone."""

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return PagedReader()


class Forgetting(SplitQueueEnumerator):
    """Drops what a reader had that failed."""

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        pass


def test_a_source_is_read_once() -> None:
    found = found_by(lambda world: read_once(world, Numbers(16), range(16)), 200)
    assert found.failure is None, found.failure.broken


@pytest.mark.parametrize(
    ("source", "claim", "shown"),
    [
        (Numbers(8, behind=1), "no record is committed twice", "too much: "),
        (Paged(8), "no record is committed twice", "too much: "),
        (Numbers(8, Forgetting), "every record is committed", "missing: "),
    ],
    ids=["position before the record", "position of the page", "splits that came back are dropped"],
)
def test_a_source_that_loses_or_repeats_is_found(source: Numbers, claim: str, shown: str) -> None:
    found = found_by(lambda world: read_once(world, source, range(8)))
    assert found.failure is not None
    assert found.failure.broken is not None
    assert claim in found.failure.broken.claim
    assert shown in found.failure.broken.detail
    assert str(found.failure.broken.place).startswith("tests/worlds/test_suites.py:")
    assert found.failure.faults == 1


class Single(Numbers):
    """Splits of one number each."""

    def look(self) -> list[SourceSplit]:
        return [SourceSplit(f"only {number}", number) for number in range(self.last)]

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return SingleReader()


class SingleReader(SourceReader):
    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        if position is None:
            yield Fetched([split.value], "behind it")


@pytest.mark.parametrize("source", [Numbers(16), Single(8)], ids=["of four", "of one"])
def test_readers_go_on_inside_splits_and_a_suite_without_that_is_vacuous(source: Numbers) -> None:
    def body(world: World) -> None:
        read_once(world, source, range(source.last))

    assert found_by(body, 20).never == []
    calm = simulate(body, faults=()).simulation
    with pytest.raises(Vacuous, match="sometimes: a reader continues inside a split"):
        calm.judge(calm.search().at_random(5, 0))


def test_a_report_names_the_splits_that_are_sent_and_the_positions_they_are_opened_at() -> None:
    source = Numbers(16, behind=1)
    found = found_by(lambda world: read_once(world, source, range(16)), 100)
    told = report("numbers", found)
    assert found.failure is not None
    assert "receives event with splits 'from 0'" in {each.text for each in found.failure.trace}
    assert "opens split 'from 0' at its beginning" in told
    assert re.search(r"opens split 'from \d+' at position \d+", told)


def test_a_report_shows_the_splits_that_came_back_and_what_the_enumerator_has() -> None:
    found = found_by(lambda world: read_once(world, Numbers(8, Forgetting), range(8)), 100)
    told = report("numbers", found)
    whole = report("numbers", found, is_whole=True)
    lost = re.search(r"calls Forgetting\.add_splits_back\(\['(from \d)'\], \d\)", told)
    assert lost is not None
    assert f": event with splits '{lost[1]}'" in whole, "it was sent to the task that has died"
    assert "  enumerator source  " in told
    assert "; splits = [];" in told


def test_a_report_shows_calls_around_faults_and_a_whole_one_all_of_them() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(ForgetfulRules), operators=Applying, subtasks=2)
        job.coordinator.change("b")
        world.move()
        job.kill(1)
        world.move(9)
        job.checkpoint()
        world.strike("late-snapshot")
        job.checkpoint()
        job.kill(0)
        world.calm()
        assert [task.rule for task in job.operators] == [job.coordinator.rule] * 2

    found = found_by(body, 1)
    told, whole = report("rules", found), report("rules", found, is_whole=True)
    assert len(told.splitlines()) <= 45
    assert "calls ForgetfulRules.execution_attempt_ready(1, 1)" in told
    assert "steps by the default schedule" in told
    assert found.failure is not None
    for shown in (
        *("sends to task 1: event [2, 'b']", "receives event [2, 'b']"),
        "calls ForgetfulRules.execution_attempt_failed(1, 0, 'a fault of the simulation')",
        *("calls ForgetfulRules.subtask_reset(1, 0)", "calls Applying.snapshot(1)"),
        "calls ForgetfulRules.execution_attempt_ready(1, 1)",
        *(happening.text for happening in found.failure.trace if len(happening.text) < 40),
    ):
        assert shown in whole
    assert "by the default schedule" not in whole


def rules(make: type[Rules]) -> Callable[[World], Any]:
    def body(world: World) -> None:
        agree(
            world,
            RulesProvider(make),
            Applying,
            act=lambda coordinator, text: coordinator.change(text),
            agrees=lambda coordinator, tasks: all(t.rule == coordinator.rule for t in tasks),
            values=st.lists(st.text("ab", max_size=3), max_size=4),
        )

    return body


def sums(kind: type[Counting], values: Any = (1, 2, 3)) -> Callable[[World], Any]:
    def body(world: World) -> None:
        agree(
            world,
            CountingProvider(kind),
            Listing,
            act=lambda coordinator, value: coordinator.send(),
            agrees=lambda coordinator, tasks: (
                [t.heard[-1:] for t in tasks]
                == [[sent] if sent else [] for sent in coordinator.sent]
            ),
            values=values,
        )

    return body


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(rules(Rules), rules(ForgetfulRules)), (sums(Counting), sums(CountingOn))],
    ids=["rules", "sums"],
)
def test_a_coordinator_and_its_operator_agree_or_the_suite_says_why(
    right: Callable[[World], Any], wrong: Callable[[World], Any]
) -> None:
    held = found_by(right, 200)
    assert held.failure is None, held.failure.broken
    found = found_by(wrong)
    assert found.failure is not None
    assert found.failure.broken is not None
    assert found.failure.faults <= 1
    first, *tasks = found.failure.own
    assert first.startswith("coordinator ")
    assert tasks == ["task[0]", "task[1]"]


class NeverCompleting(Rules):
    """Keeps the future of its checkpoint and forgets it."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.result = result


class AlwaysFailing(Rules):
    """Fails each of its checkpoints."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_exception(OSError("no state"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (NeverCompleting, "checkpoint 1: it took longer than 10 s"),
        (AlwaysFailing, "checkpoint 1: coordinator 'rules' has no snapshot: OSError('no state')"),
    ],
)
def test_a_job_without_a_completed_checkpoint_does_not_agree(
    make: type[Rules], reason: str
) -> None:
    found = found_by(rules(make), 20)
    assert found.failure is not None
    assert found.failure.broken is not None
    assert found.failure.broken.claim == "every checkpoint completes in a run without faults"
    assert f"checkpoint request 1 has failed: {reason}" in found.failure.broken.detail
    assert found.failure.deviations == []


def test_values_without_which_the_same_fault_strikes_the_same_call_are_left_out() -> None:
    found = simulate(rules(ForgetfulRules)).simulation.search().at_random(150, 300)
    assert found.first is not None
    assert found.failure is not None
    assert len(found.first.drawn[0][1]) > 1
    assert found.failure.drawn == [("values", [""])]
    assert found.failure.steps < 100


def test_faults_reach_the_end_of_a_long_run_although_the_first_draws_no_value() -> None:
    test = simulate(sums(CountingShort, st.lists(st.integers(1, 60), max_size=4)))
    search = test.simulation.search()
    found = search.scan(range(100))
    assert search.scan([]).steps < 100, "the first run has no checkpoint"
    assert found.first is not None
    alone = search.scan([found.seed]).first
    assert alone is not None
    assert alone.deviations == found.first.deviations


class Appending(Committer):
    """Appends what it is given to its table."""

    def __init__(self, table: list[tuple[int, Any]]) -> None:
        self.table = table

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        for rows in committables.values():
            self.table += [(checkpoint_id, row) for row in rows]


class Replacing(Appending):
    """Replaces what the table has of the checkpoint."""

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.table[:] = [row for row in self.table if row[0] != checkpoint_id]
        super().commit(checkpoint_id, committables)


def pipeline_into(kind: type[Appending]) -> Callable[[World], Any]:
    def body(world: World) -> None:
        table: list[tuple[int, Any]] = []
        pipeline = Pipeline(
            source=FunctionSource([0, 10, 20], lambda first: range(first, first + 3)),
            map=lambda batch: [number * 2 for number in batch],
            sink=kind(table),
        )
        world.pipeline(pipeline, subtasks=2, checkpoint_every_s=1.0)
        world.move(3)
        world.calm()
        rows = sorted(row for _, row in table)
        assert rows == [2 * (first + n) for first in (0, 10, 20) for n in range(3)]

    return body


def test_a_pipeline_is_right_from_end_to_end_or_its_commit_is_blamed() -> None:
    held = found_by(pipeline_into(Replacing), 150)
    assert held.failure is None, held.failure.broken
    found = found_by(pipeline_into(Appending))
    assert found.failure is not None
    assert len(found.failure.deviations) == 1
    assert found.failure.deviations[0].what in ("lose-commit-answer", "crash", "torn-write")
