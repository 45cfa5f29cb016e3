"""The code of the models, without comments and docstrings: its change may change a verdict."""

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
    models = tuple(module for module in imported if module.startswith(MODELS))
    return ast.dump(without_docstrings(tree)), models


def without_docstrings(node: ast.AST) -> ast.AST:
    """Remove each docstring from a syntax tree, in place, and return the tree."""
    _DocstringRemover().visit(node)
    return node


class _DocstringRemover(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
