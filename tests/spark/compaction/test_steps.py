"""The steps of a compaction, in the order in which the machine asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from epochgate.errors import UsageError
from epochgate.spark.compaction.errors import CompactionOvertaken
from epochgate.spark.compaction.plan import Merge, Plan
from epochgate.spark.compaction.run import CompactionRun
from epochgate.spark.parquet_sink.tree import VisibleFile


class Scripted:
    """A target in memory that does what it is told: how often its files have changed when they are
    to be exchanged, and in which steps the disk fails.
    """

    target = "/data/out"
    built: Sequence[VisibleFile] = ()
    retired = 0

    def __init__(
        self,
        *,
        merges: int = 1,
        changes: int = 0,
        fails_in: str = "",
        error: type[Exception] = OSError,
    ) -> None:
        self.planned = Plan(merges=(Merge("", 1, (), ()),) * merges)
        self._changes, self._fails_in, self._error = changes, fails_in, error
        self.steps: list[str] = []

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self._fails_in.split():
            raise self._error(f"the disk fails in {name}")

    def open(self) -> None:
        self._step("open")

    def close(self) -> None:
        self._step("close")

    def plan(self) -> Plan:
        self._step("plan")
        return self.planned

    def stage(self) -> None:
        self._step("stage")

    def exchange(self) -> bool:
        self._step("exchange")
        self._changes -= 1
        return self._changes < 0

    def discard(self) -> None:
        self._step("discard")

    def clean(self) -> None:
        self._step("clean")


def steps_of(target: Scripted) -> str:
    """What a compaction of it has done."""
    CompactionRun(target).run()
    return " ".join(target.steps)


def test_what_is_planned_is_staged_exchanged_and_cleaned() -> None:
    assert steps_of(Scripted()) == "plan stage exchange clean"


def test_where_nothing_is_to_be_merged_what_was_left_is_cleaned() -> None:
    assert steps_of(Scripted(merges=0)) == "plan clean"


def test_a_target_that_has_changed_is_looked_at_again_three_times() -> None:
    again = "plan stage exchange discard "
    assert steps_of(Scripted(changes=1)) == again + "plan stage exchange clean"
    assert steps_of(Scripted(changes=3)) == 3 * again + "plan stage exchange clean"
    target = Scripted(changes=4)
    with pytest.raises(CompactionOvertaken, match="/data/out"):
        steps_of(target)
    assert " ".join(target.steps) == (4 * again).strip()


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("plan", "plan"),
        ("stage", "plan stage discard"),
        # What was staged may be the target by now.
        ("exchange", "plan stage exchange"),
        ("clean", "plan stage exchange clean"),
    ],
)
def test_an_error_ends_it_and_throws_away_only_what_no_reader_can_have_seen(
    step: str, done: str
) -> None:
    target = Scripted(fails_in=step)
    with pytest.raises(OSError, match=f"the disk fails in {step}"):
        CompactionRun(target).run()
    assert " ".join(target.steps) == done


@pytest.mark.parametrize("error", [OSError, ValueError, UsageError])
def test_an_error_while_something_is_thrown_away_hides_no_other(error: type[Exception]) -> None:
    target = Scripted(changes=1, fails_in="discard", error=error)
    assert steps_of(target).endswith("plan stage exchange clean")
    with pytest.raises(CompactionOvertaken):
        CompactionRun(Scripted(changes=4, fails_in="discard", error=error)).run()
    with pytest.raises(error, match="the disk fails in stage"):
        CompactionRun(Scripted(fails_in="stage discard", error=error)).run()
