"""Commits and the work after them, in a world as in a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import Committables, Committer
from epochgate.runtime.testing.worlds.searching import Found
from epochgate.testing import World, simulate
from tests.worlds.counting import Counting, CountingProvider, Listing


def found_by(body: Callable[[World], None], runs: int) -> Found:
    return simulate(body).simulation.search().at_random(runs, 0)


class ShownBefore(Committer):
    """Says of each checkpoint that an earlier commit has shown it."""

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        return False


def test_what_a_committer_returns_reaches_the_machine() -> None:
    def body(world: World) -> None:
        job = world.job(CountingProvider(Counting), operators=Listing, committer=ShownBefore)
        job.checkpoint()

    found = found_by(body, 1)
    assert found.failure is None
    taken = {row.trigger for machine, _, row in found.taken if machine == "committer"}
    assert "already_committed" in taken
    assert "committed" not in taken


def test_the_work_after_commits_is_done_whatever_goes_wrong() -> None:
    def body(world: World) -> None:
        seen: list[int] = []
        job = world.job(
            CountingProvider(Counting),
            operators=Listing,
            committer=ShownBefore,
            after_commit=lambda checkpoint, _: seen.append(checkpoint),
        )
        for _ in range(3):
            job.checkpoint()
        world.calm()
        newest = job.checkpoint().result(0)
        assert newest in seen
        assert [one for n, one in enumerate(seen) if one not in seen[:n]] == sorted(set(seen))

    assert found_by(body, 100).failure is None


def test_the_work_after_the_commits_of_a_pipeline_is_done() -> None:
    def body(world: World) -> None:
        table: dict[int, list[Any]] = {}
        seen: list[int] = []
        pipeline = Pipeline(
            source=FunctionSource([0, 10], lambda first: range(first, first + 3)),
            sink=table.__setitem__,
            after_commit=lambda checkpoint, _: seen.append(checkpoint),
        )
        world.pipeline(pipeline, checkpoint_every_s=1.0)
        world.move(5)
        world.calm()
        assert table
        assert set(table) <= set(seen)

    assert found_by(body, 100).failure is None
