"""Runs the tests marked `versions` on several versions of Spark and Python, each in an environment
of its own: `make versions`.

Decides which versions go together: every Spark at least once, each with a Python that it supports,
and the newest with every Python. What cannot be tried on this machine, because there is no such
Python, is said at the end. The packages beside pyspark are the newest that the metadata allows, as
a user gets them. Run it as a module, from the checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-versions"
TOOLS = ("hypothesis>=6.150,<7", "pytest>=9", "pytest-timeout>=2.4", "pytest-xdist>=3.8")
CONNECT = (
    "googleapis-common-protos>=1.71",
    "grpcio>=1.76",
    "grpcio-status>=1.76",
    "zstandard>=0.25",
)
TEST_TIMEOUT_S = 180


class Combination(NamedTuple):
    spark: str
    python: str

    @property
    def folder(self) -> Path:
        return FOLDER / f"spark-{self.spark}-python-{self.python}"

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"


COMBINATIONS = (
    Combination("3.5.0", "3.11"),
    Combination("3.5.9", "3.11"),
    Combination("4.0.5", "3.12"),
    Combination("4.1.4", "3.13"),
    Combination("4.2.1", "3.11"),
    Combination("4.3.0", "3.11"),
    Combination("4.3.0", "3.12"),
    Combination("4.3.0", "3.13"),
)


def pythons(version: str) -> Iterator[str]:
    """Interpreters of this name: on the path, and those that pyenv has installed."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))


def python_of(version: str) -> str | None:
    """The first of them that starts: a shim may stand for one that is not chosen."""
    for python in pythons(version):
        tried = subprocess.run([python, "-c", ""], capture_output=True, timeout=60, check=False)
        if tried.returncode == 0:
            return python
    return None


def pip(python: Path | str, *arguments: str) -> None:
    subprocess.run(
        [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        cwd=ROOT,
        check=True,
    )


def pyspark_wheel(version: str) -> Path:
    """It is built once for all Pythons, since that takes longer than everything else."""
    wheels = FOLDER / "wheels"
    if not (found := list(wheels.glob(f"pyspark-{version}-*.whl"))):
        pip(sys.executable, "wheel", "--no-deps", f"pyspark=={version}", "-w", str(wheels))
        found = list(wheels.glob(f"pyspark-{version}-*.whl"))
    return found[0]


def make(combination: Combination, python: str) -> None:
    """Make the environment, unless it is there and newer than what says how to."""
    stamp = combination.folder / "installed"
    sources = (ROOT / "pyproject.toml", Path(__file__))
    if stamp.exists() and stamp.stat().st_mtime >= max(one.stat().st_mtime for one in sources):
        return
    if not combination.interpreter.exists():
        subprocess.run([python, "-m", "venv", str(combination.folder)], check=True)
    wheel = str(pyspark_wheel(combination.spark))
    pip(combination.interpreter, "install", wheel, *TOOLS, *CONNECT)
    pip(combination.interpreter, "install", "--editable", ".[spark,check,demo,objects,delta]")
    stamp.touch()


def marked_files() -> list[str]:
    """Those with the mark: collecting all others takes longer than running some of these."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file) for file in files if "pytest.mark.versions" in file.read_text("utf-8")]


def run(combination: Combination, arguments: list[str]) -> int:
    """Run the tests, with this environment's Python for the workers; pytest's exit code."""
    path = os.pathsep.join([str(combination.interpreter.parent), os.environ["PATH"]])
    command = [str(combination.interpreter), "-m", "pytest", "-q", "-m", "versions"]
    # Older versions of pyspark leave sockets to the garbage collector, which warns of it.
    timeout = ["-W", "default", "--timeout", str(TEST_TIMEOUT_S), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *timeout, *(arguments or marked_files())],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        check=False,
    )
    return done.returncode


def outcome(combination: Combination, arguments: list[str]) -> str:
    python = python_of(combination.python)
    if python is None:
        return f"not tried: there is no Python {combination.python} on this machine"
    started_s = time.monotonic()
    make(combination, python)
    code = run(combination, arguments)
    took = f"{time.monotonic() - started_s:.0f} s"
    return f"passed in {took}" if code == 0 else f"FAILED in {took}, exit code {code}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", help="only this version")
    parser.add_argument("--python", help="only this version")
    parser.add_argument("tests", nargs="*", help="files of tests, all by default")
    asked = parser.parse_args()
    chosen = [
        one
        for one in COMBINATIONS
        if asked.spark in (None, one.spark) and asked.python in (None, one.python)
    ]
    outcomes = {}
    for one in chosen:
        print(f"Spark {one.spark} on Python {one.python}", flush=True)
        outcomes[one] = outcome(one, asked.tests)
    for one, came in outcomes.items():
        print(f"Spark {one.spark} on Python {one.python}: {came}")
    has_passed = any(came.startswith("passed") for came in outcomes.values())
    return int(not has_passed or any(came.startswith("FAILED") for came in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
