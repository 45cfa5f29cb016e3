"""The user's own modules that a program needs travel with it; nothing else has to be said."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import epochgate
from epochgate.benchmarks.contenders import cleaning_step
from epochgate.spark.program_pickling import pickled
from epochgate.spark.shipping import build_archive
from epochgate.spark.user_modules import user_modules

MODULE = """
from epochgate.fsm.checker import check
from epochgate.models.job import Job
from epochgate.runtime import Program, Work
from epochgate.spark.job import run_job
from {package}.limits import LIMIT, doubled

class Mine(Program):
    operators = {{}}

    def work(self):
        return Work.ENDED

    def metrics(self):
        return {{"limit": doubled(LIMIT)}}

def make(subtask):
    return Mine()

def main(spark):
    return run_job(spark, None, make, store=None)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package that this process alone can import."""
    name = "project_of_a_user"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "limits.py").write_text("LIMIT = 21\ndef doubled(x): return 2 * x\n")
    (tmp_path / name / "job.py").write_text(MODULE.format(package=name))
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def limit_in_a_worker(data: bytes, folder: Path) -> str:
    """Tell what the program says in a process that has the archive before an installed package."""
    (folder / "program").write_bytes(data)
    archive = build_archive(folder)
    script = (
        "import sys, pickle\n"
        f"sys.path.insert(0, {str(archive)!r})\n"
        f"program = pickle.load(open({str(folder / 'program')!r}, 'rb'))(0)\n"
        "import epochgate\n"
        "assert epochgate.__file__.startswith(sys.path[0]), epochgate.__file__\n"
        "print(program.work().name, program.metrics())\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
        check=False,
    )
    return outcome.stdout or outcome.stderr


@pytest.mark.versions
def test_a_program_beside_run_job_in_a_module_of_a_project_travels_by_itself(
    tmp_path: Path, package: str
) -> None:
    module = importlib.import_module(f"{package}.job")
    assert limit_in_a_worker(pickled(module.make, ()), tmp_path) == "ENDED {'limit': 42}\n"


def test_a_module_that_cannot_travel_is_left_to_the_executors(tmp_path: Path, package: str) -> None:
    (tmp_path / package / "limits.py").write_text(
        "import threading\nLIMIT = 21\nlock = threading.Lock()\n"
        "def doubled(x):\n    with lock:\n        return 2 * x\n"
    )
    module = importlib.import_module(f"{package}.job")
    data = pickled(module.make, ())
    told = limit_in_a_worker(data, tmp_path)
    assert f"ModuleNotFoundError: No module named '{package}'" in told


def test_only_modules_of_the_user_are_the_users(package: str) -> None:
    importlib.import_module(f"{package}.job")
    assert cleaning_step() is not None
    names = {module.__name__ for module in user_modules()}
    assert {package, f"{package}.job", f"{package}.limits", __name__} <= names
    assert not {
        name
        for name in names
        if name.split(".")[0] in ("epochgate", "pyspark", "pyarrow", "pytest", "json", "__main__")
    }


def test_every_module_of_the_package_is_in_the_archive(tmp_path: Path) -> None:
    root = Path(epochgate.__path__[0])
    names = set(zipfile.ZipFile(build_archive(tmp_path)).namelist())
    sources = [*root.glob("*.py")]
    for folder in (path for path in root.iterdir() if path.is_dir()):
        sources += (
            folder / file.relative_to(folder.resolve()) for file in folder.resolve().rglob("*.py")
        )
    wanted = {f"epochgate/{source.relative_to(root).as_posix()}" for source in sources}
    assert len(wanted) > 300
    assert wanted - names == set()
    assert {f"{name}c" for name in wanted} - names == set()
