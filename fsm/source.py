"""Where a class, a row, a guard or an action stands, and the syntax tree of the latter two.

Each file is read and parsed once, through `linecache`, which also finds what stands in an archive
or what IPython and doctest keep.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from epochgate.fsm.errors import DeclarationError

FILES_KEPT_MAX = 64
CLASSES_KEPT_MAX = 256


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


@lru_cache(maxsize=CLASSES_KEPT_MAX)
def _class_text(module: str, name: str) -> tuple[str, int, str]:
    """The file of a class, its line, and the text from there on; line 0 and no text if the class
    was not written in a file.
    """
    file = getattr(sys.modules.get(module), "__file__", None) or "<unknown>"
    text = "".join(linecache.getlines(file))
    begun = re.search(rf"^ *class {re.escape(name)}\b", text, re.MULTILINE)
    if begun is None:
        return file, 0, ""
    return file, text.count("\n", 0, begun.start()) + 1, text[begun.start() :]


def class_place(owner: type) -> tuple[str, int]:
    """The file and line of a class; line 0 if it was not written in the file."""
    file, line, _ = _class_text(owner.__module__, owner.__name__)
    return file, line


def origin(machine: type, row: object) -> str:
    """Name the first of the machine's classes whose table has this row."""
    return next(
        base.__qualname__
        for base in reversed(machine.__mro__)
        if any(each is row for each in getattr(base, "ROWS", ()))
    )


def row_place(machine: type, trigger: str, because: str = "") -> tuple[str, int]:
    """The file and line of a row of a machine, or of its first one for the trigger; those of its
    class if no row is found.
    """
    for base in machine.__mro__[:-2]:
        file, line, text = _class_text(base.__module__, base.__name__)
        pattern = rf'(?:Row|Ignore)\(\s*"{re.escape(trigger)}",[^\n]*{re.escape(because)}'
        if found := re.search(pattern, text):
            return file, line + text.count("\n", 0, found.start())
    return class_place(machine)
