"""Names of a package that are imported when they are first used.

Worker processes import from packages of which they need little, and every failover waits for it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from its `__init__.pyi`.

    The stub is the one list of the package's names: type checkers read its imports, and so does
    this function.
    """
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    home_of = {
        alias.name: node.module
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
    names = sorted(home_of)

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home_of[name]), name)

    return get, lambda: names, names
