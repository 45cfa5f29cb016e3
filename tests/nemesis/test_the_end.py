"""After all faults of `make nemesis` its jobs end when they are asked to, with everything there."""

from __future__ import annotations

import pytest

from tests.nemesis.campaign import Campaign
from tests.nemesis.host import PATIENCE

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(600 * PATIENCE)]


def test_the_machines_accept_all_that_drivers_and_tasks_did(
    campaign: Campaign, counted: list[str]
) -> None:
    traces, events = campaign.finish()
    assert traces > 0
    counted.append(
        f"{campaign.faults} faults in all; the machines accept {traces:,} traces of drivers and "
        f"tasks, {events:,} events"
    )
