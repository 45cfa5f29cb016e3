"""An archive of classes: driver and executors map it, and another Java starts without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from epochgate import cli
from epochgate.spark.java import ClassArchiveMissing
from epochgate.spark.session import local_session
from tests.spark.running import command, executors

CLUSTER = "local-cluster[1,1,1024]"


def counted(spark: Any) -> int:
    return int(spark.sparkContext.parallelize(range(4), 2).map(str).count())


def maps(process: psutil.Process, file: Path) -> bool:
    return any(one.path == str(file) for one in process.memory_maps())


@pytest.mark.spark
@pytest.mark.deep
@pytest.mark.timeout(300)
def test_driver_and_executors_map_the_archive_that_the_command_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    archive = tmp_path / "a folder" / "spark.jsa"
    archive.parent.mkdir()
    command_line = [sys.executable, "-m", "epochgate", "class-archive", str(archive)]
    said = subprocess.check_output(command_line, text=True, timeout=120).splitlines()
    assert said[0].endswith(" MB")
    assert [line.partition("=")[0] for line in said[1:]] == [
        "spark.driver.defaultJavaOptions",
        "spark.executor.defaultJavaOptions",
    ]
    with local_session(CLUSTER, class_archive=archive) as spark:
        assert counted(spark) == 4
        (driver,) = (one for one in psutil.Process().children() if "pyspark-shell" in command(one))
        assert [maps(one, archive) for one in (driver, *executors())] == [True, True]


@pytest.mark.spark
@pytest.mark.deep
@pytest.mark.timeout(300)
def test_an_archive_of_another_java_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    archive = tmp_path / "other.jsa"
    archive.write_bytes(b"none that a JVM has written" * 1000)
    with local_session(CLUSTER, class_archive=archive) as spark:
        assert counted(spark) == 4


def test_a_session_without_its_archive_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with (
        pytest.raises(ClassArchiveMissing, match=r"`epochgate class-archive /.*/none\.jsa` makes"),
        local_session(class_archive=tmp_path / "none.jsa"),
    ):
        pass


def test_a_folder_that_does_not_exist_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["class-archive", str(tmp_path / "none" / "spark.jsa")]) == cli.MISUSE
    assert f"the folder {tmp_path / 'none'} does not exist" in capsys.readouterr().err


def test_an_archive_that_exists_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spark.jsa").write_bytes(b"kept")
    assert cli.main(["class-archive", str(tmp_path / "spark.jsa")]) == cli.MISUSE
    assert "exists already; remove it, or name another file" in capsys.readouterr().err
    assert (tmp_path / "spark.jsa").read_bytes() == b"kept"
