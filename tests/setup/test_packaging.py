"""The two distributions hold every file of the package once, under the import name, and nothing
that is only for us.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate import __version__, proving
from epochgate.cli import COMMANDS
from tests.setup.distributions import (
    PROJECTS,
    ROOT,
    build,
    build_both,
    metadata_of,
    names_in,
    wheel_of,
)

LINKS = ("diagrams", "fsm", "models", "runtime", "spark")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build_both(folder, "wheel", "sdist")
    return folder


def files_of_the_package() -> Iterator[str]:
    for folder, folders, names in os.walk(ROOT / "epochgate", followlinks=True):
        folders[:] = [name for name in folders if name not in ("__pycache__", "generated")]
        here = Path(folder).relative_to(ROOT).as_posix()
        yield from (f"{here}/{name}" for name in names if name != "ruff.toml")


def shipped(distribution: str, folder: Path) -> set[str]:
    names = names_in(wheel_of(distribution, folder))
    return {name for name in names if ".dist-info/" not in name}


def is_of_the_kit(file: str) -> bool:
    path = Path(file)
    if path.parent.name == "pages":
        return path.name in proving.TEMPLATES
    parts = path.with_suffix("").parts
    return any(".".join(parts[:length]) in proving.MODULES for length in range(2, len(parts) + 1))


def test_the_import_name_links_to_the_folders_beside_it() -> None:
    assert {name: os.readlink(ROOT / "epochgate" / name) for name in LINKS} == {
        name: f"../{name}" for name in LINKS
    }
    assert os.readlink(ROOT / "proving" / "epochgate") == "../epochgate"


def test_the_wheels_share_out_all_files_of_the_package(built: Path) -> None:
    files = set(files_of_the_package())
    kit = {file for file in files if is_of_the_kit(file)}
    assert shipped("epochgate_proving", built) == kit
    assert shipped("epochgate", built) == files - kit


def test_each_name_of_the_kit_is_a_module_or_a_template() -> None:
    stems = [file.removesuffix(".py").removesuffix("/__init__") for file in files_of_the_package()]
    assert {name.replace("/", ".") for name in stems} >= proving.MODULES
    assert {path.name for path in (ROOT / "epochgate/pages").iterdir()} >= proving.TEMPLATES


@pytest.mark.parametrize("distribution", PROJECTS)
def test_a_wheel_holds_plain_folders_and_the_licence(built: Path, distribution: str) -> None:
    with zipfile.ZipFile(wheel_of(distribution, built)) as archive:
        assert not [i.filename for i in archive.infolist() if i.external_attr >> 28 == 0o12]
        [licence] = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_a_distribution_needs_no_more_than_it_runs_with(built: Path) -> None:
    core = {
        name: [
            line.split()[1].split(">")[0].split("<")[0]
            for line in metadata_of(wheel_of(name, built))
            if line.startswith("Requires-Dist:") and "extra ==" not in line
        ]
        for name in PROJECTS
    }
    assert core == {
        "epochgate": ["jinja2", "msgpack", "rich", "shtab", "transitions"],
        "epochgate_proving": [f"epochgate=={__version__}", "hypothesis", "llvmlite", "numpy"],
    }


def project_of(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return project


def test_the_page_lists_the_commands_and_extras_of_each() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    listed = {
        row[1]: [set(re.findall(r"`([a-z-]+)`", cell)) for cell in row[2].split("|")]
        for row in re.finditer(r"^\| (commands|extras) \| (.*) \|$", page, re.MULTILINE)
    }
    extras = [set(project_of(f)["optional-dependencies"]) for f in PROJECTS.values()]
    assert listed["commands"] == [{*COMMANDS} - proving.COMMANDS, proving.COMMANDS]
    assert listed["extras"] == [extras[0] - {"dev"}, extras[1]]


def test_both_have_the_version_of_the_package() -> None:
    assert {project_of(folder)["version"] for folder in PROJECTS.values()} == {__version__}


@pytest.mark.parametrize("distribution", PROJECTS)
def test_the_wheel_made_from_the_source_archive_is_the_same(
    built: Path, tmp_path: Path, distribution: str
) -> None:
    [archive] = built.glob(f"{distribution}-*.tar.gz")
    # What `extractall` asks for differs between the releases of Python 3.11.
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True, timeout=60)
    unpacked = next(tmp_path.iterdir())
    build(unpacked, tmp_path / "again", "wheel")
    again = names_in(wheel_of(distribution, tmp_path / "again"))
    assert again == names_in(wheel_of(distribution, built))
