"""What the modules of the models say, comments left out: a change of it may change a verdict."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

MODELS = "epochgate.models."


def meanings(names: Iterable[str]) -> list[str]:
    """The syntax trees of modules and of all modules of the models that these import, in order."""
    todo, trees = [*names], dict[str, str]()
    while todo:
        name = todo.pop()
        if name not in trees:
            trees[name], imported = _read(name)
            todo += imported
    return [trees[name] for name in sorted(trees)]


@cache
def _read(name: str) -> tuple[str, tuple[str, ...]]:
    path = importlib.import_module(name).__file__ or ""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    imported = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return ast.dump(tree), tuple(module for module in imported if module.startswith(MODELS))
