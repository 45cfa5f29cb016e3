"""Streaming queries of a real Spark: each batch once, whatever is replayed or copied."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.streaming.queries import Numbers

pytestmark = [pytest.mark.spark, pytest.mark.extended]
TRIED = [pytest.param(kind, marks=pytest.mark.versions) for kind in ("parquet", "delta")]
KINDS = (*TRIED, "postgres", pytest.param("iceberg", marks=pytest.mark.deep))


def numbers(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> Numbers:
    dsn = request.getfixturevalue("dsn") if kind == "postgres" else ""
    return Numbers(tmp_path, kind, dsn)


def refusal(query: Numbers, session: Any, **options: str) -> str:
    """Return what a run is refused with."""
    before = query.rows()
    with pytest.raises(StreamingQueryException) as raised:
        query.run(session, **options)
    assert query.rows() == before
    return str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_is_replayed_after_its_commit_is_in_the_table_once(
    tmp_path: Path, session: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    query.add_files(2)
    assert query.run(session) == [0, 1]
    assert query.rows() == query.expected
    offsets = (query.checkpoint / "offsets" / "1").read_bytes()
    query.forget_end(1)
    query.add_files(1)
    assert query.run(session) == [1, 2]
    assert (query.checkpoint / "offsets" / "1").read_bytes() == offsets
    assert query.rows() == query.expected
    assert query.staged() == []


@pytest.mark.parametrize("kind", TRIED)
def test_a_copied_an_emptied_and_an_older_checkpoint_location_are_refused(
    tmp_path: Path, session: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    query.add_files(2)
    query.run(session)
    copy, older = query.copy_checkpoint("copy"), query.copy_checkpoint("older")
    query.add_files(1)
    told = refusal(query, session, checkpointLocation=str(copy))
    assert "LocationMoved" in told
    assert f'.option("movedFrom", {str(query.checkpoint)!r})' in told
    assert query.run(session) == [2]

    shutil.rmtree(query.checkpoint)
    assert "LocationEmptied" in refusal(query, session)

    shutil.rmtree(query.checkpoint)
    shutil.copytree(older, query.checkpoint)
    query.add_files(1)
    assert "OffsetsChanged" in refusal(query, session)
    (query.checkpoint / "offsets" / "2").unlink()
    query.forget_end(1)
    assert "BatchesAhead" in refusal(query, session)


def test_a_moved_checkpoint_location_goes_on_where_the_option_says_so(
    tmp_path: Path, session: Any, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, "delta", request)
    query.add_files(1)
    query.run(session)
    moved = query.copy_checkpoint("moved")
    query.add_files(1)
    place = {"checkpointLocation": str(moved), "movedFrom": str(query.checkpoint)}
    assert query.run(session, **place) == [1]
    assert query.rows() == query.expected
    assert "LocationMoved" in refusal(query, session)


def test_a_table_that_was_dropped_is_not_begun_in_the_middle(
    tmp_path: Path, session: Any, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, "delta", request)
    query.add_files(1)
    query.run(session)
    shutil.rmtree(query.target)
    query.add_files(1)
    with pytest.raises(StreamingQueryException, match="BatchesMissing"):
        query.run(session)
    assert not (query.target / "_delta_log").exists()
    assert query.run(session, lateStart="true") == [1]
    assert query.rows() == query.expected[10:]


def test_two_queries_write_to_one_table_and_each_counts_for_itself(
    tmp_path: Path, session: Any
) -> None:
    one, other = (Numbers(tmp_path / name, "delta") for name in ("one", "other"))
    other.target = one.target
    one.add_files(2)
    other.add_files(3)
    together = [one.start(session), other.start(session)]
    for query in together:
        query.awaitTermination()
    assert one.rows() == sorted(one.expected + other.expected)
    one.forget_end(1)
    assert one.run(session) == [1]
    assert one.rows() == sorted(one.expected + other.expected)


def test_a_directory_of_files_has_one_query(tmp_path: Path, session: Any) -> None:
    one, other = (Numbers(tmp_path / name, "parquet") for name in ("one", "other"))
    other.target = one.target
    one.add_files(1)
    other.add_files(1)
    one.run(session)
    told = refusal(other, session)
    assert "TargetOfAnotherQuery" in told
    assert "--checkpoint-dir" not in told
    one.add_files(1)
    assert one.run(session) == [1]


def die_once(marker: str) -> Any:
    """A function for `mapInArrow` whose first task dies in the middle."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            if not os.path.exists(marker):
                with open(marker, "w", encoding="utf-8"):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


@pytest.mark.parametrize("kind", TRIED)
def test_what_a_killed_attempt_has_staged_never_shows_and_is_swept(
    tmp_path: Path, session: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    query.add_files(1)
    frame = query.frame(session).mapInArrow(die_once(str(tmp_path / "died")), "id long")
    query.run(session, frame, fileBytes="1KB")
    assert (tmp_path / "died").exists()
    assert query.rows() == query.expected
    assert query.staged() == []


@pytest.mark.versions
def test_an_abort_after_an_applied_commit_undoes_nothing(
    tmp_path: Path, session: Any, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, "parquet", request)
    query.add_files(2)
    query.fault.write_text("raise committed 1")
    with pytest.raises(StreamingQueryException, match="committed of batch 1"):
        query.run(session)
    assert query.rows() == query.expected
    query.add_files(1)
    assert query.run(session) == [1, 2]
    assert query.rows() == query.expected


@pytest.mark.versions
def test_a_batch_without_rows_counts(tmp_path: Path, session: Any) -> None:
    query = Numbers(tmp_path, "parquet")
    query.add_files(2)
    frame = query.frame(session).where("id >= 10")
    assert query.run(session, frame) == [0, 1]
    assert query.rows() == query.expected[10:]
    query.add_files(1)
    frame = query.frame(session).where("id < 20")
    assert query.run(session, frame) == [2]
    query.forget_end(2)
    assert query.run(session, query.frame(session).where("id < 20")) == [2]
    assert query.rows() == query.expected[10:20]


@pytest.mark.versions
def test_wrong_options_are_told_with_what_there_is(tmp_path: Path, session: Any) -> None:
    query = Numbers(tmp_path, "parquet")
    query.add_files(1)
    for options, told in [
        ({"sink": "kafka"}, "'kafka' is no sink"),
        ({"fleBytes": "1MB"}, "there is no option 'flebytes'"),
        ({"path": ""}, "needs the option 'path'"),
    ]:
        with pytest.raises(StreamingQueryException, match=told):
            query.run(session, **options)
