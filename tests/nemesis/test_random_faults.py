"""Both jobs live through random mixtures of faults."""

from __future__ import annotations

import time

import pytest

from tests.nemesis.campaign import Campaign
from tests.nemesis.schedule import bouts

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(0)]


def test_both_jobs_live_through_mixtures(
    campaign: Campaign, counted: list[str], pytestconfig: pytest.Config
) -> None:
    terminal = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    assert terminal is not None
    seed, minutes = pytestconfig.getoption("seed"), pytestconfig.getoption("minutes")
    terminal.write_line(f"\nseed {seed}; `make nemesis SEED={seed}` has the same faults again")
    began, before, number = time.monotonic(), campaign.faults, 0
    for number, bout in enumerate(bouts(seed), 1):
        terminal.write_line("\n".join([f"bout {number}", *map(str, bout)]))
        campaign.mix(bout)
        campaign.make_well()
        campaign.judge()
        if time.monotonic() > began + minutes * 60:
            break
    faults, hours = campaign.faults - before, (time.monotonic() - began) / 3600
    counted.append(
        f"seed {seed}: {faults} faults in {number} bouts, {faults / hours:.0f} in an hour; nothing "
        "lost, doubled or stuck"
    )
