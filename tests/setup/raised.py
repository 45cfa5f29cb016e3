"""Which errors a function raises by itself, read from its source.

Follows the helpers of its own module and class whose names begin with an underscore, and factories
of errors that are raised as `raise _helper(...)`. What it calls elsewhere, or through an object, it
does not follow; nor errors that its own `try` may catch, which it therefore names too often.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

OWN_FAULTS = {"AssertionError", "InvariantBroken", "InvariantViolated", "StopIteration"}
"""What nobody who calls has brought about, or has to handle."""


def raised(function: Callable[..., Any], owner: type | None = None) -> set[str]:
    """The names of the errors; `owner` is the class whose method it is."""
    found: set[str] = set()
    waiting, seen = [function], {function}
    while waiting:
        current = waiting.pop()
        names = vars(sys.modules[current.__module__])
        for node in _statements(current):
            if isinstance(node, ast.Raise) and node.exc is not None:
                found |= _errors(node.exc, names, owner)
            elif isinstance(node, ast.Call):
                helper = _helper(node.func, names, owner)
                if helper is not None and helper not in seen:
                    seen.add(helper)
                    waiting.append(helper)
    return found - OWN_FAULTS


def _statements(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """What runs when the function is called: not what it defines."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    waiting: list[ast.AST] = list(getattr(definition, "body", []))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _errors(raised: ast.expr, names: dict[str, Any], owner: type | None) -> set[str]:
    what = raised.func if isinstance(raised, ast.Call) else raised
    if isinstance(what, ast.Name):
        thing = names.get(what.id, getattr(builtins, what.id, None))
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            return {thing.__name__}
    maker = _helper(what, names, owner)
    if maker is None:
        return set()
    made: Any = get_type_hints(maker).get("return")
    is_error = inspect.isclass(made) and issubclass(made, BaseException)
    return {str(made.__name__)} if is_error else set()


def _helper(
    called: ast.expr, names: dict[str, Any], owner: type | None
) -> Callable[..., Any] | None:
    thing: Any = None
    if isinstance(called, ast.Name) and called.id.startswith("_"):
        thing = names.get(called.id)
    elif isinstance(called, ast.Attribute) and called.attr.startswith("_"):
        is_own = isinstance(called.value, ast.Name) and called.value.id in ("self", "cls")
        thing = getattr(owner, called.attr, None) if is_own else None
    return thing if inspect.isfunction(thing) or inspect.ismethod(thing) else None
