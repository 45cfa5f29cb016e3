"""A savepoint: whole in its place or not there, and what begins with it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import msgpack
import pytest

from epochgate.runtime.objects import log
from epochgate.runtime.observing import history_files
from epochgate.runtime.requests import place as requests
from epochgate.runtime.savepoints import (
    CheckpointsNotFresh,
    NoSavepoint,
    SavepointFailed,
    SavepointIncomplete,
    SavepointOfAnotherJob,
    SavepointPlaceTaken,
    begin_from,
    default_place,
    read_savepoint,
    write_savepoint,
)
from epochgate.runtime.savepoints.asking import NothingToCopy, ask_savepoint, copy_newest
from epochgate.runtime.store import (
    CheckpointDamaged,
    CheckpointNotStorable,
    CheckpointShelf,
    CheckpointStore,
    CheckpointStoreInUse,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
    ObjectCheckpointStore,
    encoding,
    objects,
    parts,
)
from epochgate.runtime.store.inspection import SAVEPOINT_NAME
from tests.runtime.objects.stores import Memory
from tests.runtime.store.mediums import JOB, checkpoint_of

SEGMENT = "known-files/one.segment"
URL = "s3://bucket/jobs/orders"
FILES = {SEGMENT: b"known"}


@pytest.fixture(params=["directory", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Memory]:
    where = str(tmp_path / "a" / "savepoint") if request.param == "directory" else f"{URL}.sp/1"
    return where, Memory()


def test_it_holds_the_checkpoint_and_its_files(place: tuple[str, Memory]) -> None:
    where, memory = place
    written = write_savepoint(where, checkpoint_of(7), FILES.__getitem__, open_objects=memory.open)
    assert (written.path, written.job_id, written.checkpoint_id) == (where, JOB, 7)
    assert written.size_bytes > len(b"known")
    read = read_savepoint(where, open_objects=memory.open)
    assert read.checkpoint == dataclasses.replace(checkpoint_of(7), begun_from=written.savepoint_id)
    assert read.read_file(SEGMENT) == b"known"


def test_it_is_never_written_over_anything(place: tuple[str, Memory]) -> None:
    where, memory = place
    first = write_savepoint(where, checkpoint_of(7), FILES.__getitem__, open_objects=memory.open)
    with pytest.raises(SavepointPlaceTaken, match="is there already"):
        write_savepoint(where, checkpoint_of(8), FILES.__getitem__, open_objects=memory.open)
    kept = read_savepoint(where, open_objects=memory.open).checkpoint
    assert kept.begun_from == first.savepoint_id


def test_one_that_was_cut_off_is_none(place: tuple[str, Memory]) -> None:
    where, memory = place
    with pytest.raises(SavepointIncomplete, match=r"known-files/one\.segment.*cannot be read"):
        write_savepoint(where, checkpoint_of(7), _gone, open_objects=memory.open)
    with pytest.raises(NoSavepoint, match="may have been cut off"):
        read_savepoint(where, open_objects=memory.open)


def _gone(name: str) -> bytes:
    raise FileNotFoundError(2, "No such file or directory", name)


def test_a_disk_that_refuses_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(SavepointFailed, match="File name too long"):
        write_savepoint(str(tmp_path / ("x" * 300)), checkpoint_of(7), FILES.__getitem__)


def test_a_checkpoint_whose_files_were_not_noted_makes_none(tmp_path: Path) -> None:
    older = dataclasses.replace(checkpoint_of(7), files=None)
    with pytest.raises(SavepointIncomplete, match="earlier epochgate"):
        write_savepoint(str(tmp_path / "x"), older, FILES.__getitem__)
    assert os.listdir(tmp_path) == []


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    where = tmp_path / "x"
    write_savepoint(str(where), checkpoint_of(7), FILES.__getitem__)
    (where / "savepoint.epochgate").write_bytes(b"")
    with pytest.raises(CheckpointDamaged):
        read_savepoint(str(where))


def stores(tmp_path: Path, job_id: str = JOB) -> dict[str, CheckpointStore]:
    return {
        "directory": DirectoryCheckpointStore(tmp_path / "fresh", job_id=job_id),
        "objects": ObjectCheckpointStore(Memory().open(URL), job_id=job_id),
        "memory": InMemoryCheckpointStore(CheckpointShelf(), job_id=job_id),
    }


@pytest.mark.parametrize("medium", ["directory", "objects", "memory"])
def test_checkpoints_begin_with_it_and_go_on_after_it(tmp_path: Path, medium: str) -> None:
    where = str(tmp_path / "savepoint")
    written = write_savepoint(where, checkpoint_of(7), FILES.__getitem__)
    store = stores(tmp_path)[medium]
    begin_from(store, where)
    latest = store.latest()
    assert latest is not None
    assert (latest.checkpoint_id, latest.begun_from) == (7, written.savepoint_id)
    assert latest.subtasks == checkpoint_of(7).subtasks
    assert store.read_file(SEGMENT) == b"known"
    assert store.epoch == checkpoint_of(7).epoch + 1
    store.save(checkpoint_of(8))


@pytest.mark.parametrize("medium", ["directory", "objects", "memory"])
def test_the_same_start_goes_on_and_no_other_does(tmp_path: Path, medium: str) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    written = write_savepoint(one, checkpoint_of(7), FILES.__getitem__)
    write_savepoint(other, checkpoint_of(7), FILES.__getitem__)
    store = stores(tmp_path)[medium]
    begin_from(store, one)
    store.save(dataclasses.replace(checkpoint_of(8), begun_from=written.savepoint_id))
    begin_from(store, one)
    assert store.ids() == [7, 8]
    with pytest.raises(CheckpointsNotFresh, match="up to 8, which did not begin with") as caught:
        begin_from(store, other)
    assert caught.value.exit_code == 2
    assert store.ids() == [7, 8]


def test_checkpoints_that_began_with_nothing_do_not_go_back_to_one(tmp_path: Path) -> None:
    where = str(tmp_path / "savepoint")
    write_savepoint(where, checkpoint_of(7), FILES.__getitem__)
    store = stores(tmp_path)["memory"]
    store.save(dataclasses.replace(checkpoint_of(9), begun_from=""))
    with pytest.raises(CheckpointsNotFresh, match="up to 9"):
        begin_from(store, where)


@pytest.mark.parametrize("medium", ["directory", "objects", "memory"])
def test_another_job_does_not_begin_with_it(tmp_path: Path, medium: str) -> None:
    where = str(tmp_path / "savepoint")
    write_savepoint(where, checkpoint_of(7), FILES.__getitem__)
    store = stores(tmp_path, "payments")[medium]
    with pytest.raises(SavepointOfAnotherJob, match=r"'orders'.*'payments'"):
        begin_from(store, where)
    assert store.ids() == []


def test_of_two_that_begin_at_once_in_an_object_store_one_goes_on(tmp_path: Path) -> None:
    where, memory = str(tmp_path / "savepoint"), Memory()
    write_savepoint(where, checkpoint_of(7), FILES.__getitem__)
    early = ObjectCheckpointStore(memory.open(URL), job_id=JOB)
    late = ObjectCheckpointStore(memory.open(URL), job_id=JOB)
    begin_from(late, where)
    with pytest.raises(CheckpointStoreInUse, match="claimed by another driver"):
        begin_from(early, where)
    late.save(checkpoint_of(8))
    assert late.ids() == [7, 8]


@pytest.mark.parametrize("medium", ["directory", "objects"])
def test_of_a_job_that_has_ended_the_newest_whole_checkpoint_is_copied(
    tmp_path: Path, medium: str
) -> None:
    memory = Memory()
    where = str(tmp_path / "checkpoints") if medium == "directory" else URL
    store: CheckpointStore
    if medium == "directory":
        store = DirectoryCheckpointStore(where, job_id=JOB)
    else:
        store = ObjectCheckpointStore(memory.open(where), job_id=JOB)
    store.write_file(SEGMENT, b"known")
    for number in (1, 2):
        store.save(checkpoint_of(number))
    store.close()
    made = copy_newest(where, open_objects=memory.open)
    assert made.checkpoint_id == 2
    assert made.path.startswith(f"{where}.savepoints/000000000002-")
    read = read_savepoint(made.path, open_objects=memory.open)
    assert read.read_file(SEGMENT) == b"known"
    assert read.checkpoint.committables == checkpoint_of(2).committables


def test_a_copy_has_an_epoch_that_is_not_below_that_of_the_last_driver(tmp_path: Path) -> None:
    where = str(tmp_path / "checkpoints")
    with DirectoryCheckpointStore(where, job_id=JOB) as store:
        store.write_file(SEGMENT, b"known")
        store.save(dataclasses.replace(checkpoint_of(1), epoch=1))
    for _ in range(3):
        DirectoryCheckpointStore(where, job_id=JOB).close()
    made, is_of_running_job = ask_savepoint(where, timeout_s=60)
    assert not is_of_running_job
    assert read_savepoint(made.path).checkpoint.epoch == 4


def test_a_damaged_newest_is_passed_over_and_of_none_nothing_is_made(tmp_path: Path) -> None:
    where = tmp_path / "checkpoints"
    with DirectoryCheckpointStore(where, job_id=JOB) as store:
        store.write_file(SEGMENT, b"known")
        for number in (1, 2):
            store.save(checkpoint_of(number))
    (where / "checkpoint-000000000002.epochgate").write_bytes(b"")
    assert copy_newest(str(where)).checkpoint_id == 1
    (where / "checkpoint-000000000001.epochgate").write_bytes(b"")
    with pytest.raises(NothingToCopy, match="no whole checkpoint"):
        copy_newest(str(where))


@pytest.mark.parametrize(
    "name",
    [
        "claim.json",
        "driver.lock",
        "checkpoint-000000009999.epochgate",
        "savepoint.epochgate",
        f"{requests.FOLDER}/x.request",
        f"{history_files.FOLDER}/history.jsonl",
        f"{parts.FOLDER}/1-ab-0.part",
        f"{objects.FOLDER}/000000009999-1-ab.epochgate",
        f"{log.FOLDER}/000000000000001.json",
        f"{parts.FOLDER.upper()}/1-ab-0.part",
        "known-files/.hidden",
        "known-files/a\x1b[2J",
    ],
)
def test_files_of_a_savepoint_are_none_of_those_that_the_runtime_writes(
    tmp_path: Path, name: str
) -> None:
    whole = dataclasses.replace(checkpoint_of(7), files=[name])
    with pytest.raises(CheckpointNotStorable, match="a file in a folder"):
        write_savepoint(str(tmp_path / "refused"), whole, lambda _: b"")
    hostile = tmp_path / "hostile"
    write_savepoint(str(hostile), checkpoint_of(7), FILES.__getitem__)
    version, content = encoding.unseal((hostile / SAVEPOINT_NAME).read_bytes(), "savepoint")
    values = msgpack.unpackb(content, strict_map_key=False)
    content = msgpack.packb({**values, "files": [name]})
    (hostile / SAVEPOINT_NAME).write_bytes(encoding.seal(content, version))
    store = stores(tmp_path)["directory"]
    before = {path: path.read_bytes() for path in Path(store.path).rglob("*") if path.is_file()}
    with pytest.raises(CheckpointDamaged, match="a file in a folder"):
        begin_from(store, str(hostile))
    after = {path: path.read_bytes() for path in Path(store.path).rglob("*") if path.is_file()}
    assert after == before


def test_default_places_differ() -> None:
    assert default_place("/jobs/orders/", 3) != default_place("/jobs/orders/", 3)
