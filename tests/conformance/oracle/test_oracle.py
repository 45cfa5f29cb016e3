"""The oracle: deterministic, restarted by each schedule, and plain about what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.conformance.oracle.oracle import FlinkOracle, OracleEnded

MIXED_CLOSE = ["new 2", "start", "running 0", "running 1", "ckpt 1", "auto 0"]
MIXED_CLOSE += ["cdone 1 s", "reset 0 -1", "drain"]


@pytest.fixture(scope="module")
def oracle() -> Iterator[FlinkOracle]:
    with FlinkOracle() as running:
        yield running


def said_with(environment: dict[str, str]) -> str:
    """Return what a process of its own says when it asks for the oracle's classes."""
    asked = "from tests.conformance.oracle.oracle import compiled; compiled()"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stderr


def test_without_the_jar_it_says_which_command_brings_it() -> None:
    said = said_with({"EPOCHGATE_CONFORMANCE_VENV": os.devnull})
    assert "FlinkUnavailable" in said
    assert "`make conformance`" in said


@pytest.mark.conformance
def test_without_a_compiler_it_says_where_it_has_looked() -> None:
    said = said_with({"PATH": "", "JAVA_HOME": os.devnull})
    assert f"no javac under JAVA_HOME ({os.devnull}) and none on PATH" in said


@pytest.mark.conformance
def test_a_schedule_gives_the_same_answers_each_time(oracle: FlinkOracle) -> None:
    once = oracle.run(MIXED_CLOSE)
    assert once[:3] == [[], ["coord start"], ["coord ready 0 0"]]
    assert [oracle.run(MIXED_CLOSE) for _ in range(3)] == [once] * 3


@pytest.mark.conformance
def test_where_flink_ends_its_process_only_a_new_holder_goes_on(oracle: FlinkOracle) -> None:
    *_, last, refused, new, start = oracle.run([*MIXED_CLOSE, "abort", "new 1", "start"])
    assert last[-1].startswith("EXC exit -17: ")
    assert refused[0].startswith("EXC ")
    assert (new, start) == ([], ["coord start"])


@pytest.mark.conformance
def test_more_than_fits_into_a_pipe_is_answered(oracle: FlinkOracle) -> None:
    events = [f"event 0 0 {'x' * 200}{number}" for number in range(2000)]
    answers = oracle.run(["new 1", "start", "running 0", *events])[3:]
    assert answers == [[f"coord {event}"] for event in events]


@pytest.mark.conformance
def test_a_process_that_ends_is_reported_with_the_command() -> None:
    with FlinkOracle() as oracle:
        assert oracle.run(["new 1"]) == [[]]
        assert oracle._process is not None
        oracle._process.kill()
        with pytest.raises(OracleEnded, match="ended with code -9 at 'start'"):
            oracle.run(["start"])
