"""Parses loops: `any`, `all`, and what `self.one_of` chooses from; their lengths are constants."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import Kind

if TYPE_CHECKING:
    from epochgate.fsm.machine import Machine

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


class Loops(ABC):
    """The part of a method's expressions that runs over numbers."""

    machine: type[Machine] | None
    changes: list[tuple[ast.AST, str]]
    _locals: dict[str, Kind]

    @abstractmethod
    def fault(self, node: ast.AST, text: str) -> DeclarationError:
        """Return the error that names where `node` stands."""

    @abstractmethod
    def table(self, node: ast.expr) -> tuple[int, ...] | None:
        """The numbers of a tuple that is known; None for anything else."""

    @abstractmethod
    def _place(self, node: ast.expr) -> tree.Path: ...

    @abstractmethod
    def _value(self, node: ast.expr) -> tree.Expression: ...

    @abstractmethod
    def _number(self, node: ast.expr) -> tree.Expression: ...

    @abstractmethod
    def _condition(self, node: ast.expr) -> tree.Expression: ...

    def _quantifier(self, node: ast.Call) -> tree.Expression:
        generators = [a for a in node.args if isinstance(a, ast.GeneratorExp)]
        if len(generators) != 1 or len(node.args) != 1 or not self._is_nesting_allowed(generators):
            raise self.fault(
                node, "`any` and `all` take one `... for x in range(...)`; write it like that"
            )
        (generator,) = generators
        outer, loops = dict(self._locals), list[tuple[str, tree.Range]]()
        conditions: list[tree.Expression] = []
        for each in generator.generators:
            if not isinstance(each.target, ast.Name) or each.is_async:
                raise self.fault(node, "a loop has one plain name")
            loops.append((each.target.id, self._range(each.iter)))
            self._locals[each.target.id] = Kind.INT
            conditions += map(self._condition, each.ifs)
        element = self._condition(generator.elt)
        self._locals = outer
        assert isinstance(node.func, ast.Name)  # for the type checker; tested by the caller
        is_all = node.func.id == "all"
        return tree.Quantified(node, is_all, tuple(loops), tuple(conditions), element)

    def _is_nesting_allowed(self, generators: list[ast.GeneratorExp]) -> bool:
        """Claims of a system may be about pairs."""
        return self.machine is None or len(generators[0].generators) == 1

    # Choices

    def _is_choice(self, node: ast.expr) -> bool:
        is_own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
        return is_own and isinstance(node, ast.Attribute) and node.attr == "one_of"

    def _one_of(self, node: ast.Call) -> tree.Expression:
        if self.machine is None or not self.machine.IS_ENVIRONMENT:
            raise self.fault(
                node,
                "only an Environment chooses, as machines of the protocol run: let one choose and "
                "hand the value on, or let the step choose an argument, `Step(..., over=(...))`",
            )
        if len(node.args) != 1:
            raise self.fault(node, "`one_of` takes one range, tuple or `n for n in range(...)`")
        self.changes.append((node, "it chooses a value"))
        return tree.OneOf(node, self._options(node.args[0]))

    def _options(self, node: ast.expr) -> tree.Range | tree.Values | tree.Sieve:
        """Return what a value is chosen from."""
        if isinstance(node, ast.GeneratorExp):
            return self._sieve(node)
        if (numbers := self.table(node)) is not None:
            return tree.Values(node, tuple(dict.fromkeys(numbers)))
        if _is_range(node):
            assert isinstance(node, ast.Call)  # for the type checker; tested above
            return tree.Range(node, tuple(map(self._number, node.args)))
        raise self.fault(
            node,
            f"a value is chosen from a `range(...)`, a tuple of numbers, or `n for n in range(...) "
            f"if ...`, and not from `{ast.unparse(node)}`",
        )

    def _sieve(self, node: ast.GeneratorExp) -> tree.Sieve:
        each = node.generators[0]
        name = each.target.id if isinstance(each.target, ast.Name) else ""
        if len(node.generators) != 1 or not name or ast.unparse(node.elt) != name:
            raise self.fault(node, "write `n for n in range(...) if ...`, with one plain name")
        outer, numbers = dict(self._locals), self._range(each.iter)
        self._locals[name] = Kind.INT
        conditions = tuple(map(self._condition, each.ifs))
        self._locals = outer
        return tree.Sieve(node, name, numbers, conditions)

    # Bounded loops

    def _range(self, node: ast.expr) -> tree.Range:
        if not _is_range(node):
            raise self.fault(
                node,
                f"a loop over `{ast.unparse(node)}` is outside the checked subset; loop over "
                f"`range(...)` of constants, or over `take_all()` of a channel",
            )
        assert isinstance(node, ast.Call)  # for the type checker; tested above
        return tree.Range(node, tuple(map(self._constant_number, node.args)))

    def _constant_number(self, node: ast.expr) -> tree.Expression:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = self._constant_number(node.left), self._constant_number(node.right)
            return tree.Operation(node, OPERATORS[type(node.op)], left, right)
        system = "self" if self.machine is None else "self.system"
        is_constant = (
            (isinstance(node, ast.Constant) and type(node.value) is int)
            or (isinstance(node, ast.Name) and node.id not in self._locals)
            or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == system)
        )
        value = self._value(node) if is_constant else None
        if value is None or value.kind not in (Kind.INT, Kind.UNKNOWN):
            raise self.fault(
                node,
                f"`{ast.unparse(node)}` is no constant, so the length of the loop is not known; "
                f"use a constant as the bound and an `if` inside the loop",
            )
        return value


def _is_range(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and 1 <= len(node.args) <= 2
        and not node.keywords
    )
