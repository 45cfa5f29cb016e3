"""A source's operator reads its splits in turns, knows where it is in each, and asks for more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from epochgate.runtime import OperatorContext, Work
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceOperator,
    SourceReader,
    SourceSplit,
    SourceStateRefused,
    SplitAssignedTwice,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from epochgate.runtime.source.split import pack_splits
from tests.runtime.source.ranges import state_of


class WordReader(SourceReader):
    """A split's value lists what its iterator yields; the position is the index behind an item."""

    def __init__(self, context: ReaderContext) -> None:
        self.context = context
        self.opened: list[tuple[str, Any]] = []
        self.closed: list[str] = []
        self.heard: list[Any] = []
        self.state: Any = None

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        self.opened.append((split.split_id, position))
        try:
            for index, item in enumerate(split.value or []):
                if item is None:
                    yield None
                elif index >= (position or 0):
                    yield Fetched([item], index + 1, item if isinstance(item, int) else None)
        finally:
            self.closed.append(split.split_id)

    def handle_source_event(self, event: Any) -> None:
        self.heard.append(event)
        self.context.send_source_event(["heard", event])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.heard.append(checkpoint_id)

    def snapshot_state(self) -> Any:
        return self.state

    def restore_state(self, state: Any) -> None:
        self.state = state
        self.context.send_source_event(["restored", state])

    def close(self) -> None:
        self.closed.append("reader")


class WordSource(Source):
    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        raise NotImplementedError("splits come from the test")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        self.reader = WordReader(context)
        return self.reader


class Task:
    """An operator with what it says and emits."""

    def __init__(
        self, state: bytes | None = None, splits_ahead: int = 1, in_turns: bool = True
    ) -> None:
        self.source = WordSource()
        self.operator = SourceOperator(self.source, splits_ahead=splits_ahead, in_turns=in_turns)
        self.said: list[Any] = []
        self.records: list[Any] = []
        self.operator.open(OperatorContext("words", 1, 2, 3, "run", self.said.append), state)
        self.said.pop(0)

    @property
    def reader(self) -> WordReader:
        return self.source.reader

    def give(self, **splits: list[Any]) -> None:
        packed = pack_splits([SourceSplit(name, value) for name, value in splits.items()])
        self.operator.handle_event(["splits", packed])

    def step(self) -> Work:
        return self.operator.step(self.records.extend)

    def read_on(self) -> Work:
        while (work := self.step()) is Work.DONE:
            pass
        return work

    def positions(self) -> dict[str, Any]:
        return {s[0]: s[2] for s in msgpack.unpackb(self.operator.snapshot(1))[1]}

    def announced(self, limit: int | None) -> list[Any]:
        del self.said[:]
        self.operator.handle_event(["align", limit])
        return self.said


def test_a_reader_registers_before_it_says_anything_else() -> None:
    said: list[Any] = []
    operator = SourceOperator(WordSource())
    operator.open(OperatorContext("words", 1, 2, 3, "run", said.append), None)
    assert said[0][0] == "register"
    operator.step(lambda records: None)
    assert said[1:] == [["request"]]


def test_splits_are_read_in_turns_and_the_reader_ends_when_no_more_come() -> None:
    task = Task()
    assert task.step() is Work.IDLE
    task.give(a=["a1", "a2"], b=["b1"])
    assert task.read_on() is Work.IDLE
    assert task.records == ["a1", "b1", "a2"]
    task.operator.handle_event(["no more"])
    assert task.step() is Work.ENDED
    assert task.reader.closed == ["b", "a"]


def test_a_split_that_has_nothing_now_lets_the_others_go_first() -> None:
    task = Task()
    task.give(a=[None, None, "a1"], b=["b1", "b2"])
    task.operator.handle_event(["no more"])
    assert [task.step() for _ in range(2)] == [Work.DONE, Work.DONE]
    assert task.records == ["b1", "b2"]
    assert task.read_on() is Work.ENDED
    assert task.records == ["b1", "b2", "a1"]


def test_nothing_at_all_now_is_idle() -> None:
    task = Task()
    task.give(a=[None, "a1"])
    assert [task.step() for _ in range(2)] == [Work.IDLE, Work.DONE]


def test_one_split_ahead_is_asked_for_and_once() -> None:
    task = Task()
    task.step()
    task.step()
    assert task.said == [["request"]]
    task.give(a=["a1", "a2"])
    task.step()
    assert task.said == [["request"]] * 2
    task.give(b=["b1"])
    task.step()
    assert task.said == [["request"]] * 2, "one is read, one is ahead"
    task.read_on()
    assert task.said == [["request"]] * 3
    task.operator.handle_event(["no more"])
    task.read_on()
    assert task.said == [["request"]] * 3


def test_the_state_is_the_splits_at_hand_with_the_position_in_each() -> None:
    task = Task()
    task.give(a=["a1", "a2", "a3"], b=["b1"], c=["c1"])
    assert task.positions() == {"a": None, "b": None, "c": None}
    for _ in range(4):
        task.step()
    task.step()
    assert task.positions() == {"a": 2, "c": 1}
    restored = Task(task.operator.snapshot(1))
    restored.operator.handle_event(["no more"])
    assert restored.read_on() is Work.ENDED
    assert restored.records == ["a3"]
    assert dict(restored.reader.opened) == {"a": 2, "c": 1}


