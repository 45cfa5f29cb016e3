"""Both distributions as they are built, and environments into which they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECTS = {"epochgate": ROOT, "epochgate_proving": ROOT / "proving"}
"""Distribution -> the folder of its pyproject.toml."""


def build(folder: Path, into: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    for target in targets:
        command += ["-t", target]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stderr


def build_both(into: Path, *targets: str) -> None:
    for folder in PROJECTS.values():
        build(folder, into, *targets)


def wheel_of(distribution: str, folder: Path) -> Path:
    [wheel] = folder.glob(f"{distribution}-*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def metadata_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return archive.read(name).decode().splitlines()


class Environment:
    """A virtual environment with the libraries of this one, and the wheels that it is given."""

    def __init__(self, folder: Path, *wheels: Path) -> None:
        self.bin = folder / "venv" / "bin"
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")],
            check=True,
            timeout=60,
        )
        libraries = folder / "libraries"
        libraries.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if "epochgate" not in entry.name and entry.suffix != ".pth":
                (libraries / entry.name).symlink_to(entry)
        [site] = (folder / "venv" / "lib").glob("python*/site-packages")
        (site / "libraries.pth").write_text(f"{libraries}\n")
        install = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        install += ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*install, *map(str, wheels)], check=True, timeout=100)

    def run(
        self, folder: Path, *command: str, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in `folder`."""
        path = os.pathsep.join([str(self.bin), os.environ["PATH"]])
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYSPARK_PYTHON")}
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=folder,
            env={**kept, "PATH": path},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
