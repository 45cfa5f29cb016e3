"""The package as it is built holds every module once, under the import name, and nothing that is
only for us.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKS = ("diagrams", "fsm", "models", "runtime", "spark")


def build(folder: Path, into: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    for target in targets:
        command += ["-t", target]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "wheel", "sdist")
    return folder


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_import_name_links_to_the_folders_beside_it() -> None:
    assert {name: os.readlink(ROOT / "epochgate" / name) for name in LINKS} == {
        name: f"../{name}" for name in LINKS
    }


def test_the_wheel_holds_plain_folders_with_every_module(built: Path) -> None:
    names = names_in_wheel(next(built.glob("*.whl")))
    modules = {
        f"epochgate/{path.relative_to(ROOT)}"
        for link in LINKS
        for path in (ROOT / link).rglob("*.py*")
        if path.suffix in {".py", ".pyi"} and "studies" not in path.parts
    }
    assert modules <= names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"epochgate"}
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        assert not [i.filename for i in archive.infolist() if i.external_attr >> 28 == 0o12]


def test_the_wheel_leaves_out_what_is_only_for_us(built: Path) -> None:
    names = names_in_wheel(next(built.glob("*.whl")))
    unwanted = (
        "/generated/",
        "ruff.toml",
        "/tests/",
        "__pycache__",
        "/requirements/",
        "/benchmarks/",
        "/studies/",
    )
    assert not [name for name in names if any(part in name for part in unwanted)]
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_spark_is_not_among_the_core_dependencies(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    core = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert [line.split()[1].split(">")[0].split("<")[0] for line in core] == [
        "jinja2",
        "msgpack",
        "rich",
        "transitions",
    ]


def test_the_wheel_made_from_the_source_archive_is_the_same(built: Path, tmp_path: Path) -> None:
    archive = next(built.glob("*.tar.gz"))
    # What `extractall` asks for differs between the releases of Python 3.11.
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True, timeout=60)
    unpacked = next(tmp_path.iterdir())
    build(unpacked, tmp_path / "again", "wheel")
    again = names_in_wheel(next((tmp_path / "again").glob("*.whl")))
    assert again == names_in_wheel(next(built.glob("*.whl")))


def test_the_wheel_is_importable_without_the_checkout(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import epochgate.fsm, epochgate.models, epochgate.diagrams.layout, epochgate.spark.java\n"
        "assert epochgate.fsm.__file__.startswith(sys.argv[1]), epochgate.fsm.__file__\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
