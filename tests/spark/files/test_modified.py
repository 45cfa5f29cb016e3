"""Files are taken by the time at which they were modified."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochgate.spark.files import FileEnumeration, SourceEmpty
from epochgate.spark.files.modified import ModifiedBetween, TimeUnreadable, parse_modified
from tests.spark.files.reading import rows, write

TIMES = {"a.csv": 1, "b.csv": 2, "c.csv": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, second in TIMES.items():
        path = write(tmp_path / name, f"x\n{second}.5\n" if second == 3 else f"x\n{second}\n")
        os.utime(path, ns=(0, second * 10**9))
    return tmp_path


@pytest.mark.parametrize(
    ("after", "before", "taken"),
    [
        (None, None, [1, 2, 3.5]),
        ("1970-01-01T00:00:01", None, [2, 3.5]),
        ("1970-01-01T00:00:00.999999", None, [1, 2, 3.5]),
        (None, "1970-01-01T01:00:03+01:00", [1, 2]),
        ("1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z", [2]),
    ],
)
def test_both_ends_are_exclusive(
    folder: Path, after: str | None, before: str | None, taken: list[float]
) -> None:
    found = [row["x"] for row in rows(folder, modified=parse_modified(after, before))]
    assert found == taken
    # A file that is left out has no say in the types.
    assert type(found[0]) is (float if 3.5 in taken else int)


def test_files_that_are_left_out_are_counted_and_taken_later(folder: Path) -> None:
    first = FileEnumeration(folder, modified=parse_modified(None, "1970-01-01T00:00:02Z"))
    assert len(first.discover()) == 1
    assert first.unread == {"modified at another time": 2}
    later = FileEnumeration(folder)
    later.restore(first.snapshot())
    assert [Path(split.path).name for split in later.discover()] == ["b.csv", "c.csv"]
    with pytest.raises(SourceEmpty, match="3 modified at another time"):
        rows(folder, modified=ModifiedBetween(after_ns=10**10))


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(TimeUnreadable, match="--modified-before 'soon'"):
        parse_modified(None, "soon")
