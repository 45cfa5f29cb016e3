"""A client of Spark Connect: sink, frames, `once` and controls need nothing of its Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate.spark.home import make_spark_home
from epochgate.spark.java import use_java
from tests.spark.streaming.queries import ROWS_PER_FILE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.deep,
    pytest.mark.versions,
    pytest.mark.timeout(600),
]
ROOT = Path(__file__).parents[3]


def test_each_batch_is_there_once_through_a_server_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="pyspark 3.5 brings no server of Connect")
    pytest.importorskip("grpc", reason="the client of Spark Connect is not installed")
    use_java()
    home = make_spark_home(tmp_path)
    # From the package that is installed, which is compiled, the server's workers start in half the
    # time that they take from Spark's archive of it, and are given ten seconds.
    (home / "python").unlink()
    program = [sys.executable, "-m", "tests.spark.streaming.connect_program", str(tmp_path)]
    own = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        program, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, timeout=580
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "batches": [[0, 1], [1, 2]],
        "is_once": True,
        "frames": 3,
        "calls": [[0, 1, 2], [2]],
        "sums": ['{"sum(id)":145}', '{"sum(id)":245}', '{"sum(id)":45}'],
        "without a name": True,
        "steered": [[0, 1, 2, 3], [3, 4]],
        "limits": [[900], [900], [900], [900], [700]],
        "in force from": 4,
        "metrics": {"decisions_kept": 5, "pending": 0, "updated": 1},
        "without a checkpoint": True,
        "chosen": [[0, 1], [1, 2]],
        "chosen limits": [[899], [898], [897]],
        "decided limits": [899, 898, 897],
        "calls of the coordinator": [
            ["start", 0],
            ["choose", 0, None],
            ["choose", 1, ROWS_PER_FILE],
            ["start", 2],
            ["choose", 2, ROWS_PER_FILE],
        ],
    }
