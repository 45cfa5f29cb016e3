"""The body mutants: one guard, one action or one method that these call does something else.

They are generated from the syntax trees of the methods:

* `deleted`: a simple statement is left out, an early `return` too;
* `comparison`: `==` and `!=`, `<` and `>=`, `<=` and `>` change places; `<` and `<=`, `>` and `>=`
  too, which is off by one;
* `logic`: `and` and `or` change places, and so do `any` and `all`;
* `negation`: a condition that is neither of these is negated, or is not negated any more;
* `arithmetic`: `+` and `-` change places;
* `constant`: 0 and 1 change places, and so do True and False.

An assertion decides nothing and stays as it is. A mutant is named after the text that it changes,
which is as much of the method as tells it from the method's other mutants.
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any

from epochgate.fsm import Machine, System, machines
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.source import definition
from tests.mutation.homes import HOMES, SYSTEMS_THAT_RUN, Home
from tests.mutation.sources import without_docstrings

Case = tuple[str, str, str]
"""A row of a system: its machine's attribute, its trigger and its reason."""
Path = tuple[tuple[str, int | None], ...]
"""Where a node stands in a method: the fields that lead to it, with positions in lists."""


@dataclass(frozen=True)
class BodyMutant:
    """One method with one change; `machine` is a name among HOMES."""

    machine: str
    home: Home
    method: str
    kind: str
    before: str
    after: str
    tree: ast.FunctionDef
    right: FunctionType
    affected: frozenset[Case]
    """The rows that lead to the method."""

    @property
    def name(self) -> str:
        return f"{self.machine}.{self.method}: {self.before} -> {self.after}"

    def of(self, machine: type[Machine]) -> type[Machine]:
        """Break a machine, or a variant that inherits the method. DeclarationError if the method
        is outside the checked subset.
        """
        body: dict[str, Any] = {"__module__": machine.__module__}
        if getattr(machine, self.method) is self.right:
            body[self.method] = self.function
        return type(f"Broken{machine.__name__}", (machine,), body)

    def in_system(self, system: type[System]) -> type[System]:
        """The system with the broken machine in it. DeclarationError if that is no system."""
        name = self.home.attribute
        body = {"__module__": system.__module__, name: machines(self.of(system.MACHINES[name]))}
        return type(f"Broken{system.__name__}", (system,), body)

    @property
    def refusal(self) -> str:
        """Return why nothing can even be declared with it; empty if that can be done."""
        try:
            self.in_system(self.home.surroundings)
        except DeclarationError as error:
            return str(error)
        return ""

    @property
    def function(self) -> FunctionType:
        return _function(self.tree, self.right, self.name)


def body_mutants() -> list[BodyMutant]:
    """All of them, in the order of machines, methods and text."""
    return [mutant for name in HOMES for mutant in body_mutants_of(name)]


def body_mutants_of(machine: str) -> list[BodyMutant]:
    """Those of one machine."""
    return [mutant for name, mutant in _all() if name == machine]


@cache
def _all() -> tuple[tuple[str, BodyMutant], ...]:
    return tuple(
        (name, each)
        for name, right, affected in methods()
        for each in changed(name, HOMES[name], right, affected)
    )


@cache
def methods() -> tuple[tuple[str, FunctionType, frozenset[Case]], ...]:
    """Each method that is broken: a name among HOMES, the method, and the rows that lead to it."""
    names = {home.machine: name for name, home in HOMES.items()}
    known: set[tuple[str, FunctionType]] = set()
    found: list[tuple[str, FunctionType, frozenset[Case]]] = []
    for system in SYSTEMS_THAT_RUN:
        for (attribute, method), affected in reached(system).items():
            machine = system.MACHINES[attribute]
            right, name = getattr(machine, method), names[machine]
            owner = next(base for base in machine.__mro__ if method in vars(base))
            # A variant's machine is broken with the one that it varies, and two that share a base
            # are broken each: they have other surroundings.
            key = names.get(owner, name), right
            if key not in known:
                known.add(key)
                found.append((name, right, affected))
    return tuple(found)


