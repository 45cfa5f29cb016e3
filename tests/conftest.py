"""The share of the tests that each process of `make test` and `make check-deep` takes.

A file is run by one process, because its tests share sessions, builds and searches; of some folders
each test stands alone. What takes long comes first, so that no process is left with it while the
others have nothing to do.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from epochgate.spark.java import archive_options
from tests.spark import shared

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

DEALT_ONE_BY_ONE = (
    "tests/models/test_closed_job_deep.py",
    "tests/models/test_designs",
    "tests/models/test_machine_code_deep.py",
    "tests/mutation/",
    "tests/stateful/",
)
"""Files whose tests take long, and share nothing but what is cheap to make twice."""


def unit(nodeid: str) -> str:
    """Return what is handed to a process as a whole: the test, its file, or all files with its
    session.
    """
    file = nodeid.partition("::")[0]
    return nodeid if file.startswith(DEALT_ONE_BY_ONE) else shared.SESSIONS.get(file, file)


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Any:
    """The Spark session of a file that shares one."""
    return shared.session_of(request.node.nodeid)


CLASSES = Path(sys.prefix) / "spark-classes.jsa"
"""What `epochgate class-archive` has made, if it has; otherwise an empty file, or none."""


settings.register_profile(
    "at any speed",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
"""How fast a machine is, and what else it does, is no property of what Hypothesis tries."""


def pytest_configure() -> None:
    settings.load_profile("at any speed")
    if CLASSES.exists() and CLASSES.stat().st_size > 0:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", archive_options(CLASSES))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    # The group of a test that `loadgroup` reads is not in the node ids of pytest 9.2.
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it has no type information
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(
            f"{unstable[0]} has an address in its name, which differs between processes: give ids"
        )
    if hasattr(config, "workerinput"):
        long_files = {item.path for item in items if is_long(item)}
        items.sort(key=lambda item: item.path not in long_files)


def is_long(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("spark", "slow", "deep")))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Keep what a file leaves behind, as compiled models and cached searches, out of the garbage
    collections in the files after it: a process of `make test` comes to millions of such objects.
    """
    yield
    if nextitem is None or unit(nextitem.nodeid) != unit(item.nodeid):
        shared.stop()
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of the mutants, if any were judged."""
    recorded = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "mutant" and report.when == "call"
    ]
    if recorded:
        from tests.mutation.table import lines

        terminalreporter.section("mutants: found by whom")
        for line in lines(recorded):
            terminalreporter.line(line)
