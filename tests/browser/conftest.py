"""A browser for the tests of the pages; they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, found

AXE = Path(__file__).parents[2] / ".browser" / "axe.min.js"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = found()
    if path is None:
        pytest.skip("no chromium is on PATH; `make browser` installs one")
    with Browser(path, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip(f"{AXE} is missing; `make browser` fetches axe-core from npm")
    return AXE.read_text(encoding="utf-8")
