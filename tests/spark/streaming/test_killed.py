"""Processes of a streaming query are killed (-9), at named steps of a commit and at random moments.

A reader that is not the sink's library finds each row once.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.streaming.killing import KILLS, KINDS, Killing
from tests.spark.streaming.queries import Numbers

pytestmark = [pytest.mark.spark, pytest.mark.kills]
POINTS = ("stage", "staged", "commit", "look", "note", "apply", "applied", "sweep", "committed")
"""Where `faulty_sink` can strike."""
SMALL = [("applied", "delta"), ("apply", "parquet")]
EVERY = [
    pytest.param(point, kind, marks=pytest.mark.deep)
    for point in POINTS
    for kind in ("parquet", "delta", "postgres")
    if (point, kind) not in SMALL
]
TRIED = [pytest.param(*one, marks=pytest.mark.versions) for one in SMALL]
AHEAD = 8
"""Files that a driver finds at its start."""


def numbers(root: Path, kind: str, request: pytest.FixtureRequest) -> Numbers:
    dsn = request.getfixturevalue("dsn") if kind == "postgres" else ""
    return Numbers(root, kind, dsn)


@pytest.mark.parametrize(("point", "kind"), [*TRIED, *EVERY])
def test_a_process_killed_at_a_named_step_loses_and_doubles_no_row(
    tmp_path: Path, session: Any, point: str, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    query.add_files(2)
    query.fault.write_text(f"kill {point} 1")
    with contextlib.suppress(StreamingQueryException):
        query.run(session)
    assert not query.fault.exists(), "the step was reached"
    query.add_files(1)
    query.run(session)
    assert query.rows() == query.expected
    assert query.staged() == []


@pytest.mark.deep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["parquet", "delta", "postgres"])
def test_rows_are_there_once_after_kills_at_random_moments(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    query = numbers(tmp_path, kind, request)
    program = ["-m", "tests.spark.streaming.killed_query", str(tmp_path), kind, query.dsn]
    killing = Killing(program, query.checkpoint, random.Random(kind))

    def feed() -> None:
        query.add_files(max(0, AHEAD - (query.files - killing.batches)))

    killing.run(feed)
    assert killing.killed == dict.fromkeys(KINDS, KILLS)
    assert query.rows() == query.expected
    assert query.staged() == []
