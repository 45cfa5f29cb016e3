"""The lab of `make nemesis`, one for all of its tests, and what they measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis import recovery_table
from tests.nemesis.campaign import Campaign, Recovery
from tests.nemesis.host import what_is_missing
from tests.nemesis.lab import lab_in

SEED, MINUTES = 1, 5.0
MEASURED: list[Recovery] = []
COUNTED: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    options = parser.getgroup("nemesis", "random mixtures of faults")
    options.addoption("--seed", type=int, default=SEED, help=f"of the mixtures (default: {SEED})")
    options.addoption(
        "--minutes", type=float, default=MINUTES, help=f"of mixtures (default: {MINUTES:g})"
    )
    options.addoption(
        "--write", action="store_true", help="write the times of recovery into docs/hosts.md"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.get_closest_marker("nemesis")]
    if ours and (missing := what_is_missing()):
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with lab_in(tmp_path_factory.mktemp("lab")) as lab:
        campaign = Campaign(lab)
        try:
            lab.start_cluster()
            yield campaign
        finally:
            campaign.close()


@pytest.fixture
def campaign(shared: Campaign) -> Campaign:
    """The lab with both jobs well."""
    shared.make_well()
    return shared


@pytest.fixture
def counted() -> list[str]:
    """Sentences for the end of the report."""
    return COUNTED


@pytest.fixture
def measured() -> list[Recovery]:
    """Times of recovery for the end of the report, and for the page."""
    return MEASURED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if not MEASURED and not COUNTED:
        return
    terminalreporter.section("nemesis")
    for line in [*recovery_table.lines(MEASURED), *COUNTED]:
        terminalreporter.line(line)
    if config.getoption("write"):
        page = Path(__file__).parents[2] / "docs" / "hosts.md"
        recovery_table.write(page, MEASURED)
