"""Both jobs live through each fault by itself: no row and no update is lost, doubled or stuck."""

from __future__ import annotations

import pytest

from tests.nemesis.campaign import Campaign, Recovery
from tests.nemesis.faults import FAULTS, Fault
from tests.nemesis.host import PATIENCE

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(300 * PATIENCE)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_both_jobs_live_through(fault: Fault, campaign: Campaign, measured: list[Recovery]) -> None:
    if fault.missing:
        pytest.skip(fault.missing)
    measured.append(campaign.strike(fault))
    campaign.judge()
