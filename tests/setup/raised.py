"""The errors that a function raises by itself, read from its source.

Follows the helpers of its own module and class whose names begin with an underscore, and makers of
errors as in `raise _made(...)`; leaves out what a `try` around it catches for good. It follows
nothing that is called elsewhere, or through an object.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from epochgate.errors import InvariantBroken
from epochgate.runtime.testing.fuzzing.record import InvariantViolated

OWN_FAULTS = (AssertionError, InvariantBroken, InvariantViolated, StopIteration)
"""What no caller has brought about, or has to handle."""
Errors = set[type[BaseException]]


def raised(function: Callable[..., Any], owner: type | None = None) -> list[str]:
    """The names of the errors, in order; `owner` is the class whose method it is."""
    found = Search(owner).errors_of(function)
    return sorted(error.__name__ for error in found if not issubclass(error, OWN_FAULTS))


class Search:
    """One function and its helpers, each looked at once."""

    def __init__(self, owner: type | None) -> None:
        self._owner = owner
        self._known: dict[Callable[..., Any], Errors] = {}
        self._names: dict[str, Any] = {}

    def errors_of(self, function: Callable[..., Any]) -> Errors:
        """Return what a call of it raises; nothing for one that is being looked at already."""
        if function not in self._known:
            self._known[function] = set()
            outer, self._names = self._names, vars(sys.modules[function.__module__])
            definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
            self._known[function] = self._all(getattr(definition, "body", ()))
            self._names = outer
        return self._known[function]

    def _all(self, nodes: Iterable[ast.AST]) -> Errors:
        return {error for node in nodes for error in self._of(node)}

    def _of(self, node: ast.AST) -> Errors:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return set()  # what is defined is not called
        if isinstance(node, ast.Try):
            caught = tuple(error for handler in node.handlers for error in self._caught(handler))
            tried = {error for error in self._all(node.body) if not issubclass(error, caught)}
            return tried | self._all((*node.handlers, *node.orelse, *node.finalbody))
        found = self._all(ast.iter_child_nodes(node))
        if isinstance(node, ast.Raise) and node.exc is not None:
            found |= self._made(node.exc)
        elif isinstance(node, ast.Call) and (helper := self._helper(node.func)) is not None:
            found |= self.errors_of(helper)
        return found

    def _caught(self, handler: ast.ExceptHandler) -> list[type[BaseException]]:
        """Return what ends here: nothing if it may be raised on."""
        if any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler)):
            return []
        named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        things = [self._thing(name) for name in named]
        return [
            error for thing in things for error in (thing if type(thing) is tuple else (thing,))
        ]

    def _made(self, raised: ast.expr) -> Errors:
        what = raised.func if isinstance(raised, ast.Call) else raised
        error = self._thing(what)
        if not inspect.isclass(error) and (maker := self._helper(what)) is not None:
            error = get_type_hints(maker).get("return")
        return {error} if inspect.isclass(error) and issubclass(error, BaseException) else set()

    def _thing(self, name: ast.expr | None) -> Any:
        """Return what a name, with a dot or not, names in the module; None if it is not there."""
        if isinstance(name, ast.Attribute):
            return getattr(self._thing(name.value), name.attr, None)
        if isinstance(name, ast.Name):
            return self._names.get(name.id, getattr(builtins, name.id, None))
        return None

    def _helper(self, called: ast.expr) -> Callable[..., Any] | None:
        thing: Any = None
        if isinstance(called, ast.Name) and called.id.startswith("_"):
            thing = self._names.get(called.id)
        elif isinstance(called, ast.Attribute) and called.attr.startswith("_"):
            is_own = isinstance(called.value, ast.Name) and called.value.id in ("self", "cls")
            thing = getattr(self._owner, called.attr, None) if is_own else None
        return thing if inspect.isfunction(thing) or inspect.ismethod(thing) else None