def reached(system: type[System]) -> dict[tuple[str, str], frozenset[Case]]:
    """The guards and actions of a system's machines, and the methods that these call: each with
    the rows that lead to it.

    Methods are found by their names: a call through anything but `self` is taken to lead to each
    machine of the system that has such a method, which is more than it may reach.
    """
    leading: dict[tuple[str, str], set[Case]] = {}
    for attribute, machine in system.MACHINES.items():
        for row in machine.ROWS:
            case = attribute, row.trigger, row.because
            todo = [(attribute, name) for name in (*(n for n, _ in row.literals), *row.actions)]
            while todo:
                method = todo.pop(0)
                cases = leading.setdefault(method, set())
                if case not in cases:
                    cases.add(case)
                    todo += _called(system, *method)
    return {method: frozenset(cases) for method, cases in leading.items()}


def _called(system: type[System], attribute: str, method: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(definition(getattr(system.MACHINES[attribute], method))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
            for other in (attribute,) if is_own else system.MACHINES:
                if _is_method(system.MACHINES[other], node.func.attr):
                    yield other, node.func.attr


def _is_method(machine: type[Machine], name: str) -> bool:
    found = getattr(machine, name, None)
    is_own = isinstance(found, FunctionType) and not hasattr(Machine, name)
    return is_own and not hasattr(found, "is_trigger")


def changed(
    machine: str, home: Home, right: FunctionType, affected: frozenset[Case]
) -> Iterator[BodyMutant]:
    """All mutants of one method."""
    tree = definition(right)
    made = [(kind, path, with_changed(tree, path, new)) for kind, path, new in _changes(tree)]
    yield from differing(machine, home, right, affected, made, ())


Made = tuple[str, Path, ast.FunctionDef]
"""The kind of a mutant, where it differs, and the method that it makes."""


def differing(
    machine: str,
    home: Home,
    right: FunctionType,
    affected: frozenset[Case],
    made: Iterable[Made],
    earlier: Iterable[BodyMutant],
) -> Iterator[BodyMutant]:
    """Name the mutants of one method that are neither it nor one of the earlier ones."""
    tree, taken = definition(right), {(each.before, each.after) for each in earlier}
    known = {ast.unparse(tree), *(ast.unparse(each.tree) for each in earlier)}
    different: list[Made] = []
    for each in made:
        text = ast.unparse(each[2])
        if text not in known:
            known.add(text)
            different.append(each)
    for (kind, _, mutant), (before, after) in zip(
        different,
        _named(tree, [(path, mutant) for _, path, mutant in different], taken),
        strict=True,
    ):
        yield BodyMutant(
            machine, home, right.__name__, kind, before, after, mutant, right, affected
        )


def _named(
    tree: ast.FunctionDef, made: list[tuple[Path, ast.FunctionDef]], taken: set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """For each mutant the smallest piece of text, before and after, that no other one has."""
    pieces = [
        [
            (_text(node_at(tree, path[:length])), _text(node_at(mutant, path[:length])))
            for length in range(len(path), -1, -1)
            if not isinstance(node_at(tree, path[:length]), ast.Constant)
        ]
        for path, mutant in made
    ]
    for number, own in enumerate(pieces):
        others = {piece for n, other in enumerate(pieces) if n != number for piece in other}
        yield next(piece for piece in own if piece not in others | taken)


def _text(node: ast.AST) -> str:
    lines = ast.unparse(without_docstrings(copy.deepcopy(node))).splitlines()
    return f"`{' '.join(line.strip() for line in lines)}`"


def node_at(tree: ast.AST, path: Path) -> ast.AST:
    """The node to which a path leads."""
    node: Any = tree
    for field, position in path:
        node = getattr(node, field)
        node = node if position is None else node[position]
    assert isinstance(node, ast.AST)
    return node


def with_changed(tree: ast.FunctionDef, path: Path, new: ast.AST) -> ast.FunctionDef:
    """A copy of a method with another node at the end of a path."""
    mutant = copy.deepcopy(tree)
    *before, (field, position) = path
    parent = node_at(mutant, tuple(before))
    if position is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[position] = new
    return ast.fix_missing_locations(mutant)


# What is changed

Change = tuple[str, Path, ast.AST]
"""The kind of a mutant, where it differs, and what stands there then."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
LOGIC: dict[type[ast.boolop], type[ast.boolop]] = {ast.And: ast.Or, ast.Or: ast.And}
QUANTIFIERS = {"any": "all", "all": "any"}


def _changes(tree: ast.FunctionDef) -> Iterator[Change]:
    is_guard = isinstance(tree.returns, ast.Name) and tree.returns.id == "bool"
    for path in paths(tree, ()):
        node = node_at(tree, path)
        for kind, new in _replacements(node):
            yield kind, path, new
        if isinstance(node, LOOKED_UP) and _is_condition(tree, path, is_guard=is_guard):
            yield "negation", path, ast.UnaryOp(ast.Not(), copy.deepcopy(node))
        if isinstance(node, DELETABLE) or (isinstance(node, ast.Return) and _goes_on(tree, path)):
            yield "deleted", path, ast.Pass()


LOOKED_UP = (ast.Attribute, ast.Name, ast.Subscript, ast.Call)
"""Conditions that are neither compared nor joined: what is no bool there is refused."""
DELETABLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


def paths(node: ast.AST, path: Path) -> Iterator[Path]:
    """All nodes of a method's body that may be changed, in the order of the text."""
    for field, value in ast.iter_fields(node):
        if not path and field != "body":
            continue  # the signature
        if isinstance(node, ast.AnnAssign) and field == "annotation":
            continue
        pieces: Iterable[tuple[int | None, Any]] = (
            enumerate(value) if isinstance(value, list) else ((None, value),)
        )
        for position, child in pieces:
            if isinstance(child, ast.stmt | ast.expr | ast.comprehension) and not _stays(child):
                yield (*path, (field, position))
                yield from paths(child, (*path, (field, position)))


def _stays(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Assert)


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    new: Any = copy.deepcopy(node)
    match node:
        case ast.Compare():
            for position, operator in enumerate(node.ops):
                for other in COMPARISONS.get(type(operator), ()):
                    new = copy.deepcopy(node)
                    new.ops[position] = other()
                    yield "comparison", new
        case ast.BoolOp():
            new.op = LOGIC[type(node.op)]()
            yield "logic", new
        case ast.Call(func=ast.Name(id=name)) if name in QUANTIFIERS:
            new.func.id = QUANTIFIERS[name]
            yield "logic", new
        case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.AugAssign(op=ast.Add() | ast.Sub()):
            new.op = ARITHMETIC[type(node.op)]()
            yield "arithmetic", new
        case ast.UnaryOp(op=ast.Not()):
            yield "negation", copy.deepcopy(node.operand)
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)) if value in (0, 1):
            yield "constant", ast.Constant(1 - value)


def _is_condition(tree: ast.FunctionDef, path: Path, *, is_guard: bool) -> bool:
    parent, (field, _) = node_at(tree, path[:-1]), path[-1]
    node = node_at(tree, path)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return False  # `any` and `all` change places instead
    match parent:
        case ast.If() | ast.IfExp():
            return field == "test"
        case ast.BoolOp() | ast.comprehension():
            return field in ("values", "ifs")
        case ast.GeneratorExp():
            return field == "elt"
        case ast.Return():
            return is_guard
    return False


def _goes_on(tree: ast.FunctionDef, path: Path) -> bool:
    """Return whether something follows when a statement is left out."""
    for length in range(len(path), 0, -1):
        parent, (field, position) = node_at(tree, path[: length - 1]), path[length - 1]
        if isinstance(parent, ast.For):
            return True
        if position is not None and len(getattr(parent, field)) > position + 1:
            return True
    return False


def _function(tree: ast.FunctionDef, right: FunctionType, name: str) -> FunctionType:
    """The method as Python runs it, with a source of its own, which the compiler reads."""
    path = f"<{name}>"
    text = f"from __future__ import annotations\n{ast.unparse(tree)}\n"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    made: dict[str, Callable[..., Any]] = {}
    exec(compile(text, path, "exec"), right.__globals__, made)  # noqa: S102  made of our own code
    function = made[tree.name]
    assert isinstance(function, FunctionType)
    function.__module__, function.__qualname__ = right.__module__, right.__qualname__
    return function
