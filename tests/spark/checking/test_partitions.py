"""A search over partitions finds what a search on one machine finds, whatever it is cut into."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from epochgate.benchmarks.independent import Ring, Table, Track
from epochgate.exit_codes import ExitCode
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.resuming import CannotResume
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.reference import Reference
from epochgate.spark.checking import check_on_spark, tasks
from epochgate.spark.checking.folder import Folder
from epochgate.spark.checking.levels import LevelDamaged
from epochgate.spark.checking.search import SearchFailed
from epochgate.spark.checking.store import Store
from tests.agreement.searching import without_promises
from tests.checker import small_systems as small
from tests.checker.beginnings import TokenRing
from tests.checker.broken import LateAcknowledgement, NoValve
from tests.checker.choices import Lamps, Market
from tests.spark.checking.alike import found
from tests.spark.checking.one_process import Killed, Rows, session

pytestmark = pytest.mark.filterwarnings("error")
STATES, TRANSITIONS = 12_256, 50_778
SMALL = {"N": 2, "C": 2, "K": 1, "E": 1, "F": 1}


@pytest.fixture(params=["local", "yarn"])
def anywhere(request: pytest.FixtureRequest, three: Any) -> Any:
    """A session on one host, whose memory is shared, or on several."""
    three.sparkContext.master = request.param
    return three


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Any:
    return session(monkeypatch, 3)


@pytest.mark.parametrize(
    ("system", "symmetry"),
    [
        (Reference(**SMALL), False),
        (Reference(**SMALL), True),
        (small.House(), False),
        (small.Counting(), False),
        (small.NeverThere(), False),
        (TokenRing(), False),
        (Market(), False),
        (Lamps(), True),
    ],
    ids=lambda value: getattr(type(value), "__name__", "") if value else "",
)
def test_counts_are_those_of_one_machine(
    anywhere: Any, tmp_path: Path, system: Any, symmetry: bool
) -> None:
    system = without_promises(system)
    apart = check_on_spark(anywhere, system, directory=tmp_path, symmetry=symmetry)
    alone = check(system, symmetry=symmetry)
    assert found(apart) == found(alone)
    assert (apart.engine, apart.workers) == ("spark", 3)


@pytest.mark.parametrize(
    ("system", "left"),
    [(Table(places=8), 184), (Ring(members=5), 15), (Track(), 21)],
    ids=lambda value: type(value).__name__ if isinstance(value, ClosedSystem) else "",
)
def test_a_reduced_space_is_that_of_one_machine(
    anywhere: Any, tmp_path: Path, system: Any, left: int
) -> None:
    apart = check_on_spark(anywhere, system, directory=tmp_path, partial_order=True)
    alone = check(system, partial_order=True)
    assert found(apart) == found(alone)
    assert (apart.states, apart.left_out) == (left, alone.left_out)
    again = check_on_spark(anywhere, system, directory=tmp_path, partial_order=True)
    assert (found(again), again.left_out) == (found(alone), alone.left_out)
    with pytest.raises(CannotResume, match="its states or its claims are others"):
        check_on_spark(anywhere, system, directory=tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize(
    "system",
    [
        LateAcknowledgement(C=1),
        NoValve(),
        small.OutOfRange(),
        small.Overflowing(),
        small.Starved(),
        small.Refusing(),
        small.Deadlocked(),
        small.RaisingProperty(),
    ],
    ids=lambda system: type(system).__name__,
)
def test_a_violation_is_found_as_soon_as_on_one_machine(three: Any, system: Any) -> None:
    system = without_promises(system)
    apart, alone = check_on_spark(three, system), check(system)
    assert alone.verdict is Verdict.FAIL
    assert found(apart) == found(alone)


def test_a_violation_is_told_alike_in_every_run(three: Any) -> None:
    one, two = (check_on_spark(three, LateAcknowledgement(C=1)) for _ in range(2))
    assert one.counterexample == two.counterexample


@pytest.mark.extended
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_a_stopped_search_goes_on_over_its_own_partitions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, three: Any, cores: int
) -> None:
    system = Reference(**SMALL)
    first = check_on_spark(three, system, directory=tmp_path, max_depth=9)
    assert (first.verdict, first.depth) == (Verdict.BOUNDED, 9)
    later = check_on_spark(session(monkeypatch, cores), system, directory=tmp_path)
    assert found(later) == found(check(system))
    assert json.loads((tmp_path / "search.json").read_bytes())["parts"] == 3
    again = check_on_spark(three, system, directory=tmp_path)
    assert found(again) == found(later)


@pytest.mark.extended
@pytest.mark.parametrize("error", [Killed, OSError])
@pytest.mark.parametrize(
    ("method", "after"),
    [("enter", 3), ("enter", 40), ("have_numbers", 60), ("_send_boxes", 31), ("examine", 30)],
)
def test_a_task_that_ended_in_the_middle_is_made_up_for(
    three: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    after: int,
    error: type[Exception],
) -> None:
    """The keeper of its partition may be gone with what it had, or go on with a part of a level."""
    usual, calls = getattr(Store, method), []

    def interrupted(store: Store, *arguments: Any, **options: Any) -> Any:
        calls.append(store)
        if len(calls) == after:
            raise error
        return usual(store, *arguments, **options)

    system = Reference(**SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(Store, method, interrupted)
        # Keepers outlive the driver.
        patch.setattr(tasks, "dismiss", lambda _settings, _partition: None)
        with pytest.raises(error):
            check_on_spark(three, system, directory=tmp_path)
    assert found(check_on_spark(three, system, directory=tmp_path)) == found(check(system))


def test_tasks_that_run_again_change_nothing(three: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark runs a task again whose output was lost; its store is then further than the level."""
    usual_spread, usual_settle = tasks.spread_partition, tasks.settle_partition

    def spread(*arguments: Any) -> Any:
        yield from [*usual_spread(*arguments)][:0]
        yield from usual_spread(*arguments)

    def settle(settings: Any, partition: int, rows: Any) -> Any:
        kept = [*rows]
        yield from [*usual_settle(settings, partition, iter(kept))][:0]
        yield from usual_settle(settings, partition, iter(kept))

    monkeypatch.setattr(tasks, "spread_partition", spread)
    monkeypatch.setattr(tasks, "settle_partition", settle)
    system = Reference(N=1, C=2, K=2, E=1, F=1)
    assert found(check_on_spark(three, system)) == found(check(system))