def test_the_position_moves_on_only_when_the_records_were_taken() -> None:
    task = Task()
    task.give(a=["a1", "a2"])
    task.step()

    def refuse(records: Any) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        task.operator.step(refuse)
    assert task.positions() == {"a": 1}


def test_a_piece_is_shown_until_it_is_taken_and_the_position_waits_for_that() -> None:
    task = Task()
    task.give(a=["a1", "a2"])
    for _ in range(2):
        fetched = task.operator.peek()
        assert fetched is not None
        assert fetched.records == ["a1"]
    assert task.positions() == {"a": None}
    task.operator.take()
    assert task.positions() == {"a": 1}
    assert task.step() is Work.DONE
    assert task.operator.peek() is None
    task.operator.handle_event(["no more"])
    assert task.operator.has_ended


def test_splits_may_be_read_one_after_the_other() -> None:
    task = Task(in_turns=False)
    task.give(a=["a1", "a2"], b=["b1", "b2"])
    task.read_on()
    assert task.records == ["a1", "a2", "b1", "b2"]


def test_the_reader_may_have_a_state_of_its_own() -> None:
    task = Task(state_of({"a": 1}))
    task.reader.state = {"met": ["x"]}
    restored = Task(task.operator.snapshot(1))
    assert restored.positions() == {"a": 1}
    assert restored.reader.state == {"met": ["x"]}
    assert restored.said == [["source event", ["restored", {"met": ["x"]}]]]


def test_source_events_and_checkpoints_reach_the_reader() -> None:
    task = Task()
    task.operator.handle_event(["source event", {"prune": 7}])
    task.operator.notify_checkpoint_complete(3)
    assert task.reader.heard == [{"prune": 7}, 3]
    assert task.said == [["source event", ["heard", {"prune": 7}]]]
    assert task.reader.context.attempt == 2


def test_closing_closes_the_splits_that_are_open_and_the_reader() -> None:
    task = Task()
    task.give(a=["a1", "a2"], b=["b1"])
    task.step()
    task.operator.close()
    assert task.reader.closed == ["a", "reader"]


def test_a_split_that_is_there_already_cannot_be_given() -> None:
    task = Task(state_of({"a": 1}))
    with pytest.raises(SplitAssignedTwice, match="reader 1 of 'words' was given split 'a'"):
        task.give(a=["a1"])


def test_a_position_must_be_there_and_plain() -> None:
    with pytest.raises(ValueError, match="2 records were fetched without a position"):
        Fetched([1, 2], None)
    task = Task(state_of({"a": 1}))
    task.operator._splits[0].position = {1, 2}
    with pytest.raises(ValueNotPlain, match=r"\[split id, split value, position\]"):
        task.operator.snapshot(1)


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(SourceStateRefused, match="reader 1 of 'words' has format 7, expected 1"):
        Task(msgpack.packb([7, []]))


def test_what_no_coordinator_sends_is_an_error() -> None:
    with pytest.raises(ValueError, match="no source's coordinator sends"):
        Task().operator.handle_event(["sing"])


# alignment


def test_a_split_above_the_limit_waits_until_the_limit_is_raised() -> None:
    task = Task()
    task.give(a=[10, 20, 30], b=[11, 12, 13, 14])
    task.announced(limit=15)
    assert task.read_on() is Work.IDLE
    assert task.records == [10, 11, 20, 12, 13, 14]
    task.announced(limit=29)
    assert task.read_on() is Work.IDLE
    assert task.records[6:] == [30]
    task.announced(limit=None)
    task.operator.handle_event(["no more"])
    assert task.read_on() is Work.ENDED


def test_the_least_watermark_of_the_splits_is_reported_and_repetition_is_not() -> None:
    task = Task()
    assert task.announced(limit=None) == [["watermark", None, True]]
    assert task.announced(limit=None) == []
    task.give(a=[10, 20, 30], b=[11, 12])
    assert task.announced(limit=None) == [], "nothing is known yet, and it is not idle"
    for _ in range(3):
        task.step()
    assert task.announced(limit=15) == [["watermark", 11, False]]
    assert task.announced(limit=15) == []
    task.step()
    assert task.announced(limit=15) == [["watermark", 12, False]]


def test_a_split_that_waits_for_the_limit_is_not_idle() -> None:
    task = Task()
    task.give(a=[10, 20, 30])
    task.step()
    assert task.announced(limit=5) == [["watermark", 10, False]]
    for _ in range(3):
        task.step()
        assert task.announced(limit=5) == [], "nothing else to report"
    assert task.records == [10]


def test_a_reader_without_anything_to_read_is_idle_one_announcement_later() -> None:
    task = Task()
    task.give(a=[10], b=[20, None, None, None, None])
    task.read_on()
    assert task.announced(limit=None) == [["watermark", 10, False]]
    assert task.announced(limit=None) == [["watermark", None, True]]


def test_a_split_that_waits_for_data_holds_no_other_back() -> None:
    task = Task()
    task.give(a=[10, *[None] * 9], b=[50, 60])
    task.step()
    task.step()
    assert task.announced(limit=None) == [["watermark", 10, False]]
    task.step()
    assert task.announced(limit=None) == [["watermark", 60, False]]


def test_a_reader_that_waits_and_has_read_all_can_end() -> None:
    task = Task()
    task.give(a=[10, 99])
    task.read_on()
    task.announced(limit=20)
    task.operator.handle_event(["no more"])
    assert task.step() is Work.ENDED
    assert task.announced(limit=20) == [["watermark", None, True]]
