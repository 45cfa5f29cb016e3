"""The table of the contract: nothing in it is empty, and everything that it names is there."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "contract.md"
ABSENT = "not here:"
HEADER = ["Flink", "epochgate", "shown by"]
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
TEST = re.compile(r"`(tests/[\w/.]+\.(?:py|txt))(?:::(\w+))?`")


@dataclasses.dataclass(frozen=True)
class Line:
    """One row of a table, and the modules of whose names its section speaks."""

    number: int
    modules: tuple[str, ...]
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return f"line {self.number}: {self.cells[0]}"


def lines_of_the_contract() -> list[Line]:
    found: list[Line] = []
    modules: tuple[str, ...] = ()
    for number, text in enumerate(CONTRACT.read_text(encoding="utf-8").splitlines(), 1):
        if text.startswith("Names of "):
            modules = tuple(NAME.findall(text))
        if not text.startswith("|"):
            continue
        cells = tuple(cell.strip() for cell in text.strip("|").split("|"))
        if list(cells) != HEADER and set("".join(cells)) != {"-"}:
            found.append(Line(number, modules, cells))
    return found


LINES = lines_of_the_contract()


def resolves(name: str, modules: tuple[str, ...]) -> bool:
    """Whether `name` is an attribute, a field, or a method of something in one of the modules."""
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
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_contract_is_a_table() -> None:
    assert len(LINES) > 100
    assert len({line.cells[0] for line in LINES}) == len(LINES)


def test_no_cell_is_empty() -> None:
    assert not [str(line) for line in LINES if len(line.cells) != 3]
    assert not [str(line) for line in LINES if not all(re.search(r"\w", c) for c in line.cells)]


def test_every_row_names_what_is_there_or_says_why_it_is_not() -> None:
    offered = [line for line in LINES if not line.cells[1].startswith(ABSENT)]
    assert not [str(line) for line in offered if not NAME.search(line.cells[1])]
    assert not [
        f"{line} names {name}"
        for line in offered
        for name in NAME.findall(line.cells[1])
        if not resolves(name, line.modules)
    ]


def test_every_row_is_shown_by_tests_that_are_there() -> None:
    problems = []
    for line in LINES:
        tests = TEST.findall(line.cells[2])
        if bool(tests) == line.cells[1].startswith(ABSENT):
            problems.append(f"{line}: {line.cells[2]}")
        for file, name in tests:
            if not (ROOT / file).is_file() or bool(name) != file.endswith(".py"):
                problems.append(f"{line} is shown by {file}")
            elif name and name not in functions(file):
                problems.append(f"{line} is shown by {name}")
    assert not problems
