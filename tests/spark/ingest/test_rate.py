"""The rate of an ingestion is a setting: changed while it runs, and kept by later starts."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.pipeline.setting_requests import requested
from epochgate.runtime.requests.listening import Answer
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source

SLOW, FAST = 50.0, 100_000.0


def ask(simulated: SimulatedIngest, **values: Any) -> Future[Answer]:
    """As `epochgate set` does."""
    handle = requested(simulated.plan.configuration.providers, simulated.master)
    return handle({"kind": "set", "values": values})


def rate_of(simulated: SimulatedIngest) -> Any:
    answer = ask(simulated)
    simulated.run(until=answer.done)
    return answer.result(0)["values"]["rate"]


def test_a_rate_is_changed_while_the_job_runs_and_kept_by_the_next_start(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=4)
    slow = replace(options_for(tmp_path), rows_per_second=SLOW)
    first = SimulatedIngest(slow)
    first.run(until=lambda: first.plan.committer.rows_committed > 0)
    began_s, had = first.clock.now_s(), first.plan.committer.rows_committed
    assert had < len(rows) / 2
    changed = ask(first, rate=FAST)
    first.run(until=changed.done)
    assert changed.result(0) == {"values": {"rate": FAST}}
    first.master.stop()
    first.run()
    first.leave()
    assert first.clock.now_s() - began_s < (len(rows) - had) / SLOW / 4

    again = SimulatedIngest(slow, name="again")
    assert rate_of(again) == FAST, "the same command has the rate of its checkpoint"
    again.master.stop()
    again.run()
    again.leave()
    other = SimulatedIngest(replace(slow, rows_per_second=None), name="other")
    assert rate_of(other) is None, "another command has its own"
    other.run()
    other.leave()
    assert visible(tmp_path / "out") == rows


def test_a_batch_takes_a_part_of_a_second_at_any_rate(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    simulated = SimulatedIngest(replace(options_for(tmp_path), rows_per_second=SLOW))
    program = simulated.plan.program_factory(0)
    for rate, rows in (
        (None, program._batch_rows),
        (SLOW, 2),
        (1.0, 1),
        (1e9, program._batch_rows),
    ):
        program.pace_changed(rate)
        assert program._files.batch_rows == rows
    simulated.crash_driver()
    simulated.run()
    simulated.leave()


@pytest.mark.parametrize("value", [0, -1, "fast", True])
def test_what_is_no_rate_is_refused(tmp_path: Path, value: Any) -> None:
    write_source(tmp_path, files=1)
    simulated = SimulatedIngest(options_for(tmp_path))
    with pytest.raises(Exception, match="no rate"):
        ask(simulated, rate=value).result(0)
    simulated.run()
    simulated.leave()
