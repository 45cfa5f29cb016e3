"""The example of streaming queries, as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "streaming_orders.py"


@pytest.mark.spark
@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_batch_that_is_run_again_is_in_the_target_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr
    assert "batches: [0, 1] [0, 1]" in done.stdout
    assert "batch 1 again: [1] [1]" in done.stdout
    assert "200 rows in orders, batches counted: [(0, 100), (1, 100)]" in done.stdout
