"""The versions of Spark and Python that are known to work, and what is said of others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from epochgate.spark.versions import PYTHON, SPARK, SparkTooOld, version_warnings
from tests.versions.environments import COMBINATIONS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def minor(version: str) -> tuple[int, int]:
    first, second, *_ = version.split(".")
    return int(first), int(second)


def test_what_is_called_tested_is_what_the_environments_run() -> None:
    assert set(SPARK) == {minor(one.spark) for one in COMBINATIONS}
    assert set(PYTHON) == {minor(one.python) for one in COMBINATIONS}


def test_the_metadata_names_the_pythons_that_were_tested_and_allows_every_spark_that_was() -> None:
    prefix = "Programming Language :: Python :: "
    named = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert {minor(version) for version in named if "." in version} == set(PYTHON)
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(
        f">={'.'.join(map(str, PYTHON[0]))}"
    )
    extra = PROJECT["optional-dependencies"]["spark"]
    (pyspark,) = [name.removeprefix("pyspark") for name in extra if name.startswith("pyspark")]
    assert all(SpecifierSet(pyspark).contains(one.spark) for one in COMBINATIONS)
    assert not SpecifierSet(pyspark).contains("3.4.4")


def test_the_readme_names_every_combination() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (3\.\d|4\.\d) \| ([\d., ]+) \| ([\d., ]+) \|", text)
    told = {
        (spark, python)
        for _, sparks, pythons in rows
        for spark in sparks.split(", ")
        for python in pythons.split(", ")
    }
    assert told == {(one.spark, one.python) for one in COMBINATIONS}
    assert len(rows) == len(SPARK)


@pytest.mark.parametrize("spark", ["3.4.4", "2.4.8"])
def test_an_older_spark_is_refused_with_those_that_work(spark: str) -> None:
    with pytest.raises(SparkTooOld, match=rf"Spark is {spark}, and .* works on 3\.5 to 4\.3"):
        version_warnings(spark, (3, 11))


def test_what_was_not_tried_is_a_warning_that_names_what_was() -> None:
    spark, python = version_warnings("4.9.0", (3, 99))
    assert spark == "Spark is 4.9.0, and epochgate is tested on 3.5 to 4.3: run a small job first"
    assert python.startswith("Python is 3.99, and epochgate is tested on 3.11 to 3.13")


@pytest.mark.parametrize("spark", ["3.5.9", "4.3.0", "4.3.0-amzn-1", "4.3.1-SNAPSHOT", "unknown"])
def test_a_build_of_a_tested_version_needs_no_word(spark: str) -> None:
    assert version_warnings(spark, (3, 11)) == []
