"""Searches a closed system for one thing: a state in which a condition holds, or what breaks one of
its claims.

A check searches, with the engine that is the fastest, on a system that makes this claim alone. A
condition is an expression as a claim's method may return: it is compiled within the subset, and
never evaluated as Python. Machines, constants and methods of the system stand in it without `self`.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any

from epochgate.errors import UsageError
from epochgate.fsm.checker.checking import check
from epochgate.fsm.checker.result import Result
from epochgate.fsm.claims import Property
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.errors import DeclarationError

CHARACTERS_MAX = 2000
TIMES_MAX = 4096
FOUND = "is_elsewhere"
"""The method that does not hold where the condition does."""
_texts = count(1)


class ConditionRefused(UsageError):
    """A text that is no condition on the states of a system."""


def counterexample_of(system: ClosedSystem, name: str, **options: Any) -> Result:
    """Check one claim of a system alone, `asks` or `asks[1]`, with the options of `check`.

    Raises ConditionRefused for an unknown claim, and what `check` raises.
    """
    claim = next((one for one in system.claims() if one.name == name), None)
    if claim is None:
        known = ", ".join(one.name for one in system.claims())
        raise ConditionRefused(f"there is no claim {name!r}; there are {known or 'none'}")
    if claim.kind == "sometimes":
        member = name.partition("[")[2].rstrip("]")
        return state_where(system, f"{claim.method}({member})", **options)
    return check(_alone(system, claim, {}), **options)


def state_where(system: ClosedSystem, condition: str, **options: Any) -> Result:
    """Search for a state in which a condition holds: the way there is the counterexample of the
    result, of the claim `is_elsewhere`. `options` are those of `check`.

    Raises ConditionRefused for what is no condition, and what `check` raises.
    """
    text = _as_method(system, condition)
    file = f"<condition {next(_texts)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        names: dict[str, Any] = {}
        exec(compile(text, file, "exec"), {"__name__": __name__}, names)  # noqa: S102  # defines a method
        claim = Property("always", FOUND, f"not: {condition}")
        return check(_alone(system, claim, names), **options)
    except DeclarationError as error:
        told = str(error).replace(f"{file}:2: ", "")
        raise ConditionRefused(f"{condition!r} is no condition: {told}") from error
    finally:
        linecache.cache.pop(file, None)


def _alone(system: ClosedSystem, claim: Property, methods: dict[str, Any]) -> ClosedSystem:
    """The system with this one claim."""
    members = {
        **methods,
        "__module__": type(system).__module__,
        "__doc__": type(system).__doc__,
        "properties": classmethod(lambda cls: (_whole(type(system), claim),)),
    }
    made: type[ClosedSystem] = type(type(system).__name__, (type(system),), members)
    made.claims = lambda self: (claim,)  # type: ignore[method-assign]  # in its body it is refused
    given = {n: v for n, v in system.constants.items() if n not in made.DERIVED}
    return made(**given)


def _whole(system: type[ClosedSystem], claim: Property) -> Property:
    """The claim as it is declared, for all members of its index set."""
    declared: Sequence[Property] = system.properties()
    return next((one for one in declared if one.name == claim.method), claim)


def _as_method(system: ClosedSystem, condition: str) -> str:
    """The text of a method that holds wherever the condition does not."""
    if len(condition) > CHARACTERS_MAX:
        raise ConditionRefused(f"the condition is longer than {CHARACTERS_MAX} characters")
    try:
        tree = ast.parse(condition.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionRefused(
            f"{condition!r} is no expression ({error}); write one such as {example(system)}"
        ) from None
    if (times := _times(system, tree)) > TIMES_MAX:
        raise ConditionRefused(
            f"the loops of {condition!r} go round {times:,} times together, and a condition is "
            f"compiled with each of them written out; let them go round {TIMES_MAX:,} times at most"
        )
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_bound(n)}
    tree = ast.fix_missing_locations(_OfSystem(system, bound).visit(tree))
    return f"def {FOUND}(self) -> bool:\n    return not ({ast.unparse(tree)})\n"


def _times(system: ClosedSystem, tree: ast.AST) -> int:
    """At most how many times all loops go round, as if each stood within the others."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    return prod(_length(system, loop.iter) for loop in loops)


def _length(system: ClosedSystem, over: ast.expr) -> int:
    if isinstance(over, ast.Tuple | ast.List | ast.Set):
        return len(over.elts)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
        known = [_value(system, one) for one in over.args]
        return sum(known)
    return max(1, *system.constants.values())


def _value(system: ClosedSystem, bound: ast.expr) -> int:
    """A number that the bound is not above: of sums and products the product of their numbers, each
    taken as 2 at least; more than is allowed for what is none.
    """
    found = 1
    for one in ast.walk(bound):
        if isinstance(one, ast.operator) and not isinstance(one, ast.Add | ast.Sub | ast.Mult):
            return TIMES_MAX + 1
        if isinstance(one, ast.Constant) and isinstance(one.value, int):
            found *= max(2, abs(one.value))
        name = getattr(one, "id", getattr(one, "attr", ""))
        found *= max(2, system.constants[name]) if name in system.constants else 1
    return found


def _is_bound(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def example(system: ClosedSystem) -> str:
    """A condition that a person may begin with."""
    name, machine = next(iter(system.MACHINES.items()))
    index = f"[{', '.join('0' for _ in machine.INDEX)}]" if machine.INDEX else ""
    return f'{name}{index}.state == "{machine.STATES[-1]}"'


class _OfSystem(ast.NodeTransformer):
    """Lets names of the system stand without `self`, and `gateway[0][1]` for `gateway[0, 1]`."""

    def __init__(self, system: ClosedSystem, bound: set[str]) -> None:
        self._system = system
        shared = {n for n in dir(type(system)) if not n.startswith("_")}
        self._names = {*system.MACHINES, *system.constants, *shared} - bound

    def visit_Name(self, node: ast.Name) -> ast.expr:  # ast's name for it
        if node.id in self._names and isinstance(node.ctx, ast.Load):
            return ast.Attribute(ast.Name("self", ast.Load()), node.id, ast.Load())
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # ast's name for it
        inner = node.value
        if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Name):
            machine = self._system.MACHINES.get(inner.value.id)
            if machine is not None and len(machine.INDEX) > 1:
                both = ast.Tuple([inner.slice, node.slice], ast.Load())
                node = ast.Subscript(inner.value, both, ast.Load())
        self.generic_visit(node)
        return node
