"""State belongs to an operator's id: it survives a new name, and is never left behind unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit, Setting
from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    JobMisconfigured,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    StateWithoutOperator,
    Work,
)
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.store import CheckpointShelf
from epochgate.testing import SimulatedJob

LAST = 40


def read(first: int) -> range:
    return range(first, first + 5)


def cut(batch: list[int], limit: int) -> list[int]:
    return [n for n in batch if n < limit]


def cut_again(batch: list[int], most: int) -> list[int]:
    return cut(batch, most)


def stopped(shelf: CheckpointShelf) -> None:
    """A pipeline that was given another limit, and stopped before it has read anything."""
    job = SimulatedJob.of(
        Pipeline(
            source=FunctionSource(range(0, LAST, 5), read, batch_records=1),
            map=cut,
            sink=lambda checkpoint, numbers: None,
            coordinators=[Setting("limit", LAST), RateLimit(None)],
        ),
        shelf=shelf,
    )
    job.flow(held=("work",))
    job.master.request("limit", ["set", 7])
    job.flow(held=("work",))
    job.master.stop()
    job.settle(until=lambda: job.is_over)
    shelf.end_driver()


def going_on(
    shelf: CheckpointShelf,
    setting: Setting,
    map: Callable[..., list[int]],
    *,
    parallelism: int = 1,
    allow: Collection[str] = (),
) -> list[int]:
    """Return what the next start, with other code, writes."""
    written: dict[int, list[int]] = {}
    job = SimulatedJob.of(
        Pipeline(
            source=FunctionSource(range(0, LAST, 5), read, batch_records=1),
            map=map,
            sink=written.__setitem__,
            coordinators=[setting],
        ),
        shelf=shelf,
        parallelism=parallelism,
        allow_dropped_state=allow,
    )
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    return sorted(n for numbers in written.values() for n in numbers)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_setting_that_was_renamed_keeps_its_value_by_its_id(parallelism: int) -> None:
    shelf = CheckpointShelf()
    stopped(shelf)
    renamed = Setting("most", LAST, operator_id="limit")
    found = going_on(shelf, renamed, cut_again, parallelism=parallelism, allow=["rate_limit"])
    assert found == list(range(7))


def test_without_its_id_the_start_is_refused_and_both_sides_are_listed() -> None:
    shelf = CheckpointShelf()
    stopped(shelf)
    with pytest.raises(StateWithoutOperator) as caught:
        going_on(shelf, Setting("most", LAST), cut_again)
    told = str(caught.value)
    assert "holds state of operators 'limit' (2 B), 'rate_limit' (2 B)" in told
    assert "its operators are 'most', 'sink', 'source'" in told
    assert "--allow-dropped-state limit --allow-dropped-state rate_limit" in told
    assert caught.value.exit_code == 2


def test_what_is_named_is_left_behind_and_what_is_not_refuses_the_start() -> None:
    shelf = CheckpointShelf()
    stopped(shelf)
    with pytest.raises(StateWithoutOperator, match=r"operators 'rate_limit' \(2 B\), which"):
        going_on(shelf, Setting("most", LAST), cut_again, allow=["limit"])
    shelf.end_driver()
    both = ["limit", "rate_limit"]
    assert going_on(shelf, Setting("most", 3), cut_again, allow=both) == [0, 1, 2]
    shelf.end_driver()
    # The next checkpoint does not hold it any more, and the same command may be repeated: it
    # commits the restored checkpoint again.
    assert going_on(shelf, Setting("most", 3), cut_again, allow=both) == [0, 1, 2]


def test_state_of_an_operator_that_is_there_is_not_dropped() -> None:
    shelf = CheckpointShelf()
    stopped(shelf)
    with pytest.raises(JobMisconfigured, match=r"names \['limit'\], and the job has operators"):
        going_on(shelf, Setting("limit", LAST), cut, allow=["limit", "rate_limit"])


def test_a_text_is_no_list_of_ids() -> None:
    with pytest.raises(JobMisconfigured, match="give a list of operator ids"):
        JobConfiguration("job", 1, allow_dropped_state="limit")


class Count(Operator):
    def __init__(self, has_state: bool) -> None:
        self.n, self._has_state = 0, has_state

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.n = int.from_bytes(state or b"", "big")

    def snapshot(self, checkpoint_id: int) -> bytes:
        return self.n.to_bytes(1, "big") if self._has_state else b""


class Counting(Program):
    """Counts to five in an operator of each id."""

    def __init__(self, ids: Collection[str], has_state: bool) -> None:
        self.counts = {name: Count(has_state) for name in ids}

    @property
    def operators(self) -> dict[str, Operator]:
        return dict(self.counts)

    def work(self) -> Work:
        for count in self.counts.values():
            count.n += 1
        return Work.DONE if max(count.n for count in self.counts.values()) < 5 else Work.ENDED


def counted(
    shelf: CheckpointShelf,
    ids: Collection[str],
    *,
    allow: Collection[str] = (),
    has_state: bool = True,
    providers: tuple[CoordinatorProvider, ...] = (),
) -> SimulatedJob:
    job = SimulatedJob(
        lambda start: JobConfiguration(
            "job", 1, providers, allow_dropped_state=allow, restart_strategy=NoRestart()
        ),
        lambda subtask: Counting(ids, has_state),
        shelf=shelf,
    )
    job.settle(until=lambda: job.is_over)
    shelf.end_driver()
    return job


def test_a_task_refuses_state_that_none_of_its_operators_has() -> None:
    shelf = CheckpointShelf()
    assert counted(shelf, ["a", "b"]).result.state == "finished"
    result = counted(shelf, ["b", "c"]).result
    assert result.state == "failed"
    told = str(result.reason)
    assert "checkpoint 1 of subtask 0 holds state of operators 'a' (1 B)" in told
    assert "its operators are 'b', 'c'" in told
    assert counted(shelf, ["b", "c"], allow=["a"]).result.state == "finished"


def test_the_order_of_operators_and_their_classes_do_not_count() -> None:
    shelf = CheckpointShelf()
    counted(shelf, ["a", "b"])

    class Renamed(Count):
        """Another class, which reads the same state."""

    job = SimulatedJob(
        lambda start: JobConfiguration("job", 1),
        lambda subtask: _with(Renamed, ["b", "a"]),
        shelf=shelf,
    )
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"


def _with(kind: type[Count], ids: Collection[str]) -> Counting:
    program = Counting(ids, True)
    program.counts = {name: kind(True) for name in ids}
    return program


def test_an_operator_without_state_leaves_nothing_behind() -> None:
    shelf = CheckpointShelf()
    counted(shelf, ["a", "b"], has_state=False)
    assert counted(shelf, ["b"], has_state=False).result.state == "finished"


class Keeper(OperatorCoordinator):
    def start(self) -> None:
        """Nothing to begin."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"kept")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Nothing to go back to."""


class KeeperProvider(CoordinatorProvider):
    operator_id = "keeper"

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        return Keeper()


def test_a_coordinator_that_is_gone_leaves_state_behind_too() -> None:
    shelf = CheckpointShelf()
    counted(shelf, ["a"], providers=(KeeperProvider(),))
    with pytest.raises(StateWithoutOperator, match=r"operators 'keeper' \(4 B\)"):
        counted(shelf, ["a"])
    shelf.end_driver()
    assert counted(shelf, ["a"], allow=["keeper"]).result.state == "finished"
