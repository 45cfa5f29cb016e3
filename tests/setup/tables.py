"""Tables in the documentation whose cells name code and tests."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
TEST = re.compile(r"`(tests/[\w/.]+\.(?:py|txt))(?:::(\w+))?`")


@dataclasses.dataclass(frozen=True)
class Line:
    """One row of a table, the modules of whose names its section speaks, and the table's header."""

    number: int
    modules: tuple[str, ...]
    cells: tuple[str, ...]
    header: tuple[str, ...]

    def __str__(self) -> str:
        return f"line {self.number}: {self.cells[0]}"


def lines_of(page: Path) -> list[Line]:
    """The rows of all tables of a page."""
    found: list[Line] = []
    modules: tuple[str, ...] = ()
    header: tuple[str, ...] | None = None
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if text.startswith("Names of "):
            modules = tuple(NAME.findall(text))
        cells = tuple(cell.strip() for cell in text.strip("|").split("|"))
        if not text.startswith("|"):
            header = None
        elif header is None:
            header = cells
        elif set("".join(cells)) != {"-"}:
            found.append(Line(number, modules, cells, header))
    return found


def owner_of(name: str, modules: tuple[str, ...]) -> Any:
    """Return what the first part of a name stands for; None where no module has it."""
    first = name.partition(".")[0]
    found = [importlib.import_module(module) for module in modules]
    return next((getattr(module, first) for module in found if hasattr(module, first)), None)


def resolves(name: str, modules: tuple[str, ...]) -> bool:
    """Return whether `name` is an attribute, a field, or a method of something in one of the
    modules.
    """
    return any(_reaches(importlib.import_module(module), name.split(".")) for module in modules)


def _reaches(owner: Any, path: list[str]) -> bool:
    if not path:
        return True
    if hasattr(owner, path[0]):
        return _reaches(getattr(owner, path[0]), path[1:])
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    return len(path) == 1 and path[0] in {field.name for field in fields}


@cache
def functions(file: str) -> set[str]:
    """The names of the functions of a program."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def missing_tests(text: str) -> list[str]:
    """The tests that a text names and that are not there."""
    problems = []
    for file, name in TEST.findall(text):
        if not (ROOT / file).is_file() or bool(name) != file.endswith(".py"):
            problems.append(file)
        elif name and name not in functions(file):
            problems.append(f"{file}::{name}")
    return problems
