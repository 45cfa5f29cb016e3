"""Folders for tables, of which a test makes thousands."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Callable[[], Path]]:
    """Makes folders, each of which is removed by the next."""
    top = Path(tempfile.mkdtemp(prefix="values-"))

    def fresh() -> Path:
        shutil.rmtree(top)
        top.mkdir()
        return top

    yield fresh
    shutil.rmtree(top)
