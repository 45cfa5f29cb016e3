"""A file that lies in a source and is not read is counted and listed, with its reason."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from epochgate.spark.files import BadFile, FileEnumeration, SourceEmpty, SourceMissing, SplitReader
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.finding import ADVICE, OTHER_TIME, NameUnusable
from tests.spark.files.test_object_sources import SOURCE, Zone

LATIN_1 = os.fsdecode(b"caf\xe9.csv")
ODD_NAMES = (
    "a b.csv",
    "a=b.csv",
    "%20.csv",
    "#?&.csv",
    "[x]*.csv",
    "{a,b}.csv",
    "ü\u0308\U0001f600.csv",
    "new\nline.csv",
    "tab\t'\"`$;.csv",
    "-r.csv",
    "back\\slash.csv",
    "a:b@c.csv",
    "~.csv",
    "x" * 251 + ".csv",
)


def write(path: Path, text: str = "x\n1\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_one_of_each(root: Path, elsewhere: Path) -> dict[str, str]:
    """Fill `root`, also with one path for each reason; return these reasons by path."""
    write(root / "a.csv")
    write(root / ".b.csv")
    write(root / "_c/d.csv")
    write(root / "e.csv.part")
    write(root / "deep/f.csv", "")
    write(elsewhere / "g.csv")
    (root / "linked").symlink_to(elsewhere)
    (root / "gone.csv").symlink_to(elsewhere / "h.csv")
    (root / "good.csv").symlink_to(elsewhere / "g.csv")
    os.mkfifo(root / "pipe.csv")
    return {
        ".b.csv": "hidden",
        "_c": "hidden",
        "deep/f.csv": "empty",
        "e.csv.part": "unfinished",
        "gone.csv": "link to nothing",
        "linked": "link to a directory",
        "pipe.csv": "neither file nor directory",
    }


def test_each_file_is_read_or_listed_with_its_reason(tmp_path: Path) -> None:
    root = tmp_path / "in"
    reasons = make_one_of_each(root, tmp_path / "elsewhere")
    enumeration = FileEnumeration(root)
    read = {os.path.relpath(split.path, root) for split in enumeration.discover()}
    unread = {os.path.relpath(path, root): why for path, why in FileAccess().unread(str(root))}
    assert read == {"a.csv", "good.csv"}
    assert unread == reasons
    assert enumeration.unread == Counter(reasons.values())
    assert enumeration.copy().unread == enumeration.unread
    there = {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    assert there - read - unread.keys() == {"_c/d.csv"}, "a hidden directory is one path"


def test_a_pattern_lists_what_it_matches_and_does_not_read(tmp_path: Path) -> None:
    reasons = make_one_of_each(tmp_path / "in", tmp_path / "elsewhere")
    unread = FileAccess().unread(str(tmp_path / "in" / "*"))
    assert {os.path.basename(path): why for path, why in unread} == {
        **{name: why for name, why in reasons.items() if "/" not in name and name[0] != "."},
        "deep": "directory",
    }
    anywhere = FileAccess().unread(str(tmp_path / "in" / "**" / "*.csv"))
    assert {os.path.basename(path) for path, _ in anywhere} == {
        "d.csv",
        "f.csv",
        "gone.csv",
        "pipe.csv",
    }


def test_objects_that_are_not_read_are_listed_from_one_listing() -> None:
    zone = Zone()
    for name in ("a.csv", ".b.csv", "_c/d.csv", "e.csv.part"):
        zone.put(f"in/{name}")
    zone.put("in/folder", b"")
    enumeration = zone.enumeration()
    assert len(enumeration.discover()) == 1
    assert enumeration.unread == {"hidden": 2, "unfinished": 1, "empty": 1}
    zone.memory.requests.clear()
    assert zone.access.unread(SOURCE) == [
        (f"{SOURCE}/.b.csv", "hidden"),
        (f"{SOURCE}/_c/d.csv", "hidden"),
        (f"{SOURCE}/e.csv.part", "unfinished"),
        (f"{SOURCE}/folder", "empty"),
    ]
    assert zone.asked("list") == len(zone.memory.requests) == 1


def test_a_source_of_which_nothing_is_read_says_what_is_there(tmp_path: Path) -> None:
    write(tmp_path / "_SUCCESS")
    write(tmp_path / "a.csv.tmp")
    told = rf"1 hidden, 1 unfinished; `epochgate unread {tmp_path}` lists them"
    with pytest.raises(SourceEmpty, match=told):
        FileEnumeration(tmp_path).discover()
    with pytest.raises(
        SourceMissing, match=r"matches no file that is read\. Not read: 1 unfinished"
    ):
        FileEnumeration(tmp_path / "a*").discover()


def test_each_reason_has_its_advice(tmp_path: Path) -> None:
    reasons = make_one_of_each(tmp_path / "in", tmp_path / "elsewhere")
    assert {*reasons.values(), "directory", OTHER_TIME} == ADVICE.keys()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_may_have_an_odd_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    for source in (tmp_path, tmp_path / name):
        enumeration = FileEnumeration(source)
        (split,) = enumeration.discover()
        assert split.path == str(tmp_path / name)
        assert enumeration.layout is not None
        (read,) = SplitReader(enumeration.layout).read(split)
        assert read.batch.to_pydict() == {"x": [1]}


def test_a_file_whose_name_is_no_utf_8_is_bad(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    write(tmp_path / LATIN_1)
    with pytest.raises(BadFile, match=r"caf\\\\xe9\.csv'.*no UTF-8; rename the file"):
        FileEnumeration(tmp_path).discover()
    enumeration = FileEnumeration(tmp_path, on_bad_file="skip")
    assert [split.path for split in enumeration.discover()] == [str(tmp_path / "a.csv")]
    assert enumeration.discover() == []
    (skipped,) = enumeration.skipped
    assert skipped.path == str(tmp_path / "caf\\xe9.csv")


def test_a_source_whose_name_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NameUnusable, match=r"caf\\\\xe9\.csv' has bytes in its name that are no"):
        FileEnumeration(os.path.join(tmp_path, LATIN_1))
