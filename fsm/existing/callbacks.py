"""The guards and callbacks of a machine that was read which are checked as they are.

A guard is compiled when it is a method of the model within the subset that reads the state and
`fields` alone; else it is abstracted: it may hold or not each time it is asked. A field is an
attribute that the user says only callbacks change. It is given up, and with it the guards that read
it, when a callback outside the subset may write it, or one that runs before guards are asked.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import re
import types
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from epochgate.fsm.declaration import RESERVED
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.existing.oracle import CannotRead, Validator
from epochgate.fsm.existing.table import ReadTable
from epochgate.fsm.fields import BoolField, IntField
from epochgate.fsm.machine import Machine
from epochgate.fsm.rows import STAY, Row
from epochgate.fsm.source import definition

WRITERS = frozenset({"setattr", "delattr", "vars", "exec", "eval", "__dict__", "__setattr__"})
"""Names by which any attribute may be written."""
PHASES = ("before", "exit", "enter", "after")

Field = IntField | BoolField


def fields_of(wanted: dict[str, Any], model: Any, table: ReadTable) -> dict[str, Field]:
    """Return the fields that a user names, with the values that the model has now.

    Raises CannotRead for what is no int or bool of the model, or has a name that is taken.
    """
    name, found = table.oracle.name, dict[str, Field]()
    for field, bound in wanted.items():
        if field in table.oracle.triggers or hasattr(Machine, field) or field in RESERVED:
            raise CannotRead(
                f"fields: {field!r} of {name} is a trigger too, or a word that a machine needs; "
                f"give the attribute another name, or leave it out"
            )
        start = getattr(model, field, None)
        if not isinstance(start, int):
            raise CannotRead(
                f"fields: {name} has no attribute {field!r} that is an int or a bool now, but "
                f"{start!r}; name one that has, on a machine that was made"
            )
        if bound is bool or isinstance(bound, BoolField):
            found[field] = BoolField(bool(start))
        elif isinstance(bound, IntField):
            found[field] = IntField(bound.bound, int(start), bound.low)
        elif type(bound) is int:
            found[field] = IntField(bound, int(start))
        else:
            raise CannotRead(
                f"fields: {field!r} is given {bound!r}; give an int, its greatest value, or bool"
            )
    return found


class Callbacks:
    """The guards and callbacks of one machine: `reasons` says why a guard is abstracted."""

    def __init__(self, table: ReadTable, fields: dict[str, Any]) -> None:
        self._table = table
        # Methods of a listener have a `self` of their own, whose attributes are no fields.
        self._owners = table.oracle.owners[:1]
        self.fields = fields_of(fields, self._owners[0] if self._owners else None, table)
        self.given_up: dict[str, str] = {}
        paths = table.found.paths
        self._guards = {_key(g): g for path in paths for g, _ in path.asked}
        called = [one for path in paths for one in path.fired.callbacks]
        called += [("other", one) for one in table.oracle.others]
        self._called = {(phase, _key(one)): (phase, one) for phase, one in called}
        self._settle()

    def _settle(self) -> None:
        while True:
            self.reasons = {key: self._against(g, bool, ()) for key, g in self._guards.items()}
            self.actions = {
                key: self._against_action(phase, one) for key, (phase, one) in self._called.items()
            }
            lost = dict(self._written())
            if not lost:
                return
            for field, why in lost.items():
                del self.fields[field]
                self.given_up[field] = why

    def _written(self) -> Iterator[tuple[str, str]]:
        outside = [one for key, (_, one) in self._called.items() if self.actions[key]]
        outside += [g for key, g in self._guards.items() if self.reasons[key]]
        for one in outside:
            for field in self.fields:
                if self._may_write(one, field):
                    name = self._table.words.callback(one)
                    reason = next(
                        (r for (_, k), r in self.actions.items() if k == _key(one) and r),
                        self.reasons.get(_key(one), ""),
                    )
                    yield field, f"{name!r} may change it, and is not compiled: {reason}"

    def is_compiled(self, guard: Any) -> bool:
        """Return true if a guard is checked as it is."""
        return not self.reasons[_key(guard)]

    def compiled_actions(self, callbacks: Sequence[tuple[str, Any]]) -> list[Any]:
        """Return the callbacks of a path that are checked as they are: those that write fields."""
        return [
            one
            for phase, one in callbacks
            if phase in PHASES and not self.actions[phase, _key(one)]
            if any(self._may_write(one, field) for field in self.fields)
        ]

    def functions(self, callbacks: Sequence[Any]) -> dict[str, Any]:
        """Return the methods of a machine class for these guards and callbacks."""
        found: dict[str, Any] = {}
        for one in callbacks:
            function = without_arguments(self._method(one)[0])
            gives = bool if _key(one) in self._guards else None
            found |= self._with_helpers(function)
            found[self._table.words.callback(one)] = _annotated(function, gives)
        return found

    # Whether one is compiled

    def _against_action(self, phase: str, callback: Any) -> str:
        if phase not in PHASES:
            return "it runs before guards are asked, or outside of transitions"
        if not any(self._may_write(callback, field) for field in self.fields):
            return "it changes no field"
        forbidden = ("state",) if phase in ("before", "exit") else ()
        return self._against(callback, None, forbidden)

    def _against(self, callback: Any, gives: type | None, forbidden: tuple[str, ...]) -> str:
        function, reason = self._method(callback)
        function = without_arguments(function)
        if isinstance(callback, Validator):
            return "it stops an event by an exception"
        if reason:
            return reason
        if inspect.iscoroutinefunction(function):
            return "it is a coroutine"
        if len(inspect.signature(function).parameters) != 1:
            return "it uses arguments of the trigger"
        helpers = self._with_helpers(function)
        if gives is bool and not _always_returns(_tree(function)):
            return "it does not always return a value"
        for one in (function, *helpers.values()):
            body = _tree(one)
            if body is None:
                return "its source cannot be read"
            attributes = {node.attr for node in ast.walk(body) if isinstance(node, ast.Attribute)}
            if attributes & {*forbidden}:
                return "it reads the state before it changes"
            if fired := attributes & {*self._table.oracle.triggers}:
                return f"it uses the trigger {min(fired)!r}"
        return self._trial(function, helpers, gives)

    def _trial(self, function: Any, helpers: dict[str, Any], gives: type | None) -> str:
        """Declare a machine that has only this guard or action."""
        states = self._table.states
        when, after = ("the_guard", None) if gives is bool else (None, "the_guard")
        members = {
            "STATES": states,
            "INITIAL": states[0],
            "IS_READ": True,
            "ROWS": (Row("the_trigger", states[0], STAY, when, after, "a trial"),),
            **self.fields,
            **helpers,
            "the_guard": _annotated(function, gives),
        }
        try:
            type(self._table.oracle.name, (Machine,), members)
        except DeclarationError as error:
            if unknown := re.search(r"has no field, port, trigger or method '(\w+)'", str(error)):
                return f"it uses {unknown[1]!r}, which is no field; `fields` may name it"
            # What comes after says what to write in a machine of ours.
            told = re.sub(r"^.*?:\d+: (\w+\.the_guard: )?", "", str(error)).partition("; ")[0]
            return told.replace("the_guard", function.__name__)
        return ""

    def _method(self, callback: Any) -> tuple[Any, str]:
        """The plain method that a callback is, or why it is none."""
        if isinstance(callback, Validator):
            return self._method(callback.func)
        if isinstance(callback, str):
            for owner in self._owners:
                kind = owner if isinstance(owner, type) else type(owner)
                found = inspect.getattr_static(kind, callback, None)
                own = getattr(owner, "__dict__", {})
                if isinstance(found, types.FunctionType) and (owner is kind or callback not in own):
                    return found, ""
            return None, "it is no plain method of the model"
        function = getattr(callback, "__func__", None)
        if function is not None and any(callback.__self__ is one for one in self._owners):
            return function, ""
        if isinstance(callback, types.FunctionType) and any(
            callback is one
            for owner in self._owners
            for kind in (owner if isinstance(owner, type) else type(owner)).__mro__
            for one in vars(kind).values()
        ):
            return callback, ""
        return None, "it is no plain method of the model"

    def _with_helpers(self, function: Any) -> dict[str, Any]:
        """The methods of the model that a method uses, directly or not."""
        found: dict[str, Any] = {}
        waiting = [function]
        while waiting:
            body = _tree(waiting.pop())
            for node in ast.walk(body) if body is not None else ():
                if isinstance(node, ast.Attribute) and node.attr not in found:
                    helper, reason = self._method(node.attr)
                    if not reason and not hasattr(Machine, node.attr):
                        found[node.attr] = helper
                        waiting.append(helper)
        return found

    def _may_write(self, callback: Any, field: str) -> bool:
        function, _ = self._method(callback)
        if function is None:
            function = callback if isinstance(callback, types.FunctionType) else None
        if function is None or (body := _tree(function)) is None:
            return not _is_trigger(callback, self._table)
        helpers = [_tree(one) for one in self._with_helpers(function).values()]
        return any(one is None or _writes(one, field) for one in (body, *helpers))


def _is_trigger(callback: Any, table: ReadTable) -> bool:
    oracle = table.oracle
    return isinstance(callback, str) and callback in (*oracle.triggers, *oracle.hidden)


def _writes(body: ast.AST, field: str) -> bool:
    """Return true if a function may write an attribute of that name, of any object."""
    values = {id(n.value) for n in ast.walk(body) if isinstance(n, ast.Attribute)}
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute):
            is_written = node.attr == field and not isinstance(node.ctx, ast.Load)
            if node.attr in WRITERS or is_written:
                return True
        elif isinstance(node, ast.Name):
            is_handed_on = node.id == "self" and id(node) not in values
            if node.id in WRITERS or is_handed_on:
                return True
    return False


_texts = itertools.count(1)


@functools.lru_cache(maxsize=1024)
def without_arguments(function: Any) -> Any:
    """The same method without the arguments of its trigger, where it does not use them."""
    body = _tree(function) if isinstance(function, types.FunctionType) else None
    if not isinstance(body, ast.FunctionDef) or len(inspect.signature(function).parameters) == 1:
        return function
    taken = body.args
    names = {one.arg for one in [*taken.posonlyargs, *taken.args, *taken.kwonlyargs][1:]}
    names |= {one.arg for one in (taken.vararg, taken.kwarg) if one is not None}
    used = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    if names & used or function.__closure__ or body.decorator_list:
        return function
    first = [*taken.posonlyargs, *taken.args][:1]
    alone = ast.arguments([], first, None, [], [], None, [])
    text = ast.unparse(
        ast.FunctionDef(body.name, alone, body.body, [], None, lineno=1, col_offset=0)
    )
    file = f"<{function.__qualname__} without arguments {next(_texts)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names_there: dict[str, Any] = {**function.__globals__}
    exec(compile(text, file, "exec"), names_there)  # noqa: S102  # a method of the user's model
    made = names_there[body.name]
    made.__qualname__ = function.__qualname__
    made.__annotations__ = {n: a for n, a in function.__annotations__.items() if n == "return"}
    return made


def _always_returns(body: ast.AST | None) -> bool:
    """Return true if a function ends with a `return` on every way through it."""
    if body is None:
        return True  # which is told by what comes next
    *_, last = getattr(body, "body", None) or [None]
    if isinstance(last, ast.If):
        both = [ast.Module(block, []) for block in (last.body, last.orelse)]
        return all(map(_always_returns, both))
    return isinstance(last, ast.Return | ast.Raise)


def _tree(function: Any) -> ast.AST | None:
    try:
        return definition(function)
    except DeclarationError:
        return None


def _annotated(function: Any, gives: type | None) -> Any:
    """A copy of a function that says what it returns."""
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__annotations__ = {"return": gives, **function.__annotations__}
    made.__module__ = function.__module__
    made.__qualname__ = function.__qualname__
    return made


def _key(callback: Any) -> Hashable:
    return callback if isinstance(callback, Hashable) else id(callback)
