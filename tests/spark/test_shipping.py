"""The code that travels to executors that have nothing."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import six  # type: ignore[import-untyped]  # once imported, it looks like a package

from epochgate.spark.shipping import CARRIED_FOLDER, build_archive


def test_the_archive_holds_the_package_and_its_dependencies_and_nothing_else(
    tmp_path: Path,
) -> None:
    assert six.PY3
    archive = build_archive(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert "epochgate/fsm/machine.py" in names
    assert "epochgate/spark/wire/client.pyc" in names
    assert f"{CARRIED_FOLDER}/six.py" in names
    assert f"{CARRIED_FOLDER}/transitions/core.py" in names
    assert f"{CARRIED_FOLDER}/msgpack/fallback.py" in names
    assert {name.split("/")[0] for name in names} == {"epochgate", CARRIED_FOLDER}
    assert {name.split("/")[1] for name in names if name.startswith(CARRIED_FOLDER)} == {
        "six.py",
        "six.pyc",
        "transitions",
        "msgpack",
    }
    assert {Path(name).suffix for name in names} == {".py", ".pyc", ".pyi"}
    unpacked = sum(one.file_size for one in zipfile.ZipFile(archive).infolist())
    assert archive.stat().st_size < unpacked / 2, "every member is compressed"


def test_the_same_sources_give_the_same_name(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    assert len({build_archive(folder).name for folder in folders}) == 1


def test_a_task_can_be_imported_from_the_archive_alone(tmp_path: Path) -> None:
    archive = build_archive(tmp_path)
    script = (
        "import sys\n"
        f"sys.path[:0] = [{str(archive)!r}, {str(archive / CARRIED_FOLDER)!r}]\n"
        "import epochgate.spark.task_main, transitions, msgpack\n"
        "print(epochgate.spark.task_main.__file__, 'pyspark' in sys.modules)\n"
    )
    base = getattr(sys, "_base_executable", sys.executable)
    outcome = subprocess.run(
        [base, "-I", "-S", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert outcome.stdout == f"{archive}/epochgate/spark/task_main.pyc False\n"
