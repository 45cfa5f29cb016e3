"""How `make test` and `make check-deep` share the tests among their processes.

A file is run by one process, because its tests share sessions, builds and searches; what takes long
and starts no Spark stands alone. What takes long comes first, so that no process is left with it
while the others have nothing to do.
"""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(tryfirst=True)  # what hands the tests out looks at the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        if is_long(item) and not starts_spark(item):
            continue
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    long_files = {item.path for item in items if is_long(item)}
    items.sort(key=lambda item: item.path not in long_files)


def starts_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None


def is_long(item: pytest.Item) -> bool:
    return starts_spark(item) or any(map(item.get_closest_marker, ("slow", "deep")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of the body mutants, if any were judged."""
    recorded = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "body mutant" and report.when == "call"
    ]
    if recorded:
        from tests.mutation.table import lines

        terminalreporter.section("body mutants: found by whom")
        for line in lines(recorded):
            terminalreporter.line(line)
