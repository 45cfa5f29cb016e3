"""The example of a steered query runs as it stands, and is held to its word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "steered_query.py"

pytestmark = [pytest.mark.spark, pytest.mark.programs, pytest.mark.slow]


def test_a_batch_that_fails_keeps_its_limit_and_the_next_one_has_the_new() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "a batch has failed; the limit is lowered before it runs again" in done.stdout
    assert re.search(r"limit 700 is in force from batch [1-9]\d* on", done.stdout)
    assert re.search(r"\d+ batches, each with one limit in all of its rows", done.stdout)
