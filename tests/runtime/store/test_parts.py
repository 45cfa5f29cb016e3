"""States in parts: a checkpoint writes what has changed, and each checkpoint is whole by itself."""

from __future__ import annotations

import doctest
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings, strategies as st

from epochgate.runtime.api import state_parts
from epochgate.runtime.api.state_parts import PartsDamaged, pack_parts, pieces_of, unpack_parts
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.savepoints import read_savepoint, write_savepoint
from epochgate.runtime.store import (
    CheckpointDamaged,
    CheckpointShelf,
    CheckpointStore,
    CheckpointStoreError,
    CheckpointStoreFull,
    CompletedCheckpoint,
    DirectoryCheckpointStore,
    InMemoryCheckpointStore,
    ObjectCheckpointStore,
    decode_checkpoint,
    encode_checkpoint,
    parts,
)
from epochgate.runtime.store.encoding import FORMAT_VERSION, parts_in, seal, unseal
from epochgate.runtime.store.inspection import stored_checkpoints
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.objects.stores import Memory
from tests.runtime.store.mediums import JOB

SIZE = parts.PART_BYTES_MIN
URL = "memory://checkpoints"


def bucket(number: int) -> bytes:
    return number.to_bytes(2, "big") * (SIZE // 2)


def state(*numbers: int) -> bytes:
    """Buckets with these contents, and one that is too small to be a part."""
    return pack_parts({"small": b"x", **{f"b{n}": bucket(v) for n, v in enumerate(numbers)}})


def checkpoint(number: int, *numbers: int) -> CompletedCheckpoint:
    return CompletedCheckpoint(
        number,
        JOB,
        "run",
        0.0,
        parallelism=2,
        coordinators={"op": state(*numbers[:1]), "none": None},
        subtasks={0: {"op": state(*numbers), "other": b"small"}, 1: {"op": b""}},
    )


class Medium:
    """A place for checkpoints, of each kind."""

    def __init__(self, kind: str, tmp_path: Path) -> None:
        self.kind, self.directory = kind, tmp_path / "checkpoints"
        self.shelf, self.memory = CheckpointShelf(), Memory()

    def open(self, retained: int = 3) -> CheckpointStore:
        if self.kind == "directory":
            return DirectoryCheckpointStore(self.directory, job_id=JOB, retained=retained)
        if self.kind == "objects":
            objects = self.memory.open(URL)
            return ObjectCheckpointStore(objects, job_id=JOB, retained=retained)
        self.shelf.end_driver()
        return InMemoryCheckpointStore(self.shelf, job_id=JOB, retained=retained)

    def parts(self) -> dict[str, bytes]:
        """The parts that are there, by name."""
        if self.kind == "directory":
            folder = self.directory / "parts"
            names = os.listdir(folder) if folder.exists() else []
            return {f"parts/{name}": (folder / name).read_bytes() for name in names}
        if self.kind == "objects":
            objects = self.memory.open(URL)
            return {name: objects.get(name) for name in objects.list("parts")}
        return {name: d for name, d in self.shelf.files.items() if name.startswith("parts/")}

    def put(self, name: str, data: bytes | None) -> None:
        """Change a part, or remove it."""
        if self.kind == "directory" and data is None:
            (self.directory / name).unlink()
        elif self.kind == "directory" and data is not None:
            (self.directory / name).write_bytes(data)
        elif self.kind == "objects" and data is not None:
            self.memory.open(URL).put(name, data)
        elif self.kind == "objects":
            self.memory.open(URL).delete(name)
        elif data is None:
            del self.shelf.files[name]
        else:
            self.shelf.files[name] = data


@pytest.fixture(params=["directory", "objects", "memory"])
def medium(request: pytest.FixtureRequest, tmp_path: Path) -> Medium:
    return Medium(request.param, tmp_path)


def values(medium: Medium) -> list[int]:
    """Return what the buckets that are kept by themselves have in them."""
    return sorted(int.from_bytes(data[:2], "big") for data in medium.parts().values())


@pytest.mark.parametrize("module", [state_parts, parts])
def test_the_examples_in_the_documentation_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.binary(max_size=9)))
def test_parts_come_back_as_they_went_in(given_ones: Mapping[str, bytes]) -> None:
    packed = pack_parts(given_ones)
    assert unpack_parts(packed) == given_ones
    assert b"".join(pieces_of(packed)) == packed
    assert len(pieces_of(packed)) == 1 + len(given_ones)


