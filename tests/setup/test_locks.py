"""Everything installed is pinned by version and hash, and comes from wherever pip is told."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("build.txt", "docs.txt", "locked.txt")
PROJECTS = {
    "pyproject.toml": (
        "spark",
        "metrics",
        "objects",
        "delta",
        "iceberg",
        "postgres",
        "avro",
        "xml",
        "excel",
        "sqs",
        "watch",
        "otlp",
        "dev",
    ),
    "proving/pyproject.toml": ("draw", "demo", "prove"),
}
"""The extras of each project that are installed."""


def locked(lock: str) -> dict[str, list[str]]:
    """Name to pinned versions; several versions stand for several Pythons."""
    versions: dict[str, list[str]] = {}
    for line in (ROOT / "requirements" / lock).read_text().splitlines():
        if pinned := re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", line):
            versions.setdefault(canonicalize_name(pinned[1]), []).append(pinned[2])
    return versions


def declared() -> list[Requirement]:
    texts: list[str] = []
    for path, installed in PROJECTS.items():
        project = tomllib.loads((ROOT / path).read_text())["project"]
        extras = project["optional-dependencies"]
        texts += project["dependencies"] + [text for extra in installed for text in extras[extra]]
    found = [Requirement(text) for text in texts]
    return [one for one in found if one.name != "epochgate"]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / "requirements" / lock).read_text().strip())
    assert len(entries) >= 5
    assert not [entry.split("\n")[0] for entry in entries if "--hash=sha256:" not in entry]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_to_download_from(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    assert not re.findall(r"https?:|file:|--(?:index|extra|find|trusted)\S*| @ ", text)


def test_the_lock_satisfies_what_is_declared() -> None:
    pins = locked("locked.txt")
    for requirement in declared():
        versions = pins[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_what_both_locks_name_has_one_version() -> None:
    build, everything = locked("build.txt"), locked("locked.txt")
    assert {name: build[name] for name in build.keys() & everything.keys()} == {
        name: everything[name] for name in build.keys() & everything.keys()
    }
