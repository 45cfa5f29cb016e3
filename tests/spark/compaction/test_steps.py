"""The steps of a compaction, in the order in which the machine asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from epochgate.errors import UsageError
from epochgate.runtime.limited import CallLate, Limit, LimitedCalls
from epochgate.spark.compaction.errors import CompactionOvertaken
from epochgate.spark.compaction.plan import Merge, Plan, Wanted
from epochgate.spark.compaction.run import CompactionRun, _compacted
from epochgate.spark.parquet_sink.tree import VisibleFile
from tests.runtime.stalling import Stall


class Scripted:
    """A target in memory that does what it is told: how often its files have changed when they are
    to be exchanged, or merged where they are `gone`, and in which steps the disk fails.
    """

    target = "/data/out"
    built: Sequence[VisibleFile] = ()
    retired = 0

    def __init__(
        self,
        *,
        merges: int = 1,
        changes: int = 0,
        gone: int = 0,
        fails_in: str = "",
        error: type[Exception] = OSError,
        hangs_in: str = "",
    ) -> None:
        self.hangs_in = hangs_in
        self.stall: Callable[[], bool] = lambda: True
        self.planned = Plan(merges=(Merge("", 1, (), ()),) * merges)
        self._changes, self._gone = changes, gone
        self._fails_in, self._error = fails_in, error
        self.steps: list[str] = []

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self.hangs_in:
            self.stall()
        if name in self._fails_in.split():
            raise self._error(f"the disk fails in {name}")

    def open(self) -> None:
        self._step("open")

    def close(self) -> None:
        self._step("close")

    def plan(self) -> Plan:
        self._step("plan")
        return self.planned

    def stage(self) -> bool:
        self._step("stage")
        self._gone -= 1
        return self._gone < 0

    def exchange(self) -> bool:
        self._step("exchange")
        self._changes -= 1
        return self._changes < 0

    def discard(self) -> None:
        self._step("discard")

    def clean(self) -> None:
        self._step("clean")


def run(target: Scripted) -> LimitedCalls:
    """Compact it; the thread of its steps."""
    calls = LimitedCalls("compaction")
    CompactionRun(target, Limit("commit_timeout_s", 1.0), calls).run()
    return calls


def steps_of(target: Scripted) -> str:
    """Return what a compaction of it has done."""
    run(target)
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


def test_a_target_whose_files_go_while_they_are_merged_is_looked_at_again_three_times() -> None:
    again = "plan stage discard "
    assert steps_of(Scripted(gone=3)) == 3 * again + "plan stage exchange clean"
    target = Scripted(gone=4)
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
        run(target)
    assert " ".join(target.steps) == done


@pytest.mark.parametrize("error", [OSError, ValueError, UsageError])
def test_an_error_while_something_is_thrown_away_hides_no_other(error: type[Exception]) -> None:
    target = Scripted(changes=1, fails_in="discard", error=error)
    assert steps_of(target).endswith("plan stage exchange clean")
    with pytest.raises(CompactionOvertaken):
        run(Scripted(changes=4, fails_in="discard", error=error))
    with pytest.raises(error, match="the disk fails in stage"):
        run(Scripted(fails_in="stage discard", error=error))


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("open", "open"),
        ("plan", "open plan"),
        ("exchange", "open plan stage exchange"),
        ("discard", "open plan stage exchange discard"),
        ("clean", "open plan stage exchange clean"),
    ],
)
def test_a_step_that_hangs_ends_it_and_its_target_stays_locked(
    monkeypatch: pytest.MonkeyPatch, step: str, done: str
) -> None:
    target = Scripted(hangs_in=step, changes=step == "discard")
    target.stall = stall = Stall(monkeypatch)
    told = CompactionOvertaken if step == "discard" else CallLate
    with pytest.raises(told, match="/data/out"):
        _compacted(target, Wanted(1, 2, 3), Limit("commit_timeout_s", 1.0), is_dry_run=False)
    assert " ".join(target.steps) == done
    stall.goes_on.set()


def test_merging_has_no_limit_and_stays_on_its_thread() -> None:
    threads = []

    class Noting(Scripted):
        def stage(self) -> bool:
            threads.append(threading.current_thread())
            return True

        def clean(self) -> None:
            threads.append(threading.current_thread())

    run(Noting())
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()