@given(st.binary(max_size=60), st.booleans())
def test_no_state_is_changed_by_cutting_it(data: bytes, is_marked: bool) -> None:
    data = state_parts.MAGIC + data if is_marked else data
    assert b"".join(pieces_of(data)) == data
    with suppress(PartsDamaged):
        unpack_parts(data)


def test_a_checkpoint_writes_the_parts_that_have_changed(medium: Medium) -> None:
    store = medium.open()
    first = store.save(checkpoint(1, 10, 11, 12))
    assert values(medium) == [10, 11, 12], "the coordinator has one of the same content"
    assert first.size_bytes > 3 * SIZE
    second = store.save(checkpoint(2, 10, 21, 12))
    assert values(medium) == [10, 11, 12, 21]
    assert SIZE < second.size_bytes < 2 * SIZE
    third = store.save(checkpoint(3, 10, 21, 12))
    assert third.size_bytes < SIZE, "nothing has changed"
    for number, buckets in ((1, (10, 11, 12)), (2, (10, 21, 12)), (3, (10, 21, 12))):
        assert store.load(number) == checkpoint(number, *buckets)


def test_a_part_goes_with_the_last_checkpoint_that_refers_to_it(medium: Medium) -> None:
    store = medium.open(retained=2)
    for number in range(1, 6):
        store.save(checkpoint(number, 7, 100 + number))
        assert values(medium) == [7, *range(max(101, 99 + number), 101 + number)]
    store.save(checkpoint(6, 1, 2))
    store.save(checkpoint(7, 1, 2))
    assert values(medium) == [1, 2]
    assert store.latest() == checkpoint(7, 1, 2)


def test_the_next_driver_refers_to_the_parts_of_the_checkpoint_it_restores(
    medium: Medium,
) -> None:
    store = medium.open()
    store.save(checkpoint(1, 10, 11))
    store.close()
    successor = medium.open()
    assert successor.latest() == checkpoint(1, 10, 11)
    info = successor.save(checkpoint(2, 10, 12))
    assert values(medium) == [10, 11, 12]
    assert info.size_bytes < 2 * SIZE
    for number in (3, 4):
        successor.save(checkpoint(number, 10, 12))
    assert values(medium) == [10, 12], "those of the driver before are removed like its own"
    assert successor.latest() == checkpoint(4, 10, 12)


def test_what_an_earlier_driver_may_remove_yet_is_not_referred_to(medium: Medium) -> None:
    """It was suspended between its save and the removal of what that retires."""
    store = medium.open()
    store.save(checkpoint(1, 10))
    before = set(medium.parts())
    store.save(checkpoint(2, 11))
    store.close()
    successor = medium.open()
    assert successor.latest() == checkpoint(2, 11)
    successor.save(checkpoint(3, 10))
    again = set(medium.parts()) - before
    for name in before:
        medium.put(name, None)
    assert successor.load(3) == checkpoint(3, 10)
    assert again, "the same content was written once more"


def test_what_a_driver_has_left_without_a_checkpoint_is_removed_by_the_next(
    medium: Medium,
) -> None:
    store = medium.open()
    store.save(checkpoint(1, 10))
    store.close()
    medium.put("parts/1-ab-77.part", b"left")
    foreign = "parts/a-file-of-someone"
    medium.put(foreign, b"kept")
    medium.open()
    left = medium.parts()
    assert foreign in left
    assert "parts/1-ab-77.part" not in left
    assert len(left) == 2


@pytest.mark.parametrize("harm", [None, b"", bucket(99)], ids=["gone", "empty", "another"])
def test_a_checkpoint_with_a_damaged_part_is_damaged_and_the_one_before_is_restored(
    medium: Medium, harm: bytes | None
) -> None:
    store = medium.open()
    store.save(checkpoint(1, 10))
    before = set(medium.parts())
    store.save(checkpoint(2, 10, 11))
    [harmed] = set(medium.parts()) - before
    medium.put(harmed, harm)
    with pytest.raises(CheckpointDamaged, match=f"its part '{harmed}' is not"):
        store.load(2)
    store.close()
    assert medium.open().latest() == checkpoint(1, 10)


def test_a_savepoint_has_all_parts_in_it(tmp_path: Path) -> None:
    store = DirectoryCheckpointStore(tmp_path / "checkpoints", job_id=JOB)
    store.save(checkpoint(1, 10, 11))
    write_savepoint(str(tmp_path / "savepoint"), store.load(1), store.read_file)
    assert os.listdir(tmp_path / "savepoint") == ["savepoint.epochgate"]
    kept = read_savepoint(str(tmp_path / "savepoint")).checkpoint
    assert kept.subtasks == checkpoint(1, 10, 11).subtasks


