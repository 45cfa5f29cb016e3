"""Whatever a coordinator of a control, its check, or an enumerator of a streaming source raises:
the batch fails with type, file and line, and the next try loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime import CoordinatorContext
from epochgate.runtime.source import (
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.spark.streaming import Control
from tests.runtime import doors
from tests.runtime.at_door import Door
from tests.runtime.steering.coordinators import INITIAL, Lowering, Provider
from tests.runtime.steering.numbered import Numbers, are_at_least, driver, numbers
from tests.runtime.steering.steered import CONTROL, QUERY, entries_in

FILE = 'at_door.py", line '
RAISED = pytest.mark.parametrize("raised", doors.RAISED, ids=lambda kind: kind.__name__)


def tried(told: list[str], call: Callable[[], Any]) -> Any:
    """Call it, and once more if it fails as an error of epochgate's, whose text is kept."""
    try:
        return call()
    except EpochgateError as error:
        told.append(str(error))
        return call()


def insist_on_told(told: list[str], raised: type[BaseException]) -> None:
    [text] = told
    assert raised.__name__ in text
    assert FILE in text


def decided(folder: Path, door: Door, told: list[str]) -> list[int]:
    """The limits of three batches, of which another process decides the last, and an update."""

    def make(calls: list[Any], context: CoordinatorContext) -> Lowering:
        return door.of(Lowering, "chooser")(calls, context)

    def control() -> Control:
        return Control(
            CONTROL,
            INITIAL,
            store=str(folder),
            coordinator=Provider(door.function(make, "provider.create")),
            check=door.function(lambda value: value["limit"] > 0, "check"),
        )

    one, limits = tried(told, control), list[int]()
    for batch in range(3):
        if batch == 2:
            one.close()
            one = control()
        decision = tried(told, partial(one.decide, QUERY, batch))
        limits.append(decision.value["limit"])
    assert tried(told, partial(one.update, limit=500)) == 1
    one.close()
    return limits


@RAISED
@pytest.mark.parametrize("door", doors.STEERING)
def test_what_a_coordinator_of_a_control_or_its_check_raises_fails_one_batch(
    door: str, raised: type[BaseException], tmp_path: Path
) -> None:
    told: list[str] = []
    at = Door(door, raised)
    assert decided(tmp_path, at, told) == [899, 898, 897]
    assert at.has_raised
    if door != "chooser.close":  # it is over, and the log has it
        insist_on_told(told, raised)


def planned(folder: Path, door: Door, told: list[str]) -> list[list[int]]:
    """The splits of two batches, with a filter that leaves all, of which another process plans the
    last.
    """

    class Guarded(Numbers):
        def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
            door.come("source.create_enumerator")
            kind = door.of(SplitQueueEnumerator, "planner")
            look = door.function(self.look, "look")
            return kind(context, state, look, every_s=0.0)

    def judge(splits: Sequence[SourceSplit], by: SplitFilter) -> list[bool]:
        door.come("source.may_match")
        return are_at_least(splits, by)

    def newest() -> SplitFilter:
        return SplitFilter(1, "", {"least": 0})

    entries = entries_in(folder)
    for batch in (1, 2):
        one = driver(entries, Guarded(3), newest=newest, judge=judge)
        assert tried(told, partial(one.has_batch, batch))
        tried(told, one.close)
    return [numbers(one, batch) for batch in (1, 2)]


@RAISED
@pytest.mark.parametrize("door", doors.PLANNING)
def test_what_an_enumerator_of_a_streaming_source_raises_fails_one_plan(
    door: str, raised: type[BaseException], tmp_path: Path
) -> None:
    told: list[str] = []
    at = Door(door, raised)
    assert planned(tmp_path, at, told) == [[0, 1], [2]]
    assert at.has_raised
    insist_on_told(told, raised)
