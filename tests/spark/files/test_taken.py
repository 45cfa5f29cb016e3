"""Files are recorded once all their splits are held, and no checkpoint grows with the records."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.files.content import Stamp
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.split import FileSplit
from epochgate.spark.files.taken import EndedSplit, Merge, TakenFile, TakenFiles


def split(number: int, start: int, *, parts: int = 3) -> FileSplit:
    end = min(start + 10 // parts + 1, 10)
    return FileSplit(f"/{number:03}", "csv", "none", 10, 7, start, end, etag="e")


def splits(number: int) -> list[FileSplit]:
    return [split(number, start) for start in (0, 4, 8)]


def ended(one: FileSplit, *, is_part: bool = False) -> EndedSplit:
    return EndedSplit(one, 2, 1, is_part)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochgate.spark.files.taken.RECENT_MAX", 4)
    monkeypatch.setattr("epochgate.spark.files.taken.SEGMENT_MAX", 40)


def test_a_file_is_recorded_with_the_checkpoint_of_its_last_split() -> None:
    taken = TakenFiles()
    for one in splits(1):
        taken.give_out(one, 0)
    first, second, third = splits(1)
    assert taken.hold(ended(second), 1, 100.0) is None
    assert taken.hold(ended(first, is_part=True), 2, 101.0) is None
    assert taken.open == {("/001", 1): 4}
    taken = TakenFiles.from_list(taken.to_list())
    assert taken.hold(ended(first), 3, 102.0) is None, "it is held already"
    record = taken.hold(ended(third), 3, 103.0)
    assert record == TakenFile("/001", 1, Stamp(10, 7, "e"), 6, 3, True, 0, 3, 103.0)
    assert taken.open == {}
    assert taken.hold(ended(third), 4, 104.0) is None, "a reader that went back says it again"
    assert list(taken.records(None)) == [record]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("read"), st.integers(1, 9)),
            st.sampled_from([("begin", 0), ("end", 0), ("restore", 0), ("find", 2)]),
        ),
        max_size=40,
    )
)
@settings(max_examples=200)
def test_every_file_has_one_record_in_order_however_they_are_kept(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    segments = KnownSegments(tmp_path_factory.mktemp("known"))
    taken, number = TakenFiles(), 0
    expected: list[str] = []
    begun: Merge | None = None
    for kind, count in steps:
        if kind == "read":
            for _ in range(count):
                number += 1
                for one in splits(number):
                    taken.give_out(one, 0)
                    taken.hold(ended(one), number, float(number))
                expected.append(f"/{number:03}")
        elif kind == "find":
            scout = TakenFiles()
            scout.note_without_rows(f"empty-{number}", 1, Stamp(5, 1), 1.0)
            taken.take_over(scout)
            expected.append(f"empty-{number}")
        elif kind == "begin":
            begun = taken.begin_to_merge() or begun
        elif kind == "end" and begun is not None:
            taken.keep(begun.write(segments))
            begun = None
        elif kind == "restore":
            taken, begun = TakenFiles.from_list(taken.to_list()), None
        for same in (taken, taken.copy(), TakenFiles.from_list(taken.to_list())):
            assert [record.path for record in same.records(segments)] == expected
        needed = TakenFiles.segments_of(taken.to_list())
        assert needed.isdisjoint(taken.superseded)
        assert needed | set(taken.superseded) <= set(segments.names())


def test_a_checkpoint_grows_by_a_name_for_as_many_files_as_a_segment_has(tmp_path: Path) -> None:
    segments, taken = KnownSegments(tmp_path), TakenFiles()
    named = []
    for number in range(400):
        for one in splits(number):
            taken.give_out(one, 0)
            taken.hold(ended(one), number, 1.0)
        merge = taken.begin_to_merge()
        if merge is not None:
            taken.keep(merge.write(segments))
        kept, recent, opened = taken.to_list()
        assert len(recent) < 4
        assert opened == []
        named.append(len(kept))
    assert named[-1] <= 400 // 40 + 6
    assert len(list(taken.records(segments))) == 400