def test_those_who_look_from_outside_see_whole_checkpoints_and_their_parts(tmp_path: Path) -> None:
    medium = Medium("directory", tmp_path)
    store = medium.open()
    store.save(checkpoint(1, 10, 11))
    store.save(checkpoint(2, 10, 12))
    seen = stored_checkpoints(str(medium.directory))
    assert [one.load() for one in seen] == [checkpoint(1, 10, 11), checkpoint(2, 10, 12)]
    names = [{part.name for part in one.parts()} for one in seen]
    assert [len(each) for each in names] == [2, 2]
    assert len(names[0] & names[1]) == 1


def test_a_full_disk_leaves_no_part_behind_and_a_later_save_works(tmp_path: Path) -> None:
    files = FaultyFileSystem(LocalFileSystem())
    store = DirectoryCheckpointStore(tmp_path, job_id=JOB, file_system=files)
    store.save(checkpoint(1, 10))
    before = sorted(os.listdir(tmp_path / "parts"))
    for extra in range(12):
        files.fault = Fault(len(files.operations) + extra, "disk_full")
        with suppress(CheckpointStoreFull):
            store.save(checkpoint(2 + extra, 10, 20 + extra, 40 + extra))
        if store.last_id == 1:
            assert sorted(os.listdir(tmp_path / "parts")) == before
        files.free_space()
    assert store.last_id is not None
    assert store.last_id > 1
    store.save(checkpoint(50, 10, 11))
    assert store.latest() == checkpoint(50, 10, 11)


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_wherever_a_driver_dies_the_next_finds_a_whole_checkpoint(
    tmp_path: Path, when: str
) -> None:
    undisturbed = FaultyFileSystem(LocalFileSystem())
    assert save_all(tmp_path / "whole", undisturbed) == 5
    assert len(undisturbed.operations) > 40
    for at in range(len(undisturbed.operations)):
        directory = tmp_path / f"at-{at}"
        saved = save_all(directory, FaultyFileSystem(LocalFileSystem(), Fault(at, when=when)))  # type: ignore[arg-type]
        with DirectoryCheckpointStore(directory, job_id=JOB, retained=2) as store:
            last = store.last_id or 0
            assert last - saved in (0, 1), undisturbed.operations[at]
            latest = store.latest()
            assert latest == (checkpoint(last, 7, last) if last else None)
            store.save(checkpoint(last + 1, 7, last + 1))
            store.save(checkpoint(last + 2, 7, last + 2))
        kept = Medium("directory", tmp_path)
        kept.directory = directory
        assert values(kept) == sorted({7, last + 1, last + 2}), undisturbed.operations[at]


def save_all(directory: Path, files: FaultyFileSystem) -> int:
    """The last checkpoint that a driver knows to be saved until it dies."""
    saved = 0
    with suppress(SimulatedCrash):
        store = DirectoryCheckpointStore(directory, job_id=JOB, retained=2, file_system=files)
        for number in range(1, 6):
            store.save(checkpoint(number, 7, number))
            saved = number
    return saved


def test_a_checkpoint_in_parts_is_read_as_it_was_written_before() -> None:
    data = (Path(__file__).parent / "golden" / "in-parts-2.bin").read_bytes()
    [part] = parts_in(data, source="test")
    assert (part.name, part.length) == ("parts/3-ab-0.part", SIZE)
    read = decode_checkpoint(data, source="test", read_part={part.name: bucket(10)}.__getitem__)
    assert read == checkpoint(1, 10)
    writing = parts.Parts("3-ab").begin()
    assert encode_checkpoint(checkpoint(1, 10), writing.keep) == data


@given(st.binary(max_size=30), st.binary(max_size=40), st.integers(-5, 5))
@settings(max_examples=50)
def test_parts_that_make_no_sense_are_damage(name: bytes, digest: bytes, length: int) -> None:
    content = msgpack.unpackb(
        unseal(encode_checkpoint(checkpoint(1, 3)), "test")[1], strict_map_key=False
    )
    content["subtasks"][0]["op"] = [[name.decode("latin-1"), digest, length]]
    data = seal(msgpack.packb(content), FORMAT_VERSION)
    with pytest.raises(CheckpointStoreError):
        decode_checkpoint(data, source="test", read_part=lambda name: b"")
    with pytest.raises(CheckpointStoreError):
        parts_in(data, source="test")
