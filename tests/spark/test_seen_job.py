"""The view of a user on a job on Spark: a few lines in the log, and its name in Spark's UI."""

from __future__ import annotations

import json
import logging
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.store import DirectoryCheckpointStore
from tests.browser.serving import asked
from tests.spark.running import number_job, send_signal, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]


def test_two_killed_workers_are_a_few_lines_of_the_log(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with number_job(spark, 60, configuration={"checkpoint_interval_s": None}) as job:
        job.wait_until_running()
        for subtask in (1, 3):
            pid = job.pid(subtask)
            send_signal(pid, signal.SIGKILL)
            job.wait_for_replacement(subtask, pid)
            job.handle.request_checkpoint().result(30)
        job.finish()
    lines = [(r.name, r.getMessage()) for r in caplog.records if r.name.startswith("epochgate")]
    told = [message for name, message in lines if name == "epochgate.job.failover"]
    assert [line.split(",")[0] for line in told[::2]] == [
        "subtask 1 failed in attempt 0",
        "subtask 3 failed in attempt 0",
    ]
    assert all(" as attempt 1 in process " in line for line in told[1::2])
    assert [name for name, _ in lines if name == "epochgate.job"] == ["epochgate.job"] * 3
    assert "starts from the beginning: 4 subtasks, run " in lines[0][1]
    assert lines[-1][1].startswith("job finished after ")
    assert len(lines) <= 20


def test_sparks_ui_calls_job_stage_and_rdd_by_the_jobs_name(spark: Any) -> None:
    tracker, scala = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc()
    with number_job(spark, 20) as job:
        job.wait_until_running()
        wait_for(lambda: tracker.getActiveStageIds() != [], "a stage")
        [stage] = tracker.getActiveStageIds()
        shown = scala.statusStore().lastStageAttempt(stage)
        assert shown.name() == "epochgate numbers: 4 resident subtasks"
        assert shown.description().get() == "epochgate numbers: 4 resident subtasks"
        job.finish()


def test_a_job_serves_its_own_pages_until_it_ends(spark: Any, tmp_path: Path) -> None:
    store = DirectoryCheckpointStore(tmp_path, job_id="numbers")
    with number_job(spark, 60, store=store, ui_port=0) as job:
        job.wait_until_running()
        url = job.handle.ui_url
        assert url is not None
        wait_for(lambda: "checkpoint 1 " in asked(url, "/")[1], "a checkpoint")
        state = json.loads(asked(url, "/status.json")[1])
        assert (state["state"], state["run"]["parallelism"]) == ("running", 4)
        job.finish()
    with pytest.raises(OSError, match="refused"):
        asked(url, "/")
    assert not [one for one in threading.enumerate() if one.name == "epochgate-ui"]
