"""A table that is set back lacks its newest commits, which are kept, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.nemesis.set_back import set_back


def test_the_newest_commits_leave_a_table_and_are_kept(tmp_path: Path) -> None:
    table, manifests, kept = tmp_path / "table", tmp_path / "manifests", tmp_path / "kept"
    manifests.mkdir()
    (table / "_epochgate").mkdir(parents=True)
    for number in (3, 4, 10, 12):
        directory = table / f"checkpoint={number:012d}"
        directory.mkdir()
        (directory / "part.parquet").write_text(str(number))
    for number in (3, 4, 10, 12, 13):
        (manifests / f"checkpoint-{number:012d}.json").touch()
    names = ["checkpoint=000000000010", "checkpoint=000000000012"]
    assert set_back(table, manifests, kept, 2) == names
    assert sorted(path.name for path in kept.iterdir()) == names
    assert (kept / names[1] / "part.parquet").read_text() == "12"
    assert [int(path.name[-12:]) for path in sorted(table.glob("checkpoint=*"))] == [3, 4]
    assert (table / "_epochgate").is_dir()
    numbers = [int(path.stem[-12:]) for path in sorted(manifests.iterdir())]
    assert numbers == [3, 4, 13], "what was not committed yet is not taken back"
