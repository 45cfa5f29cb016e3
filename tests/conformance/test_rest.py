"""A job answers in the shape of the REST interface of a Flink that runs."""

from __future__ import annotations

import json

import pytest

from epochgate.jobs.flink import answer
from epochgate.jobs.seen import Job
from tests.browser.jobs import job
from tests.conformance.rest import GOLDEN, PATHS, Shape, running_flink, shapes

FLINK: dict[str, Shape] = json.loads(GOLDEN.read_text(encoding="utf-8"))
OF_FLINK_1 = {".root-exception", ".timestamp", ".all-exceptions", ".truncated"}
"""Names of Flink 1 for exceptions, for its scripts."""
UNKNOWN = {
    ".changelog_periodic_materialization_interval",
    ".changelog_storage",
    ".checkpoint_storage",
    ".checkpoints_after_tasks_finish",
    ".aligned_checkpoint_timeout",
    ".interval",
    ".max_concurrent",
    ".min_pause",
    ".state_backend",
    ".state_changelog_enabled",
    ".timeout",
    ".tolerable_failed_checkpoints",
    ".unaligned_checkpoints",
}
"""Settings of checkpoints that a history does not hold, or that epochgate does not have."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shape]:
    seen = Job(str(job(tmp_path_factory.mktemp("job"))))
    return shapes(lambda path: answer(seen, path), "a" * 32)


@pytest.mark.parametrize("path", PATHS)
def test_a_value_has_the_name_and_the_type_that_flink_gives_it(
    path: str, ours: dict[str, Shape]
) -> None:
    also = OF_FLINK_1 if path.endswith("exceptions") else set()
    named = {name for name in ours[path] if not name.startswith(tuple(also or "-"))}
    of_outcomes = {name for name in named if ".failed" in name or ".savepoint" in name}
    assert named - of_outcomes - set(FLINK[path]) - failures(named) == set()
    differs = {
        name: (ours[path][name], kind)
        for name, kind in FLINK[path].items()
        if ours[path].get(name, kind) != kind and "null" not in (ours[path][name], kind)
    }
    assert differs == {}


def failures(named: set[str]) -> set[str]:
    """The names that a failed checkpoint has: that job of Flink has none."""
    return {name for name in named if name.rpartition(".")[2].startswith("failure_")}


@pytest.mark.parametrize("path", PATHS)
def test_no_value_of_flinks_is_left_out_but_what_is_not_known(
    path: str, ours: dict[str, Shape]
) -> None:
    without = set(FLINK[path]) - set(ours[path])
    assert without == (UNKNOWN if path.endswith("checkpoints/config") else set())


@pytest.mark.conformance
def test_the_shape_that_is_recorded_is_that_of_a_running_flink() -> None:
    with running_flink() as (ask, job_id):
        assert shapes(ask, job_id) == FLINK
