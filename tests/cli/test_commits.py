"""`epochgate commits`: what is in doubt is listed, committed through its sink, or given up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from epochgate import cli
from epochgate.runtime import CommitImpossible, Committables, Committer, Sink, SinkStart, SinkWriter
from epochgate.runtime.in_doubt import give_up, given_up_in
from epochgate.runtime.store import (
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    ObjectCheckpointStore,
)
from epochgate.runtime.store.checkpoint import committed_of, debts_of, in_doubt
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source

Capture = pytest.CaptureFixture[str]


def whole(number: int, uncommitted: dict[int, list[Any]], **more: Any) -> CompletedCheckpoint:
    return CompletedCheckpoint(
        number,
        "orders",
        "run-1",
        1_700_000_000.0,
        parallelism=2,
        coordinators={"source": b"state"},
        subtasks={0: {"source": b"a"}, 1: {"source": b"b"}},
        uncommitted=uncommitted,
        **more,
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "checkpoints"
    with DirectoryCheckpointStore(place, job_id="orders") as store:
        store.save(whole(6, {}))
        store.save(whole(7, {5: [[0, ["early"]]], 6: []}, committables={1: ["late"]}))
    return place


class Shelf(Sink):
    """A sink that keeps what is committed, over all its starts."""

    committed: ClassVar[dict[int, Committables]] = {}
    starts: ClassVar[list[SinkStart]] = []
    errors: ClassVar[list[Exception]] = []

    def create_writer(self, context: Any, state: bytes | None) -> SinkWriter:
        raise AssertionError("nothing is written")

    def create_committer(self, start: SinkStart) -> Committer:
        Shelf.starts.append(start)
        return ShelfCommitter()


class ShelfCommitter(Committer):
    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        if Shelf.errors:
            raise Shelf.errors.pop(0)
        is_new = checkpoint_id not in Shelf.committed
        Shelf.committed.setdefault(checkpoint_id, committables)
        return is_new


@pytest.fixture(autouse=True)
def empty_shelf() -> None:
    Shelf.committed.clear()
    Shelf.starts.clear()
    Shelf.errors.clear()


URL = "s3://bucket/jobs/orders"
SHELF = f"{__name__}:Shelf"


def newest(directory: Path) -> CompletedCheckpoint:
    with DirectoryCheckpointStore(directory, job_id="orders") as store:
        found = store.latest()
    assert found is not None
    return found


def test_what_is_in_doubt_is_listed_beside_a_job_that_runs(
    directory: Path, capsys: Capture
) -> None:
    with DirectoryCheckpointStore(directory, job_id="orders"):
        assert cli.main(["commits", "list", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("checkpoint 7 of job orders, taken ")
    assert [line.split() for line in lines[2:4]] == [["5", "-", "1", "-"], ["7", "-", "1", "-"]]
    assert cli.main(["commits", "show", str(directory), "7"]) == 0
    assert '"late"' in capsys.readouterr().out
    assert cli.main(["commits", "list", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoints"] == {
        "5": {"0": ["early"]},
        "7": {"1": ["late"]},
    }


def test_it_is_committed_in_order_as_the_next_start_would_and_only_once(
    directory: Path, capsys: Capture
) -> None:
    for expected in ("committed: checkpoints 5, 7, 2 committables", "nothing is in doubt"):
        assert cli.main(["commits", "commit", str(directory), "--sink", SHELF]) == 0
        assert expected in capsys.readouterr().out
    assert list(Shelf.committed.items()) == [(5, {0: ["early"]}), (6, {}), (7, {1: ["late"]})]
    assert [(one.job_id, one.restored_checkpoint) for one in Shelf.starts] == [("orders", 7)]
    after = newest(directory)
    assert (after.checkpoint_id, in_doubt(after)) == (8, {})
    assert after.coordinators == {"source": b"state"}
    assert sorted(debts_of(after)) == [5, 7], "the next start does the work after these commits"


def test_a_commit_that_cannot_be_done_stays_in_doubt_with_the_reason(
    directory: Path, capsys: Capture
) -> None:
    Shelf.errors.append(CommitImpossible("part 3 is gone"))
    assert cli.main(["commits", "commit", str(directory), "--sink", SHELF]) == 1
    said = capsys.readouterr().err
    assert "commit of checkpoints [5, 6, 7] is impossible: part 3 is gone" in said
    assert "It stays in doubt" in said
    assert (newest(directory).checkpoint_id, Shelf.committed) == (7, {})


def test_what_is_given_up_is_recorded_and_no_start_commits_it(
    directory: Path, capsys: Capture
) -> None:
    assert cli.main(["commits", "give-up", str(directory)]) == 2
    assert cli.main(["commits", "give-up", str(directory), "6"]) == 2
    assert "checkpoint 6 is not in doubt; in doubt are 5, 7" in capsys.readouterr().err
    assert cli.main(["commits", "give-up", str(directory), "5"]) == 0
    assert "given up: checkpoint 5. Lost unless they were committed before: 1 committables" in (
        capsys.readouterr().out
    )
    assert cli.main(["commits", "list", str(directory)]) == 0
    assert "given up" in capsys.readouterr().out
    assert cli.main(["commits", "commit", str(directory), "--sink", SHELF]) == 0
    assert list(Shelf.committed.items()) == [(6, {}), (7, {1: ["late"]}), (8, {})]
    assert [number for number, *_ in given_up_in(newest(directory))] == [5]


def test_what_a_target_lacks_is_given_up_without_what_is_in_doubt(
    directory: Path, capsys: Capture
) -> None:
    assert cli.main(["commits", "give-up", str(directory), "--after", "7"]) == 2
    assert "newest checkpoint in" in capsys.readouterr().err
    for words in (["5"], ["--all"]):
        assert cli.main(["commits", "give-up", str(directory), *words, "--after", "3"]) == 2
        assert "in a command of its own" in capsys.readouterr().err
    assert cli.main(["commits", "commit", str(directory), "--sink", SHELF, "--after", "3"]) == 2
    capsys.readouterr()
    assert cli.main(["commits", "give-up", str(directory), "--after", "3"]) == 0
    assert "what the target lacks of the checkpoints after 3, up to 7" in capsys.readouterr().out
    assert list(in_doubt(newest(directory))) == [5, 7]
    assert cli.main(["commits", "list", str(directory)]) == 0
    assert "what the target lacks after 3, up to 7" in capsys.readouterr().out
    assert cli.main(["commits", "commit", str(directory), "--sink", SHELF]) == 0
    assert [one.given_up for one in Shelf.starts] == [((3, 7),)]
    assert committed_of(newest(directory)) == {"": 7}
    assert cli.main(["commits", "give-up", str(directory), "--after", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["missing"] == {
        "after": 4,
        "upto": 9,
    }


def test_both_take_the_lock_of_a_driver(directory: Path, capsys: Capture) -> None:
    with DirectoryCheckpointStore(directory, job_id="orders"):
        for words in (["commit", "--sink", SHELF], ["give-up", "--all"]):
            assert cli.main(["commits", words[0], str(directory), *words[1:]]) != 0
            assert "is in use by" in capsys.readouterr().err
    assert Shelf.committed == {}
    assert newest(directory).checkpoint_id == 7


def test_without_its_sink_nothing_is_committed_and_the_message_says_what_to_give(
    directory: Path, capsys: Capture
) -> None:
    assert cli.main(["commits", "commit", str(directory)]) == 2
    assert "give --target" in capsys.readouterr().err
    assert cli.main(["commits", "commit", str(directory), "--sink", f"{__name__}:SHELF"]) == 2
    assert "expected a Sink" in capsys.readouterr().err


def test_checkpoints_in_an_object_store_are_settled_alike() -> None:
    objects = Memory().open(URL)
    store = ObjectCheckpointStore(objects, job_id="orders")
    store.save(whole(7, {5: [[0, ["early"]]]}, committables={1: ["late"]}))
    older = ObjectCheckpointStore(objects, job_id="orders")
    assert give_up(older, [5], 1_700_000_001.0) == {5: {0: ["early"]}}
    again = ObjectCheckpointStore(objects, job_id="orders").latest()
    assert again is not None
    assert (again.checkpoint_id, in_doubt(again)) == (8, {7: {1: ["late"]}})


@pytest.mark.parametrize("how", ["commit", "give-up"])
def test_an_ingestion_goes_on_behind_what_was_settled(
    tmp_path: Path, capsys: Capture, how: str
) -> None:
    rows = write_source(tmp_path)
    job = SimulatedIngest(options_for(tmp_path))
    job.blocking.hanging.add("commit")
    job.run(until=lambda: job.machines.lifecycle.state == "finishing")
    assert visible(tmp_path / "out") == []
    job.files.crash()
    target = str(tmp_path / "out")
    words = [how, target] if how == "commit" else [how, target, "--all"]
    assert cli.main(["commits", *words]) == 0
    said = capsys.readouterr().out
    assert f"with {len(rows)} rows" in said
    again = SimulatedIngest(options_for(tmp_path), name="again")
    again.run()
    assert again.leave().state == "finished"
    assert visible(tmp_path / "out") == (rows if how == "commit" else [])
