"""The work of an enumerator in a streaming query is done at triggers, and not before its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime.source import (
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from epochgate.runtime.source.batches.enumerating import BatchEnumerator
from tests.runtime.doors import RAISED
from tests.runtime.steering.numbered import are_at_least, at_most

Asking = Callable[["Asker"], None]


class Asker(SplitEnumerator):
    """Asks for work when it starts, and notes when that is done."""

    def __init__(self, context: SplitEnumeratorContext, source: Timed) -> None:
        self.context, self.source = context, source

    def start(self) -> None:
        self.source.ask(self)

    def work(self) -> None:
        """Takes two seconds, and fails if the source does."""
        self.source.called.append(self.source.now)
        self.source.now += self.source.takes_s
        if self.source.fails:
            raise ConnectionError("too many requests")

    def handle_split_request(self, subtask: int) -> None:
        pass

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        raise AssertionError("what was given out stays in its plan")

    def add_reader(self, subtask: int) -> None:
        pass

    def snapshot_state(self, checkpoint_id: int) -> Any:
        return None


class Timed(Source):
    """A source with a clock of its own, in seconds."""

    def __init__(self, ask: Asking, takes_s: float = 0.0) -> None:
        self.ask, self.takes_s = ask, takes_s
        self.now, self.fails = 0.0, False
        self.called: list[float] = []

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return Asker(context, self)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        raise NotImplementedError

    def triggered(self, *moments: float, looks: bool = True) -> list[float]:
        """The moments at which work was done, where Spark asks for batches at these moments."""
        enumerator = BatchEnumerator(self, None, at_most(9), are_at_least, lambda: self.now)
        enumerator.looks = looks
        for moment in moments:
            self.now = max(self.now, moment)
            enumerator.take(None)
        return self.called


def poll(asker: Asker) -> None:
    """Work that is asked for again when it has ended, as by a source that backs off."""
    asker.context.call_async(asker.work, lambda _: poll(asker), delay_s=30.0)


def test_work_with_a_delay_is_not_done_at_each_trigger() -> None:
    source = Timed(poll)
    enumerator = BatchEnumerator(source, None, at_most(9), are_at_least)
    for _ in range(5):
        enumerator.take(None)
    assert source.called == []


def test_work_is_done_at_the_first_trigger_behind_its_delay() -> None:
    assert Timed(poll).triggered(0, 29, 30, 31, 59, 62, 70, 91, 92) == [30, 62, 92]


def test_the_time_between_two_runs_counts_from_the_end_of_the_first() -> None:
    def ask(asker: Asker) -> None:
        asker.context.call_async(asker.work, lambda _: None, delay_s=1.0, every_s=5.0)

    assert Timed(ask, takes_s=2.0).triggered(0, 1, 6, 7.9, 8, 14, 15) == [1, 8, 15]


def test_work_without_times_is_done_once_and_with_a_time_of_none_at_each_trigger() -> None:
    def ask(asker: Asker) -> None:
        asker.context.call_async(asker.work, lambda _: None)

    def ask_often(asker: Asker) -> None:
        asker.context.call_async(asker.work, lambda _: None, every_s=0.0)

    assert Timed(ask).triggered(1, 2, 3) == [1]
    assert Timed(ask_often).triggered(1, 2, 3) == [1, 2, 3]


@pytest.mark.parametrize("raised", RAISED, ids=lambda kind: kind.__name__)
def test_whatever_work_raises_is_the_enumerators_to_judge(raised: type[BaseException]) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        raise raised("no")

    source = Timed(lambda asker: asker.context.call_async(work, print, on_error=errors.append))
    source.triggered(0)
    assert [type(error) for error in errors] == [raised]


def test_what_has_failed_is_done_again_when_its_time_has_come() -> None:
    errors: list[BaseException] = []

    def ask(asker: Asker) -> None:
        asker.context.call_async(asker.work, lambda _: None, on_error=errors.append, every_s=5.0)

    source = Timed(ask)
    source.fails = True
    assert source.triggered(0, 1, 5, 6) == [0, 5]
    assert len(errors) == 2


@pytest.mark.parametrize("every_s", [None, 0.0, 30.0])
def test_where_only_what_is_there_is_wanted_the_first_look_is_not_delayed_and_is_the_only_one(
    every_s: float | None,
) -> None:
    def ask(asker: Asker) -> None:
        asker.context.call_async(asker.work, lambda _: None, delay_s=30.0, every_s=every_s)

    assert Timed(ask).triggered(1, 2, 99, looks=False) == [1]
    assert Timed(poll).triggered(1, 2, looks=False) == [1]
