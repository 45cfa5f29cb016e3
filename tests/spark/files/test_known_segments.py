"""The list of known files is written in pieces: whatever happens, it comes back as it was, and a
checkpoint holds a bounded part of it.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.known import KnownFile, KnownFiles
from epochgate.spark.files.known_segments import KnownSegments, SegmentLost, SegmentNotWritten

FORGET_AFTER_S = 5.0


class CountingSegments(KnownSegments):
    """Counts the entries that are written."""

    entries_written = 0

    def write(self, entries):  # type: ignore[no-untyped-def]  # as its base
        self.entries_written += len(entries)
        return super().write(entries)


def plain(known: KnownFiles) -> dict[str, KnownFile]:
    files = {path: known.find(path) for path in known}
    return {path: file for path, file in files.items() if file is not None}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochgate.spark.files.known.RECENT_MAX", 4)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 30), st.integers(1, 9)),
            st.tuples(st.just("there"), st.sets(st.integers(0, 30)), st.just(0)),
            st.just(("restore", 0, 0)),
        ),
        max_size=60,
    )
)
@settings(max_examples=150)
def test_the_list_comes_back_as_it_was_however_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object, int]]
) -> None:
    segments = KnownSegments(tmp_path_factory.mktemp("known"))
    known, expected, now = KnownFiles(), {}, 0.0
    for kind, what, size in steps:
        now += 1
        if kind == "add":
            known.add(f"/{what}", KnownFile(Stamp(size, int(now)), size))
            expected[f"/{what}"] = KnownFile(Stamp(size, int(now)), size)
        elif kind == "there":
            assert isinstance(what, set)
            there = {f"/{number}" for number in what}
            known.note_gone(there, now, FORGET_AFTER_S)
            for path, file in list(expected.items()):
                if path in there:
                    expected[path] = KnownFile(file.stamp, file.checksum)
                elif file.gone_at is None:
                    expected[path] = KnownFile(file.stamp, file.checksum, gone_at=now)
                elif now - file.gone_at >= FORGET_AFTER_S:
                    del expected[path]
        else:
            known = KnownFiles.from_list(known.to_list(), segments)
        known.seal(segments)
        assert plain(known) == expected
        assert plain(KnownFiles.from_list(known.to_list(), segments)) == expected
        names = KnownFiles.segments_of(known.to_list())
        assert names.isdisjoint(known.superseded)
        assert names | set(known.superseded) <= set(segments.names())
        assert len(known.to_list()[1]) < 4


def test_segments_stay_few_and_an_entry_is_written_a_few_times(tmp_path: Path) -> None:
    segments = CountingSegments(tmp_path)
    known, count = KnownFiles(), 5000
    for number in range(count):
        known.add(f"/{number:08d}", KnownFile(Stamp(1, 1), 1))
        known.seal(segments)
    assert len(known.to_list()[0]) <= math.log2(count)
    assert segments.entries_written < count * math.log2(count)


def test_an_entry_is_written_as_often_in_a_long_list_as_in_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.known.SEGMENT_MAX", 256)
    known, segments, counts = KnownFiles(), CountingSegments(tmp_path), (1024, 16_384)
    for number in range(counts[-1]):
        known.add(f"/{number:08d}", KnownFile(Stamp(1, 1), 1))
        known.seal(segments)
        if number + 1 in counts:
            assert segments.entries_written <= 4 * (number + 1)
            assert all(count <= 256 for _, count, _ in known.to_list()[0])
    assert len(known.to_list()[0]) <= counts[-1] / 256 + math.log2(256)


def test_what_does_not_count_any_more_is_left_out_of_the_largest_segments_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochgate.spark.files.known.SEGMENT_MAX", 16)
    known, segments = KnownFiles(), CountingSegments(tmp_path)
    for touched in range(100):
        for number in range(64):
            known.add(f"/{number}", KnownFile(Stamp(1, touched), 1))
            known.seal(segments)
    assert sum(count for _, count, _ in known.to_list()[0]) <= 2 * 64 + 40
    assert segments.entries_written < 6 * 100 * 64
    assert plain(KnownFiles.from_list(known.to_list(), segments)) == plain(known)


def test_what_is_handed_over_is_as_long_as_what_is_new(tmp_path: Path) -> None:
    segments = KnownSegments(tmp_path)
    known = KnownFiles()
    for number in range(50):
        known.add(f"/{number}", KnownFile(Stamp(1, 1), 1))
    known.seal(segments)
    scout = known.copy()
    for step in range(3):
        scout.add(f"/new-{step}", KnownFile(Stamp(2, 2), 2))
        scout.note_gone(set(scout) - {f"/{step}"}, 10.0 * step, FORGET_AFTER_S)
        scout.seal(segments)
        changes = scout.take_changes()
        assert len(changes.files) <= 4
        known.adopt(changes)
        assert plain(known) == plain(scout)
        assert known.to_list() == scout.to_list()


def test_what_is_forgotten_leaves_the_disk_as_well(tmp_path: Path) -> None:
    segments = KnownSegments(tmp_path)
    known = KnownFiles()
    for batch in range(100):
        now = batch * 10.0
        paths = [f"/{batch}-{number}" for number in range(8)]
        for path in paths:
            known.add(path, KnownFile(Stamp(1, 1), 1))
        known.note_gone(paths, now, FORGET_AFTER_S)
        known.seal(segments)
        segments.remove(known.superseded)
        known.superseded.clear()
        assert len(known) <= 16
        kept, _ = known.to_list()
        assert sum(count for _, count, _ in kept) < 100
    assert len(segments.names()) == len(kept)


def test_a_segment_that_is_damaged_or_gone_is_named(tmp_path: Path) -> None:
    segments = KnownSegments(tmp_path)
    known = KnownFiles()
    for number in range(8):
        known.add(f"/{number}", KnownFile(Stamp(1, 1), 1))
    known.seal(segments)
    (name,) = segments.names()
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SegmentLost, match=f"{name}.*is damaged.*--checkpoint-dir"):
        KnownFiles.from_list(known.to_list(), segments)
    (tmp_path / name).unlink()
    with pytest.raises(SegmentLost, match=f"{name}.*No such file"):
        KnownFiles.from_list(known.to_list(), segments)


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    known = KnownFiles()
    for number in range(8):
        known.add(f"/{number}", KnownFile(Stamp(1, 1), 1))
    with pytest.raises(SegmentNotWritten, match="file"):
        known.seal(KnownSegments(tmp_path / "file"))
    assert len(known.to_list()[1]) == 8


# In an enumeration


def enumeration(tmp_path: Path, now: list[float]) -> FileEnumeration:
    return FileEnumeration(
        tmp_path / "in",
        follow=True,
        segments=KnownSegments(tmp_path / "known"),
        forget_after_s=FORGET_AFTER_S,
        now=lambda: now[0],
    )


def test_idle_looks_write_nothing_and_a_snapshot_holds_a_bounded_part(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(300):
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("a\n1\n")
        os.utime(path, (1, 1))
    files = enumeration(tmp_path, [1e9])
    assert len(files.discover()) == 300
    while files.next_split() is not None:
        pass
    files.seal()
    snapshot = files.snapshot()
    assert len(snapshot) < 1000
    before = sorted((tmp_path / "known").iterdir())
    for _ in range(3):
        assert files.discover() == []
        files.seal()
        assert files.snapshot() == snapshot
    assert sorted((tmp_path / "known").iterdir()) == before
    again = enumeration(tmp_path, [1e9])
    again.restore(snapshot)
    assert again.discover() == []
    assert len(again.seen) == 300


def test_a_file_that_is_gone_for_long_is_forgotten_and_one_that_comes_back_in_time_is_not(
    tmp_path: Path,
) -> None:
    now = [1e9]
    files = enumeration(tmp_path, now)
    paths = [tmp_path / "in" / f"{name}.csv" for name in ("stays", "returns", "goes")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_text("a\n1\n")
        os.utime(path, (1, 1))
    assert len(files.discover()) == 3
    for path in paths[1:]:
        path.rename(tmp_path / path.name)
    for now[0] in (1e9 + 1, 1e9 + 5):
        assert files.discover() == []
    (tmp_path / "returns.csv").rename(paths[1])
    now[0] = 1e9 + 6
    assert files.discover() == []
    assert {Path(path).stem for path in files.seen} == {"stays", "returns"}
    (tmp_path / "goes.csv").rename(paths[2])
    now[0] = 1e9 + 100
    assert [Path(split.path).stem for split in files.discover()] == ["goes"]
