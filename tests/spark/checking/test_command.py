"""`epochgate check --master` refuses early, and Spark stays out without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from epochgate.cli import main

WITHOUT = """
import sys
from epochgate.cli import main
code = main(["check", "reference", "--set", "N=1", "--set", "C=1", "--set", "K=1"])
sys.exit(9 if {"pyspark", "py4j"} & {*sys.modules} else code)
"""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["reference", "--simulate", "5"], "--simulate takes no --master"),
        (["reference", "--depth-first", "--workers", "2"], "--depth-first, --workers"),
        (["reference", "--master", "spark://host:7077"], "needs a directory that all hosts see"),
        (["live"], "runs without end"),
        (["live", "--partial-order"], "runs without end"),
    ],
)
def test_it_is_refused_before_spark_starts(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--master", "local[2]", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_without_a_master_pyspark_is_not_imported() -> None:
    assert subprocess.run([sys.executable, "-c", WITHOUT], check=False, timeout=120).returncode == 0
