"""Files that were left out are kept however many they are, and no checkpoint grows with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.files import FileEnumeration, SkippedFile
from epochgate.spark.files.kept import segments_in
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.skipped import SkippedFiles
from epochgate.spark.ingest.file_source import FileReader


def left_out(number: int, reason: str = "not a number") -> SkippedFile:
    """The rest of a split, for even numbers of a file as a whole."""
    path = f"/{number:03}"
    split = path if number % 2 == 0 else f"{path}#bytes=0-9"
    return SkippedFile(path, split, "byte 3", reason)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochgate.spark.files.skipped.RECENT_MAX", 4)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 30), st.sampled_from("ab")),
            st.tuples(st.just("find"), st.integers(0, 30), st.sampled_from("ab")),
            st.sampled_from([("begin", 0, ""), ("end", 0, ""), ("restore", 0, "")]),
        ),
        max_size=60,
    )
)
@settings(max_examples=200)
def test_all_come_back_in_their_latest_form_however_they_were_kept(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]]
) -> None:
    segments = KnownSegments(tmp_path_factory.mktemp("known"))
    skipped, expected = SkippedFiles(), dict[object, SkippedFile]()
    begun: list[object] | None = None
    for kind, number, reason in steps:
        one = left_out(number, reason)
        # A scout finds files as a whole alone.
        if kind == "add" or (kind == "find" and number % 2 == 0):
            expected[(number, reason) if number % 2 == 0 else number] = one
        if kind == "add":
            skipped.add(one)
        elif kind == "find" and number % 2 == 0:
            scout = SkippedFiles()
            scout.add(one)
            scout.seal(segments)
            skipped.take_over(scout)
        elif kind == "begin" and begun is None:
            begun = skipped.begin_to_keep()
        elif kind == "end" and begun is not None:
            skipped.keep(segments.write(begun))
            begun = None
        elif kind == "restore":
            skipped, begun = SkippedFiles.from_list(skipped.to_list(), segments), None
        restored = SkippedFiles.from_list(skipped.to_list(), segments)
        for same in (skipped, restored, skipped.copy()):
            assert sorted(same, key=str) == sorted(expected.values(), key=str)
            assert len(same) == len(expected)
        assert SkippedFiles.segments_of(skipped.to_list()) <= set(segments.names())


def test_a_checkpoint_does_not_grow_with_the_files_that_were_left_out(tmp_path: Path) -> None:
    segments = KnownSegments(tmp_path / "known")
    source = tmp_path / "in"
    source.mkdir()
    enumeration = FileEnumeration(source, follow=True, settle_s=0, segments=segments)
    sizes = []
    for number in range(64):
        enumeration.skipped.add(left_out(number, "a long reason " * 10))
        enumeration.seal()
        sizes.append(len(enumeration.snapshot()))
    assert len(enumeration.skipped) == 64
    assert sizes[-1] < sizes[3] + 16 * 80  # a name for each four, in place of some 700 bytes
    assert segments_in(enumeration.snapshot()) == set(segments.names())
    again = FileEnumeration(source, follow=True, settle_s=0, segments=segments)
    again.restore(enumeration.snapshot())
    assert list(again.skipped) == list(enumeration.skipped)


def test_how_often_the_list_has_changed_says_whether_it_is_another() -> None:
    skipped = SkippedFiles()
    skipped.add(left_out(1))
    before = skipped.changes
    skipped.add(left_out(1))
    assert skipped.changes == before
    skipped.add(left_out(1, "another"))
    assert skipped.changes > before


def test_a_reader_keeps_what_it_met_until_a_checkpoint_has_it() -> None:
    told: list[list[str]] = []
    reader = FileReader(lambda _: pytest.fail("nothing is read"), lambda: 1, told.append)
    first, second = left_out(1).to_list(), left_out(3).to_list()
    assert reader.snapshot_state() is None
    reader.restore_state([first])
    assert told == [first], "the coordinator of that checkpoint may not have heard of it"
    assert reader.snapshot_state() == [first], "of a checkpoint that is aborted"
    state = reader.snapshot_state()
    reader.restore_state([second])
    reader.notify_checkpoint_complete(2)
    assert state == [first]
    assert reader.snapshot_state() == [second]
    reader.notify_checkpoint_complete(3)
    assert reader.snapshot_state() is None
