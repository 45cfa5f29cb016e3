from __future__ import annotations

import pytest

from epochgate.benchmarks import events
from epochgate.fsm.inside import machines_behind


@pytest.mark.programs
def test_events_of_coordinator_and_thread_are_all_confirmed_over_the_real_wire() -> None:
    with events.loopback_job() as job:
        count = 4 * events.EVENTS_PER_PORTION
        assert job.stream_from_coordinator(count) > 0
        assert job.stream_from_thread(count) > 0
        assert len(job.round_trips_us(5)) == 5
        gateways = machines_behind(job.master.job).gateway.values()
        assert sum(gateway.confirmed for gateway in gateways) == 2 * count + 5
        assert job.task_processor_s() > 0
