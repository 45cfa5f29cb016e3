"""Each module that ships is used by what ships: none is reached by tests alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("fsm", "models", "runtime", "spark", "diagrams", "epochgate")
BEGINNINGS = {
    "epochgate.__main__": "`python -m epochgate`",
    "epochgate.benchmarks.flink.__main__": "`make bench-flink`",
    "epochgate.benchmarks.peers.__main__": "`make bench-ingest-peers`",
    "epochgate.benchmarks.peers.programs.dlt_load": "a process of its own, by `loaders`",
    "epochgate.benchmarks.peers.programs.oal_load": "a process of its own, by `loaders`",
    "epochgate.diagrams.bundled": "a process of its own, by `layout`",
    "epochgate.fsm.mypy_plugin": "mypy loads it by name",
    "epochgate.models.studies.flink.failover": "a design of Flink that tests compare with",
    "epochgate.testing.plugin": "pytest loads it by name",
}
"""Modules that nothing imports, and who begins with them."""

LISTED = ("commands", "benchmarks")
"""Rooms whose modules the command line finds by their names."""


def modules() -> dict[str, list[Path]]:
    """Module -> its file, and its stub; packages aside."""
    found: dict[str, list[Path]] = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py*"):
            if path.suffix in (".py", ".pyi") and not path.is_symlink():
                parts = path.relative_to(ROOT).with_suffix("").parts
                name = ".".join(parts if room == "epochgate" else ("epochgate", *parts))
                found.setdefault(name, []).append(path)
    return found


def named(path: Path) -> Iterator[str]:
    """Return what a file imports, and names of modules that stand in its texts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0]


def test_no_module_is_reached_by_tests_alone() -> None:
    known = modules()
    reached = {
        name for m, paths in known.items() for path in paths for name in named(path) if name != m
    }
    left = {name for name in known if name.rpartition(".")[2] != "__init__"} - reached
    left -= {
        f"epochgate.{room}.{p.stem}"
        for room in LISTED
        for p in (ROOT / "epochgate" / room).iterdir()
    }
    assert left == set(BEGINNINGS)
