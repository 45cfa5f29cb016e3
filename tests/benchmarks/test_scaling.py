from __future__ import annotations

from epochgate.benchmarks import scaling
from epochgate.fsm.inside import machines_behind


def test_every_kind_of_work_is_measured_for_every_size() -> None:
    table = scaling.measure(sizes=(2, 3), runs=1)
    assert [row[0] for row in table.rows] == ["2 with 1", "3 with 1", "2 with 2", "3 with 2"]
    assert all(float(cost.replace(",", "")) > 0 for row in table.rows for cost in row[1:])


def test_a_driven_job_survives_failovers_and_goes_on() -> None:
    job = scaling.DrivenJob(subtasks=3, coordinators=2)
    job.checkpoint()
    job.regional_failover(1)
    job.events(2)
    job.global_failover()
    job.events(2)
    job.checkpoint()
    assert machines_behind(job.master.job).checkpoint.completed == 2
    assert machines_behind(job.master.job).lifecycle.running == 3
