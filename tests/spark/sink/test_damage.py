"""Damage to what a target keeps beside its rows is told with the file, and never believed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.runtime import OperatorContext, SinkStart
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.spark.counting_sink import CommittableUnreadable
from epochgate.spark.delta_sink import DeltaSink
from epochgate.spark.parquet_sink import ParquetSink, TargetDamaged, working_directory_of
from epochgate.spark.parquet_sink.manifests import manifest_path, read_manifest
from epochgate.spark.streaming.notes import DirectoryNotes, Note

FILES = LocalFileSystem()


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes() or b"x")
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe" * 9)


def other_json(path: Path) -> None:
    path.write_bytes(b'[{"run": 7}]')


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def removed(path: Path) -> None:
    path.unlink()


DAMAGES = [flipped, cut, emptied, no_text, other_json, deep, directory, link_to_itself, removed]


def written(sink: Any, committer: Any, run: str, columns: dict[str, list[int]]) -> list[Any]:
    """Return what one attempt hands over, after its coordinator has agreed to the schema."""
    asked: list[Any] = []
    writer = sink.create_writer(OperatorContext("sink", 0, 0, 1, run, asked.append), None)
    batch = pa.RecordBatch.from_pydict(columns)
    if not writer.may_write(batch):
        tells = getattr(committer.target, "told", tuple)
        writer.handle_event(["schema", asked[0][1], *tells()])
    writer.write(batch)
    handed_over: list[Any] = writer.prepare_commit(1)
    writer.close()
    return handed_over


def start(sink: Any, run: str, checkpoint: int) -> None:
    """One start of a job: claims, stages, commits and ends."""
    committer = sink.create_committer(SinkStart("job", run, checkpoint - 1 or None))
    try:
        committer.open(run, {})
        sink.create_coordinator("sink", committer)
        committables = {0: written(sink, committer, run, {"x": [checkpoint]})}
        committer.check(committables)
        committer.commit(checkpoint, committables)
    finally:
        committer.close()


def two_starts(sink: Any) -> None:
    for checkpoint in (1, 2):
        start(sink, f"r{checkpoint}", checkpoint)


PARQUET = [
    ".t.epochgate/manifests/checkpoint-000000000001.json",
    ".t.epochgate/manifests/checkpoint-000000000002.json",
    ".t.epochgate/owner.json",
    ".t.epochgate/target.json",
    ".t.epochgate/lock",
    "t/checkpoint=000000000002/*.parquet",
]
DELTA = ["t/_epochgate/job-*.json", "t/_epochgate/job-*.lock"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("make", "pattern"),
    [(ParquetSink, one) for one in PARQUET] + [(DeltaSink, one) for one in DELTA],
)
def test_a_start_on_a_damaged_target_goes_well_or_says_what_is_damaged(
    tmp_path: Path, make: Callable[[str], Any], pattern: str, damage: Callable[[Path], None]
) -> None:
    if make is DeltaSink:
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    two_starts(make(str(tmp_path / "t")))
    (path,) = tmp_path.glob(pattern)
    kept = path.read_bytes()
    damage(path)
    told = None
    try:
        start(make(str(tmp_path / "t")), "r3", 3)
    except EpochgateError as error:
        told = error
    if told is not None:
        assert str(tmp_path) in str(told)
        assert not isinstance(told, InvariantBroken)
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
        start(make(str(tmp_path / "t")), "r4", 3)


@pytest.mark.parametrize("make", [ParquetSink, DeltaSink])
def test_values_that_are_no_committables_are_refused_before_their_checkpoint_is_stored(
    tmp_path: Path, make: Callable[[str], Any]
) -> None:
    if make is DeltaSink:
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    committer = make(str(tmp_path / "t")).create_committer(SinkStart("job", "r1"))
    value: Any
    for value in (7, {}, [], [0, 0, 0, "../out", 1, 1, 1, "x"]):
        with pytest.raises(CommittableUnreadable, match="subtask 3 handed over"):
            committer.check({3: [value]})
    committer.close()


def test_no_flipped_bit_of_a_manifest_is_believed(tmp_path: Path) -> None:
    two_starts(ParquetSink(str(tmp_path / "t")))
    working = working_directory_of(tmp_path / "t")
    path = Path(manifest_path(working, 2))
    good, data = read_manifest(FILES, working, 2), path.read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert read_manifest(FILES, working, 2) == good, bit
        except TargetDamaged:
            continue


def test_files_of_an_earlier_release_have_no_checksum_and_are_taken(tmp_path: Path) -> None:
    two_starts(ParquetSink(str(tmp_path / "t")))
    working = Path(working_directory_of(tmp_path / "t"))
    for path in (working / "owner.json", *(working / "manifests").iterdir()):
        values, _, checksum = path.read_text().rpartition(', "crc32": ')
        assert checksum
        path.write_text(values + "}\n")
    start(ParquetSink(str(tmp_path / "t")), "r3", 3)


def test_what_a_job_knows_of_a_delta_table_may_be_removed(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    two_starts(DeltaSink(str(tmp_path / "t")))
    (path,) = tmp_path.glob("t/_epochgate/job-*.json")
    emptied(path)
    with pytest.raises(TargetDamaged, match="or remove it and start again"):
        start(DeltaSink(str(tmp_path / "t")), "r3", 3)
    removed(path)
    start(DeltaSink(str(tmp_path / "t")), "r4", 3)


@pytest.mark.parametrize("damage", DAMAGES[:-2])
def test_damaged_notes_of_queries_are_told(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    notes = DirectoryNotes(str(tmp_path))
    notes.exchange(notes.read(), {"query": Note("here")})
    assert notes.read().queries == {"query": Note("here")}
    damage(tmp_path / "queries.json")
    with pytest.raises(TargetDamaged, match=r"queries\.json"):
        notes.read()