def test_a_host_without_memory_ends_the_search_before_an_answer(
    three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def free() -> int:
        looks.append(0)
        return 1 << 40 if len(looks) < 90 else 5 << 20

    monkeypatch.setattr("epochgate.spark.checking.store.free_bytes", free)
    monkeypatch.setattr("epochgate.spark.checking.store.LOOK_EVERY_S", -1.0)
    result = check_on_spark(three, Reference(**SMALL))
    assert result.verdict is Verdict.BOUNDED
    assert "5 MiB of memory are left on a host" in result.stopped


@pytest.mark.parametrize(
    ("budget", "reason"),
    [({"max_states": 500}, "500 states"), ({"max_seconds": 0.0}, "0 seconds")],
)
def test_budgets_stop_it(three: Any, budget: dict[str, Any], reason: str) -> None:
    result = check_on_spark(three, Reference(**SMALL), **budget)
    assert result.verdict is Verdict.BOUNDED
    assert reason in result.stopped


def test_a_damaged_level_is_told_with_its_file(three: Any, tmp_path: Path) -> None:
    check_on_spark(three, Reference(**SMALL), directory=tmp_path, max_depth=6)
    part = next(tmp_path.glob("level-00003.part-*"))
    data = bytearray(part.read_bytes())
    data[0] ^= 1
    part.write_bytes(data)
    with pytest.raises(LevelDamaged, match=part.name):
        check_on_spark(three, Reference(**SMALL), directory=tmp_path)


def test_another_system_does_not_go_on_from_it(three: Any, tmp_path: Path) -> None:
    check_on_spark(three, Reference(**SMALL), directory=tmp_path, max_depth=2)
    with pytest.raises(CannotResume, match="is a search of Reference"):
        check_on_spark(three, small.House(), directory=tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(CannotResume, match="no directory of a search"):
        check_on_spark(three, small.House(), directory=other)


def test_files_of_a_level_that_was_not_completed_are_removed(three: Any, tmp_path: Path) -> None:
    check_on_spark(three, Reference(**SMALL), directory=tmp_path, max_depth=4)
    left = tmp_path / "level-00005.part-00000.000000000000abcd"
    left.write_bytes(b"left by a killed task")
    check_on_spark(three, Reference(**SMALL), directory=tmp_path, max_depth=4)
    assert not left.exists()


def test_runs_without_end_are_refused(three: Any) -> None:
    live: type[ClosedSystem] = small.PoliteHouse
    with pytest.raises(CannotCheck, match="without a Spark master"):
        check_on_spark(three, live)


def test_a_cluster_needs_a_directory(three: Any) -> None:
    three.sparkContext.master = "spark://host:7077"
    with pytest.raises(CannotCheck, match="--resume DIR"):
        check_on_spark(three, small.House)


def test_memory_that_a_killed_search_has_left_is_given_back() -> None:
    left, used = Folder("left-by-a-killed-one"), Folder("in-use-by-a-living-one")
    (left.path / "part-0.pool").write_bytes(b"states")
    left.close()
    mine = Folder("of-the-next-search")
    assert [folder.path.exists() for folder in (left, used, mine)] == [False, True, True]
    for folder in (used, mine):
        folder.remove()
        folder.close()


def test_a_search_that_failed_names_a_directory_only_if_that_is_kept(
    three: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(rows: Rows) -> list[Any]:
        raise RuntimeError("the executors are gone")

    monkeypatch.setattr(Rows, "collect", lost)
    with pytest.raises(SearchFailed, match=re.escape(f"--resume {tmp_path} goes on")) as failed:
        check_on_spark(three, Reference(**SMALL), directory=tmp_path)
    assert failed.value.exit_code == ExitCode.RUN_FAILED
    with pytest.raises(SearchFailed, match="nothing of it is kept; give a directory with --resume"):
        check_on_spark(three, Reference(**SMALL))
