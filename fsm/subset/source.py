"""Where the source of a guard or action stands, and its syntax tree.

Each file is read and parsed once, through `linecache`, which also finds what stands in an archive
or what IPython and doctest keep.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from epochgate.fsm.errors import DeclarationError

FILES_KEPT_MAX = 64


@lru_cache(maxsize=FILES_KEPT_MAX)
def _definitions(path: str, text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name, first] = node
    return found


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function.

    Raises DeclarationError when its source cannot be read, as for one typed at a prompt.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        return _definitions(code.co_filename, text)[code.co_name, code.co_firstlineno]
    except (KeyError, SyntaxError) as error:
        raise DeclarationError(
            f"{code.co_filename}:{code.co_firstlineno}: the source of {function.__qualname__} "
            f"cannot be read and checked to stay within the subset; put "
            f"the function into a file, or declare the class with `unchecked=True` and do without "
            f"the check"
        ) from error
