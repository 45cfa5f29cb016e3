"""Parses what looks into channels, sets and tuples: `in`, `len`, and sets that are written."""

from __future__ import annotations

import ast

from epochgate.fsm.subset import tree
from epochgate.fsm.subset.loops import Loops
from epochgate.fsm.subset.names import Anything, Channel, Kind, Value

FRESH = "a set is assigned as a new one, or machines would share it: write `other.copy()`"


class Containers(Loops):
    """The part of a method's expressions that deals with what holds several values."""

    def _membership(self, node: ast.Compare) -> tree.Expression:
        """`item in container`, or `not in`."""
        if len(node.ops) != 1:
            raise self.fault(node, "write `in` in a comparison of its own, joined by `and`")
        item = self._value(node.left)
        found = self._holds(node, item, node.comparators[0])
        return tree.Inverse(node, found) if isinstance(node.ops[0], ast.NotIn) else found

    def _holds(self, node: ast.Compare, item: tree.Expression, held: ast.expr) -> tree.Expression:
        if item.kind is Kind.STATE:
            return self._is_one_of(node, item, held)
        if (numbers := self.table(held)) is not None:
            return tree.Contains(node, item, tree.Values(held, numbers))
        container = self._value(held) if isinstance(held, ast.Set | ast.BinOp) else None
        container = self._place(held) if container is None else container
        place = container.place if isinstance(container, tree.Path) else None
        if not isinstance(place, Channel | Anything) and container.kind is not Kind.SET:
            raise self.fault(
                node, f"`{ast.unparse(held)}` is no channel, set or tuple of numbers to look into"
            )
        if isinstance(place, Channel) and place.item is Kind.OPAQUE and self.machine is not None:
            raise self.fault(node, "what a channel only hands on is not compared")
        if item.kind not in (Kind.INT, Kind.BOOL, Kind.UNKNOWN):
            raise self.fault(node, f"`{ast.unparse(node.left)}` is {item.kind.value}; use an int")
        return tree.Contains(node, item, container)

    def _is_one_of(
        self, node: ast.Compare, item: tree.Expression, held: ast.expr
    ) -> tree.Expression:
        """Return whether a state is one of those whose names are written."""
        names = [self._value(part) for part in held.elts] if isinstance(held, ast.Tuple) else []
        if not names or not all(isinstance(name, tree.Text) for name in names):
            raise self.fault(node, 'a state is looked for in a tuple of names, `("idle", "busy")`')
        tests = tuple(tree.Comparison(node, ("==",), (item, name), True) for name in names)
        return tree.Logic(node, "or", tests) if len(tests) > 1 else tests[0]

    def _length(self, node: ast.Call) -> tree.Expression:
        if len(node.args) != 1:
            raise self.fault(node, "`len` takes one channel, set or tuple")
        (held,) = node.args
        if (numbers := self.table(held)) is not None:
            return tree.Constant(node, Kind.INT, len(numbers))
        container = self._value(held) if isinstance(held, ast.BinOp) else self._place(held)
        place = container.place if isinstance(container, tree.Path) else None
        if not isinstance(place, Channel | Anything) and container.kind is not Kind.SET:
            raise self.fault(
                node,
                f"`{ast.unparse(held)}` is no channel, set or tuple of numbers; an array has as "
                f"many items as the constant that it is over says",
            )
        return tree.Length(node, container)

    def _written_set(self, node: ast.Set) -> tree.Expression:
        numbers = self.table(ast.Tuple(node.elts, ast.Load()))
        if numbers is None or min(numbers) < 0 or max(numbers) >= tree.SET_BITS:
            raise self.fault(
                node, f"a set that is written has numbers from 0 to {tree.SET_BITS - 1}"
            )
        return tree.SetOf(node, frozenset(numbers))

    def _empty_set(self, node: ast.Call) -> tree.Expression:
        if node.args:
            raise self.fault(node, "`set()` is the empty set; write `other.copy()` for a copy")
        return tree.SetOf(node, frozenset())

    def _expect_fresh(self, node: ast.AST, value: tree.Expression) -> None:
        """Refuse to give a set a second name."""
        if isinstance(value, tree.Path) and value.kind is Kind.SET:
            raise self.fault(node, FRESH)
        if isinstance(value, tree.Choice):
            self._expect_fresh(node, value.chosen)
            self._expect_fresh(node, value.otherwise)


def is_field(place: object) -> bool:
    """Return whether the place is a set that has methods."""
    return isinstance(place, Value) and place.kind is Kind.SET and place.is_field
