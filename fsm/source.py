"""The source of a class, a row, a guard or an action: its place, and the syntax tree of the latter
two.

Each file is read and parsed once, through `linecache`, which also finds what stands in an archive
or what IPython and doctest keep.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from epochgate.fsm.errors import DeclarationError

FILES_KEPT_MAX = 64


@dataclass(frozen=True)
class Contents:
    """The declarations in a file. functions: name and first line -> the syntax tree. classes: name
    -> the first class of that name.
    """

    functions: dict[tuple[str, int], ast.FunctionDef]
    classes: dict[str, ast.ClassDef]

    @cached_property
    def rows(self) -> dict[tuple[str, str], list[tuple[str, int]]]:
        """Class and trigger -> each `Row` and `Ignore` written there for it: the last text in it,
        which is the reason, and its line.
        """
        found: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for name, owner in self.classes.items():
            for node in ast.walk(owner):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Row", "Ignore"):
                    texts = [text for text in map(_text, node.args) if text is not None]
                    if texts:
                        found.setdefault((name, texts[0]), []).append((texts[-1], node.lineno))
        return found


def _text(node: ast.expr) -> str | None:
    """The text that an expression is, if it is one."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@lru_cache(maxsize=FILES_KEPT_MAX)
def _contents(path: str, text: str) -> Contents:
    functions: dict[tuple[str, int], ast.FunctionDef] = {}
    classes: dict[str, ast.ClassDef] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            functions[node.name, first] = node
        elif isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, node)
    return Contents(functions, classes)


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function.

    Raises DeclarationError when its source cannot be read, as for one typed at a prompt.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        return _contents(code.co_filename, text).functions[code.co_name, code.co_firstlineno]
    except (KeyError, SyntaxError) as error:
        raise DeclarationError(
            f"{code.co_filename}:{code.co_firstlineno}: the source of {function.__qualname__} "
            f"cannot be read and checked to stay within the subset; put "
            f"the function into a file, or declare the class with `unchecked=True` and do without "
            f"the check"
        ) from error


def _home(owner: type) -> tuple[str, Contents]:
    """The file of a class, and what is declared there: nothing if that cannot be read."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None) or "<unknown>"
    try:
        return file, _contents(file, "".join(linecache.getlines(file)))
    except SyntaxError:
        return file, Contents({}, {})


def class_place(owner: type) -> tuple[str, int]:
    """The file and line of a class; line 0 if it was not written in the file."""
    file, contents = _home(owner)
    found = contents.classes.get(owner.__name__)
    return file, 0 if found is None else found.lineno


_WRITTEN_AT: dict[tuple[str, int], tuple[str, int]] = {}


def stand_for(file: str, line: int, place: tuple[str, int]) -> None:
    """Have a line of text that was made, or with line 0 any other line of it, told as a place that
    a person has written.
    """
    _WRITTEN_AT[file, line] = place


def written_at(file: str, line: int) -> tuple[str, int]:
    """The place that a person has written, of which this line is."""
    return _WRITTEN_AT.get((file, line)) or _WRITTEN_AT.get((file, 0)) or (file, line)


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
        file, contents = _home(base)
        for reason, line in contents.rows.get((base.__name__, trigger), ()):
            if because in ("", reason):
                return file, line
    return class_place(machine)


def names_in(method: Callable[..., Any]) -> set[str]:
    """The names of all attributes that a method uses."""
    return {n.attr for n in ast.walk(definition(method)) if isinstance(n, ast.Attribute)}
