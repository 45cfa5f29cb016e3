"""Files that are merged with each other: by size, by partition, and only where readers notice."""

from __future__ import annotations

from collections.abc import Mapping

from epochgate.spark.compaction.plan import Plan, Wanted, plan
from epochgate.spark.parquet_sink.tree import VisibleFile


def planned(
    checkpoints: Mapping[int, list[tuple[str, int]]], *, min_files: int = 2, keep: int = 0
) -> Plan:
    """Of checkpoints with files of these partitions and sizes; files are to have 100 bytes."""
    visible = {
        number: [
            VisibleFile(number, directory, f"part-{n}.parquet", 1, size, 0, "s")
            for n, (directory, size) in enumerate(files)
        ]
        for number, files in checkpoints.items()
    }
    return plan(visible, sorted(visible), Wanted(100, min_files, keep))


def test_a_file_is_small_below_three_quarters_of_the_size() -> None:
    (merge,) = planned({1: [("", 74), ("", 75)], 2: [("", 1)]}).merges
    assert [file.size_bytes for file in merge.small] == [74, 1]
    assert [file.size_bytes for file in merge.large] == [75]


def test_fewer_small_files_than_asked_for_stay_where_they_are() -> None:
    target = {1: [("", 1)], 2: [("", 1)], 3: [("", 99)]}
    assert planned(target, min_files=3).merges == ()
    assert len(planned(target, min_files=3).untouched) == 3
    assert len(planned(target, min_files=2).merges) == 1


def test_the_newest_checkpoints_stay_as_they_are() -> None:
    target = {n: [("", 1)] for n in range(5)}
    assert planned(target, keep=2).covered == (0, 1, 2)
    assert planned(target, keep=3).covered == (0, 1)
    assert planned(target, keep=9).covered == ()


def test_the_files_of_one_checkpoint_are_not_merged_alone() -> None:
    assert planned({1: [("", 1), ("", 1), ("", 1)]}).merges == ()
    assert planned({1: [("", 1), ("", 1)], 2: []}).merges == ()


def test_a_partition_waits_until_a_checkpoint_with_its_rows_is_gone_as_a_whole() -> None:
    # Checkpoint 2 stays for c=2, so that a reader would not miss its directory.
    stays = {1: [("c=1", 1)], 2: [("c=1", 1), ("c=2", 1)]}
    assert planned(stays).merges == ()
    # So does c=1 when c=2 comes again, but c=2 has checkpoint 3 to lose.
    (merge,) = planned({**stays, 3: [("c=2", 1)]}).merges
    assert (merge.directory, merge.checkpoint) == ("c=2", 2)
    # Checkpoint 3 is gone for both.
    both = planned({**stays, 3: [("c=1", 1), ("c=2", 1)]})
    assert [(one.directory, one.checkpoint) for one in both.merges] == [("c=1", 1), ("c=2", 2)]


def test_a_partition_that_waits_keeps_others_waiting_that_would_rely_on_it() -> None:
    # c=1 has checkpoint 2 to lose only if c=2 moves, and c=2 is in one checkpoint alone.
    target = {1: [("c=1", 1)], 2: [("c=1", 1), ("c=2", 1), ("c=2", 1)]}
    assert planned(target).merges == ()
    assert len(planned(target).untouched) == 4
