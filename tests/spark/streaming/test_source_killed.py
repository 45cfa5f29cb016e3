"""Drivers that read by our source are killed at random moments: each row is in one batch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.streaming import reading_program

pytestmark = [pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(1800)]

ROWS, KILLS = 10, 20
ROOT = Path(__file__).parents[3]


def land(folder: Path, number: int) -> None:
    """A file that is there as a whole at once."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    made = folder / f"{number:03}.made"
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), made)
    made.rename(folder / "landing" / f"{number:03}.parquet")


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, reading_program.__file__, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("seed", range(2))
def test_each_row_is_in_one_batch_whenever_the_driver_is_killed(tmp_path: Path, seed: int) -> None:
    chance, files = random.Random(seed), 6
    kills = int(os.environ.get("EPOCHGATE_KILLS", KILLS))
    (tmp_path / "landing").mkdir()
    for number in range(files):
        land(tmp_path, number)
    for _ in range(kills):
        with start(tmp_path) as driver:
            assert driver.stdout is not None
            batches = chance.randrange(3)
            while batches and driver.stdout.readline():
                batches -= 1
            land(tmp_path, files)
            files += 1
            time.sleep(chance.random())
            driver.send_signal(signal.SIGKILL)
    with start(tmp_path) as last:
        said = last.communicate(timeout=600)[0]
    assert last.returncode == 0, said
    written = [pq.read_table(file)["id"] for file in sorted((tmp_path / "out").glob("*/*.parquet"))]
    assert sorted(one for of in written for one in of.to_pylist()) == list(range(files * ROWS))
