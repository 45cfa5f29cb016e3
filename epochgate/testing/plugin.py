"""The pytest plugin of simulated tests: the options that replay a run, and the feedback at the end.

It is loaded by every pytest in an environment with epochgate, so it imports nothing of epochgate's
until a simulated test or one of its options asks for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from epochgate.runtime.testing.worlds.settings import Chosen

SETTINGS = "epochgate.runtime.testing.worlds.settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("epochgate", "tests that are simulated (@epochgate.testing.simulate)")
    group.addoption(
        "--epochgate-seed", type=int, metavar="N", help="run one seed of each simulated test"
    )
    group.addoption(
        "--epochgate-replay", metavar="TOKEN", help="run the schedule that a report has named"
    )
    group.addoption(
        "--epochgate-effort",
        type=float,
        metavar="F",
        help="how many runs for each that a test says (0.1 for a look, 100 for a night)",
    )
    group.addoption(
        "--epochgate-whole",
        action="store_true",
        help="report every step of a schedule, with the rows that the machines took",
    )
    group.addoption(
        "--epochgate-rows",
        metavar="FILE",
        help="write how often each row of each machine was taken (`epochgate draw --taken-by`)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options on, if there are any; raises pytest's UsageError for a malformed token."""
    seed = config.getoption("--epochgate-seed")
    token = config.getoption("--epochgate-replay")
    effort = config.getoption("--epochgate-effort")
    is_whole = config.getoption("--epochgate-whole")
    if is_whole or (seed, token, effort) != (None, None, None):
        from epochgate.runtime.testing.worlds.settings import CHOSEN

        if token is not None:
            _insist_on_token(token)
        CHOSEN.seed, CHOSEN.token = seed, token
        CHOSEN.effort = 1.0 if effort is None else effort
        CHOSEN.is_whole = is_whole
    if config.getoption("--epochgate-rows") is not None:
        _count_rows(config)


def _count_rows(config: pytest.Config) -> None:
    """Count the rows that are taken from now on, and write the counts at the end; each worker of
    pytest-xdist writes a file of its own beside the one that is named.
    """
    from pathlib import Path

    from epochgate.fsm.tally import Tally

    path = Path(config.getoption("--epochgate-rows")).absolute()
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    tally = Tally()
    tally.hear_all()
    file = path.with_suffix(f".{worker}{path.suffix}") if worker else path
    config.add_cleanup(lambda: tally.write(file))


def _insist_on_token(token: str) -> None:
    """Refuse in one sentence what is no token."""
    import pytest

    from epochgate.runtime.testing.worlds.schedule import TokenMalformed
    from epochgate.runtime.testing.worlds.searching import parsed

    try:
        parsed(token)
    except TokenMalformed as malformed:
        raise pytest.UsageError(f"--epochgate-replay: {malformed}") from malformed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the simulated tests have reached, if there were any."""
    chosen: Chosen | None = getattr(sys.modules.get(SETTINGS), "CHOSEN", None)
    if chosen is None or not chosen.found:
        return
    from epochgate.runtime.testing.worlds.feedback import feedback

    terminalreporter.section("epochgate")
    for line in feedback(chosen.found, terminalreporter.config.get_verbosity() > 0):
        terminalreporter.write_line(line)
