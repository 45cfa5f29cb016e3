"""A reader in whose midst a target is exchanged finds all rows once, or fails: at each of its looks
at the disk. It takes a C compiler.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.compaction import compact
from tests.spark.compaction.targets import Rows, claimed, committed

ROOT = Path(__file__).parents[3]
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("straddling") / "straddling.so"
    source = Path(__file__).with_name("straddling.c")
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(built), str(source)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return built


def plain(path: Path, checkpoints: int) -> None:
    """Checkpoints with two rows each."""
    target = claimed(path, "r1", None)
    for n in range(1, checkpoints + 1):
        committed(target, "r1", n, {"x": [10 * n, 10 * n + 1]})
    target.release()


def partitioned(path: Path, checkpoints: int) -> None:
    """Two partitions, of which one has no rows in the first checkpoint."""
    target = claimed(path, "r1", None)
    for n in range(1, checkpoints + 1):
        countries = ["FR", "DE"] if n > 1 else ["FR", "FR"]
        rows: Rows = {"x": [10 * n, 10 * n + 1], "country": countries}
        committed(target, "r1", n, rows, partition_by=("country",))
    target.release()


def straddled(
    tmp_path: Path, library: Path, reader: str, *, checkpoints: int = 6
) -> dict[str, Any]:
    """Return what a reader finds while a target is exchanged at each of its looks; two thirds of
    the checkpoints and more are merged.
    """
    target = tmp_path / "out"
    (partitioned if ":" in reader else plain)(target, checkpoints)
    before = shutil.copytree(target, tmp_path / "before")
    compact(str(target), keep_checkpoints=checkpoints // 3)
    counts = tmp_path / "counts"
    counts.write_bytes(bytes(4096))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.compaction.straddled_reader",
            reader,
            str(before),
            str(target),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "STRADDLED": str(tmp_path / "straddled"),
            "OTHER": str(tmp_path / "other"),
            "COUNTS": str(counts),
        },
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", ":country='DE'"])
@pytest.mark.parametrize("reader", ["duckdb", "pyarrow", "pandas", "polars"])
def test_a_reader_finds_each_row_once_or_fails(
    tmp_path: Path, library: Path, reader: str, where: str
) -> None:
    found = straddled(tmp_path, library, reader + where)
    assert found["wrong"] == []
    assert found["exchanged"] > 15
    assert 0 < found["errors"] < found["exchanged"]
    assert len(found["rows"]) == (5 if where else 12)


@pytest.mark.slow
def test_the_reader_of_epochgate_looks_again_and_never_fails(tmp_path: Path, library: Path) -> None:
    found = straddled(tmp_path, library, "epochgate")
    assert (found["wrong"], found["errors"]) == ([], 0)
    assert found["exchanged"] > 15


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(1600)
@pytest.mark.parametrize("where", ["", ":country='DE'"])
def test_spark_finds_each_row_once_or_fails(tmp_path: Path, library: Path, where: str) -> None:
    found = straddled(tmp_path, library, "spark" + where, checkpoints=4)
    assert found["wrong"] == []
    assert found["exchanged"] > 50
    assert 0 < found["errors"] < found["exchanged"]
