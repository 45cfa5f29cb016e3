"""States larger than a frame are checkpointed, and restored after a failure, over the real wire."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import DirectoryCheckpointStore
from epochgate.spark.job import run_job
from epochgate.spark.wire import FRAME_BYTES_MAX, Detection
from tests.spark import large_states_program
from tests.spark.large_states_program import LargeProgram

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow]

GIGABYTE = 1_000_000_000


def run_with(spark: Any, place: Path, state_bytes: int, **settings: Any) -> Any:
    configuration = JobConfiguration(
        "large",
        2,
        checkpoint_interval_s=0.5,
        restart_strategy=FixedDelay(4, 0.1),
    )
    with run_job(
        spark,
        configuration,
        lambda subtask: LargeProgram(state_bytes),
        store=DirectoryCheckpointStore(str(place), job_id="large", retained=1),
        by_value=[large_states_program],
        **settings,
    ) as job:
        return job.wait(float(os.environ.get("EPOCHGATE_LARGE_STATE_S", "300")))


def test_a_state_larger_than_a_frame_is_checkpointed_and_restored(
    spark: Any, tmp_path: Path
) -> None:
    result = run_with(spark, tmp_path / "plain", FRAME_BYTES_MAX + 8_000_000)
    assert result.state == "finished", result.reason
    assert 1 <= result.report.regional_restarts <= 2


def test_a_state_over_the_limit_ends_the_job_with_the_option_that_raises_it(
    spark: Any, tmp_path: Path
) -> None:
    result = run_with(spark, tmp_path, 3_000_000, message_bytes_max=2_000_000)
    assert result.state == "failed"
    assert "message 'acknowledge' has 3000" in result.reason
    assert "larger message_bytes_max" in result.reason


@pytest.mark.deep
@pytest.mark.parametrize("wire", ["auto", "private"])
def test_a_state_of_a_gigabyte_is_checkpointed_and_restored(
    spark: Any, tmp_path: Path, wire: str
) -> None:
    # To pack or copy a gigabyte holds the interpreter for seconds where memory is slow.
    result = run_with(
        spark,
        tmp_path,
        GIGABYTE,
        wire=wire,
        heartbeat_timeout_s=120.0,
        detection=Detection(pause_s=60.0),
    )
    assert result.state == "finished", result.reason
    assert 1 <= result.report.regional_restarts <= 2
    assert result.report.metrics[0]["peak_kb"] * 1024 < 5 * GIGABYTE
