"""The printed summary of the comparisons with Flink."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.comparison import Comparison


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, Comparison], None]:
    """Print the figures although pytest captures."""

    def told(kind: str, found: Comparison) -> None:
        reporter = request.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        with capsys.disabled():
            reporter.write_line(f"\n{kind}: {found}")

    return told
