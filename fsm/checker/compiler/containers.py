"""Lowers what looks into channels and sets; a set is a cell with a bit for each number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from epochgate.fsm.checker.compiler.choices import Choices
from epochgate.fsm.checker.compiler.ir import Expr, If, Load, Local, Store, fold, select
from epochgate.fsm.checker.compiler.layout import FifoCells, outside
from epochgate.fsm.checker.compiler.ranges import Bounds
from epochgate.fsm.checker.compiler.scope import Chosen, Field, Place, Scope
from epochgate.fsm.subset import tree


class Containers(Choices):
    """The part of the lowering that deals with what holds several values."""

    @abstractmethod
    def checked(
        self, scope: Scope, value: Expr, bounds: Bounds, name: str, node: tree.Node
    ) -> Expr:
        """A value that lies within its bounds, or a fault is reported."""

    def contains(self, scope: Scope, node: tree.Contains) -> Expr:
        container = node.container
        item: Expr
        if isinstance(container, tree.Values):
            item = self.kept(scope, self.expression(scope, node.item), "i")
            found: Expr = 0
            for number in dict.fromkeys(container.numbers):
                found = fold("or", found, fold("==", item, number))
            return found
        place = self.place(scope, container) if isinstance(container, tree.Path) else None
        if place is not None and isinstance(_first(place), FifoCells):
            item = self.kept(scope, self.expression(scope, node.item), "i")
            return self._in_channel(scope, place, item)
        held, item = self.values(scope, (container, node.item))
        return self._in_set(scope, held, self.kept(scope, item, "i"))

    def _in_set(self, scope: Scope, held: Expr, item: Expr) -> Expr:
        """A number that no set can hold is in none."""
        if isinstance(item, int):
            is_known = 0 <= item < tree.SET_BITS
            return fold("&", fold(">>", held, item), 1) if is_known else 0
        if self.ranges.is_within(item, 0, tree.SET_BITS - 1):
            return fold("&", fold(">>", held, item), 1)
        is_outside = fold("or", fold("<", item, 0), fold(">=", item, tree.SET_BITS))
        place = self.local("n", select(is_outside, 0, item), scope.block)
        return fold("and", fold("==", place, item), fold("&", fold(">>", held, place), 1))

    def _in_channel(self, scope: Scope, place: Place, item: Expr) -> Expr:
        if isinstance(place, Chosen):
            return self._of_each(scope, place, partial(self._in_channel, scope, item=item))
        assert isinstance(place, FifoCells)
        found: Expr = 0
        for at in range(place.capacity):
            is_there = fold("<", at, Load(place.length))
            found = fold("or", found, fold("and", is_there, fold("==", self._at(place, at), item)))
        return found

    def _of_each(self, scope: Scope, place: Chosen, value: partial[Expr]) -> Expr:
        """The value of the option that was chosen."""
        index = self.kept(scope, place.index, "n")
        found = value(place.options[-1])
        for number, option in reversed([*enumerate(place.options[:-1])]):
            found = select(fold("==", index, number), value(option), found)
        return found

    @staticmethod
    def _at(fifo: FifoCells, position: Expr) -> Expr:
        """The item at a position that lies within the capacity."""
        shifted = fold(">>", Load(fifo.items), fold("*", position, fifo.item_bits))
        return fold("&", shifted, (1 << fifo.item_bits) - 1)

    def length(self, scope: Scope, node: tree.Length) -> Expr:
        if isinstance(node.container, tree.Path):
            place = self.place(scope, node.container)
            if isinstance(_first(place), FifoCells):
                return self._length_of(scope, place)
        held = self.kept(scope, self.expression(scope, node.container), "s")
        bounds = self.ranges.of(held)
        count: Expr = 0
        for bit in range(tree.SET_BITS if bounds is None else bounds[1].bit_length()):
            count = fold("+", count, fold("&", fold(">>", held, bit), 1))
        return count

    def _length_of(self, scope: Scope, place: Place) -> Expr:
        if isinstance(place, Chosen):
            return self._of_each(scope, place, partial(self._length_of, scope))
        assert isinstance(place, FifoCells)
        return Load(place.length)

    # Items of channels

    def channel_item(self, scope: Scope, fifo: FifoCells, index: Expr, node: tree.Node) -> Local:
        """The item at an index, counted from the oldest, or from the newest if it is negative."""
        index = self.from_start(scope, index, Load(fifo.length))
        at = self._checked_position(scope, fifo, index, node)
        item = self.local("item", self._at(fifo, at), scope.block)
        self.ranges.narrow(item.name, (0, fifo.item_maximum))
        return item

    def _checked_position(
        self, scope: Scope, fifo: FifoCells, index: Expr, node: tree.Node
    ) -> Expr:
        at = self.kept(scope, index, "n")
        is_outside = fold("or", fold("<", at, 0), fold(">=", at, Load(fifo.length)))
        message = f"{scope.instance}: `{node.text}` looks for what {fifo.name} does not hold"
        scope.block.append(If(is_outside, (self.fail(scope, "index", message, node),)))
        if isinstance(at, Local):
            at = self.local("n", at, scope.block)
            self.ranges.narrow(at.name, (0, max(0, fifo.capacity - 1)))
        return at

    def take_out(self, scope: Scope, fifo: FifoCells, index: Expr, node: tree.Node) -> Expr:
        """Remove the item at an index, and return it."""
        at = self._checked_position(scope, fifo, index, node)
        item = self.local("item", self._at(fifo, at), scope.block)
        self.ranges.narrow(item.name, (0, fifo.item_maximum))
        self._cut_out(scope, fifo, at)
        return item

    def _cut_out(self, scope: Scope, fifo: FifoCells, at: Expr) -> None:
        shift = self.kept(scope, fold("*", at, fifo.item_bits), "n")
        items = Load(fifo.items)
        before = fold("&", items, fold("-", fold("<<", 1, shift), 1))
        behind = fold("<<", fold(">>", fold(">>", items, shift), fifo.item_bits), shift)
        scope.block += [
            Store(fifo.items, fold("|", before, behind)),
            Store(fifo.length, fold("-", Load(fifo.length), 1)),
        ]

    def remove(self, scope: Scope, fifo: FifoCells, item: Expr, node: tree.Node) -> None:
        """Remove the oldest item of this value."""
        item = self.kept(scope, item, "i")
        place: Expr = fifo.capacity
        for at in reversed(range(fifo.capacity)):
            is_there = fold("<", at, Load(fifo.length))
            is_it = fold("and", is_there, fold("==", self._at(fifo, at), item))
            place = select(is_it, at, place)
        found = self.local("n", place, scope.block)
        fail = self.fail(scope, "empty", f"{fifo.name} does not hold what is removed", node)
        scope.block.append(If(fold("==", found, fifo.capacity), (fail,)))
        self.ranges.narrow(found.name, (0, max(0, fifo.capacity - 1)))
        self._cut_out(scope, fifo, found)

    # Sets

    def operate_on_set(
        self, scope: Scope, place: Field, arguments: Sequence[Expr], node: tree.Call
    ) -> Expr:
        """An operation of a set; its value, 0 if it has none."""
        name, cell = node.callee.name, self.layout.cells[place.cell]
        held = Load(place.cell)
        if name == "copy":
            return self.local("s", held, scope.block)
        if name == "clear":
            scope.block.append(Store(place.cell, 0))
            return 0
        last = cell.span.bit_length() - 1
        if name == "add":
            item = self.checked(scope, arguments[0], (0, last), place.cell, node)
            scope.block.append(Store(place.cell, fold("|", held, fold("<<", 1, item))))
            return 0
        item = self.kept(scope, arguments[0], "i")
        is_in = self.kept(scope, self._in_set(scope, held, item), "h")
        without = fold("-", held, fold("<<", 1, self.kept_within(scope, item, last)))
        gone = (Store(place.cell, without),)
        if name == "remove":
            message = f"{place.cell} does not hold what is removed"
            scope.block.append(
                If(fold("==", is_in, 0), (self.fail(scope, "empty", message, node),))
            )
        scope.block.append(If(is_in, gone))
        return 0

    def kept_within(self, scope: Scope, item: Expr, last: int) -> Expr:
        """The number, or 0 for one that a set with this last number cannot hold."""
        if self.ranges.is_within(item, 0, last):
            return item
        is_outside = fold("or", fold("<", item, 0), fold(">", item, last))
        place = self.local("n", select(is_outside, 0, item), scope.block)
        self.ranges.narrow(place.name, (0, last))
        return place

    def store_set(self, scope: Scope, place: Field, value: Expr, node: tree.Node) -> None:
        """Give a set its numbers, or report one that it cannot hold."""
        cell = self.layout.cells[place.cell]
        if not self.ranges.is_within(value, 0, cell.span):
            value = self.kept(scope, value, "c")
            told = outside(place.cell, 0, cell.span.bit_length() - 1)
            fail = self.fail(scope, "range", told, node)
            scope.block.append(If(fold(">", value, cell.span), (fail,)))
        scope.block.append(Store(place.cell, value))

    def without(self, scope: Scope, left: Expr, right: Expr) -> Expr:
        """Return what is in one set and not in another."""
        left = self.kept(scope, left, "s")
        return fold("-", left, fold("&", left, right))

    def compare_sets(self, scope: Scope, node: tree.Comparison) -> Expr:
        """`<=` and its relatives say which of two sets is part of the other."""
        operands = [self.kept(scope, v, "s") for v in self.values(scope, node.operands)]
        value: Expr = 1
        for operator, left, right in zip(node.operators, operands, operands[1:], strict=False):
            if operator in (">", ">="):
                left, right = right, left
            if operator in ("==", "!="):
                value = fold("and", value, fold(operator, left, right))
                continue
            value = fold("and", value, fold("==", fold("|", left, right), right))
            if operator in ("<", ">"):
                value = fold("and", value, fold("!=", left, right))
        return value


def _first(place: Place) -> Place:
    while isinstance(place, Chosen):
        place = place.options[0]
    return place
