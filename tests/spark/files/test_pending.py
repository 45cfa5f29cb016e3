"""Splits that wait are given out in their order, and a checkpoint does not grow with them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.files.pending import Part, PendingSplits
from epochgate.spark.files.split import FileSplit


def split(number: int) -> FileSplit:
    half = number % 2
    return FileSplit(f"/{number // 2}", "csv", "none", 10, 1, 5 * half, 5 * half + 5)


def numbers(pending: PendingSplits) -> list[int]:
    return [2 * int(one.path[1:]) + one.start // 5 for one in pending]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("known", "pending"):
        monkeypatch.setattr(f"epochgate.spark.files.{module}.RECENT_MAX", 4)
    monkeypatch.setattr("epochgate.spark.files.pending.SEGMENT_MAX", 8)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("find"), st.integers(1, 20), st.booleans()),
            st.tuples(st.just("take"), st.integers(1, 20), st.booleans()),
            st.sampled_from([("begin", 0, False), ("end", 0, False), ("restore", 0, False)]),
        ),
        max_size=40,
    )
)
@settings(max_examples=200)
def test_every_split_is_given_out_once_in_its_order_however_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bool]]
) -> None:
    segments = KnownSegments(tmp_path_factory.mktemp("known"))
    pending, expected, found = PendingSplits(), list[int](), 0
    begun: list[tuple[Part, list[object]]] = []
    for kind, count, is_sealed in steps:
        if kind == "find":
            scout = PendingSplits()
            scout.append([split(number) for number in range(found, found + count)])
            if is_sealed:
                scout.seal(segments)
            pending.take_over(scout)
            expected += range(found, found + count)
            found += count
        elif kind == "take":
            taken = [one for one in (pending.next() for _ in range(count)) if one is not None]
            assert taken == [split(number) for number in expected[:count]]
            if is_sealed:
                pending.give_back(taken)
            else:
                del expected[:count]
        elif kind == "begin":
            one = pending.begin_to_keep()
            begun += [] if one is None else [one]
        elif kind == "end" and begun:
            part, values = begun.pop(0)
            pending.keep(part, segments.write(values))
        elif kind == "restore":
            pending, begun = PendingSplits.from_list(pending.to_list(), segments), []
        assert numbers(pending) == expected
        restored = PendingSplits.from_list(pending.to_list(), segments)
        assert numbers(restored) == expected
        for same in (pending, restored, pending.copy()):
            assert same.files_waiting == Fraction(len(expected), 2)
            assert same.bytes_waiting == 5 * len(expected)
        needed = PendingSplits.segments_of(pending.to_list())
        assert needed.isdisjoint(pending.superseded)
        assert needed | set(pending.superseded) <= set(segments.names())


def test_a_checkpoint_does_not_grow_with_the_files_that_wait(tmp_path: Path) -> None:
    def size_with(files: int) -> int:
        source = tmp_path / f"in-{files:04}"
        source.mkdir()
        for number in range(files):
            (source / f"{number:04}.csv").write_text("a\n1\n")
        enumeration = FileEnumeration(source, segments=KnownSegments(tmp_path / "known"))
        enumeration.discover()
        enumeration.seal()
        assert len(enumeration.pending) == files
        return len(enumeration.snapshot())

    assert size_with(64) < size_with(8) + 8 * 70  # a name for each eight files


def test_what_an_earlier_release_has_kept_waits_in_its_order(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("a\n1\n")
    enumeration = FileEnumeration(tmp_path)
    found = enumeration.discover()
    version, source, first, layouts, known, _, skipped, _ = msgpack.unpackb(enumeration.snapshot())
    assert version == 7
    pending = [one.to_list() for one in found]
    earlier = msgpack.packb([4, source, first, layouts, known, pending, skipped[1]])
    again = FileEnumeration(tmp_path)
    again.restore(earlier)
    assert list(again.pending) == found
