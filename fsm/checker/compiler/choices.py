"""Lowers what the environment chooses, and tables of constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from epochgate.fsm.checker.compiler.expressions import Expressions
from epochgate.fsm.checker.compiler.ir import Choose, Expr, If, Local, fold, select
from epochgate.fsm.checker.compiler.scope import Scope
from epochgate.fsm.choosing import WAYS_MAX
from epochgate.fsm.subset import tree

EXTREMES: dict[str, Callable[[Iterable[int]], int]] = {"min": min, "max": max}
TABLE_BITS = 62
"""A table whose numbers together have no more bits is one constant."""


class Choices(Expressions):
    """The part of the lowering that deals with choices."""

    def one_of(self, scope: Scope, node: tree.OneOf) -> Expr:
        options = node.options
        if isinstance(options, tree.Values):
            return self.chosen(scope, options.numbers)
        if isinstance(options, tree.Sieve):
            return self._sieved(scope, options, node)
        bounds = self.values(scope, options.bounds)
        low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
        count = fold("-", high, low)
        self._expect_some(scope, count, node)
        return fold("+", self._choose(scope, count), low)

    def chosen(self, scope: Scope, numbers: Sequence[int]) -> Local:
        """One of these numbers, in a local."""
        position = self._choose(scope, len(numbers))
        found = self.local("a", self.table(scope, numbers, position), scope.block)
        self.ranges.narrow(found.name, (min(numbers), max(numbers)))
        return found

    def numbers_of(self, scope: Scope, node: tree.Range) -> range:
        """The numbers of a range whose bounds are known."""
        bounds = self.values(scope, node.bounds)
        if not all(isinstance(bound, int) for bound in bounds):
            raise scope.refusal(node, "loop over `range(...)` of constants of the system")
        return range(*[bound for bound in bounds if isinstance(bound, int)])

    def _choose(self, scope: Scope, count: Expr) -> Local:
        """A number below `count`."""
        self._fresh += 1
        name = f"o_{self._fresh}"
        bounds = self.ranges.of(count)
        most = WAYS_MAX if bounds is None else max(1, min(bounds[1], WAYS_MAX))
        scope.block.append(Choose(name, count, most))
        self.ranges.narrow(name, (0, 1 << 61 if bounds is None else max(0, bounds[1] - 1)))
        return Local(name)

    def _expect_some(self, scope: Scope, count: Expr, node: tree.OneOf) -> None:
        """Report a fault where there is nothing to choose from."""
        bounds = self.ranges.of(count)
        if bounds is None or bounds[0] < 1:
            message = f"{scope.instance}: `{node.text}` has nothing to choose from"
            fail = self.fail(scope, "choice", message, node)
            scope.block.append(If(fold("<", count, 1), (fail,)))

    def computed(self, scope: Scope, node: tree.Computed) -> Expr:
        """The values are kept, since each stands in the result twice."""
        values = self.values(scope, node.arguments)
        if all(isinstance(value, int) for value in values):
            known = [value for value in values if isinstance(value, int)]
            return abs(known[0]) if node.name == "abs" else EXTREMES[node.name](known)
        first, *others = [self.kept(scope, value, "m") for value in values]
        if node.name == "abs":
            others = [self.kept(scope, fold("-", 0, first), "m")]
        found: int | Local = first
        for other in others:
            is_found = fold("<=" if node.name == "min" else ">=", found, other)
            bounds = [b for one in (found, other) if (b := self.ranges.of(one)) is not None]
            chosen = self.local("m", select(is_found, found, other), scope.block)
            if len(bounds) == 2:
                extreme = EXTREMES.get(node.name, max)
                low, high = (extreme(each) for each in zip(*bounds, strict=True))
                self.ranges.narrow(chosen.name, (max(0, low) if node.name == "abs" else low, high))
            found = chosen
        return found

    def table_item(self, scope: Scope, node: tree.TableItem) -> Expr:
        size = len(node.numbers)
        index = self.expression(scope, node.index)
        if isinstance(index, int) and not -size <= index < size:
            raise scope.refusal(node, f"the index {index} is not below {size}")
        if isinstance(index, int):
            return int(node.numbers[index])
        within = self.checked_index(scope, self.from_start(scope, index, size), size, node)
        found = self.local("t", self.table(scope, node.numbers, within), scope.block)
        self.ranges.narrow(found.name, (min(node.numbers), max(node.numbers)))
        return found

    def from_start(self, scope: Scope, index: Expr, size: Expr) -> Expr:
        """An index counted from the start, of one that Python counts from the end if it is
        negative.
        """
        bounds = self.ranges.of(index)
        if bounds is not None and bounds[0] >= 0:
            return index
        index = self.kept(scope, index, "n")
        return select(fold("<", index, 0), fold("+", index, size), index)

    def _sieved(self, scope: Scope, options: tree.Sieve, node: tree.OneOf) -> Expr:
        """One of the numbers for which the conditions hold, each of which is tested once."""
        outer = dict(scope.names)
        holding: list[tuple[int, Local]] = []
        count: Expr = 0
        for number in self.numbers_of(scope, options.range):
            scope.names[options.name] = number
            holds: Expr = 1
            for condition in options.conditions:
                test = partial(self.expression, scope, condition)
                holds = self.lazily(scope, "and", holds, test)
            kept = self.local("h", select(holds, 1, 0), scope.block)
            holding.append((number, kept))
            count = fold("+", count, kept)
        scope.names = outer
        total = self.local("count", count, scope.block)
        self._expect_some(scope, total, node)
        left: Expr = self._choose(scope, total)
        found = self.local("a", 0, scope.block)
        place = self.local("n", left, scope.block)
        for number, kept in holding:
            with scope.captured() as counted:
                with scope.captured() as here:
                    self.assign_local(found.name, number, here)
                counted.append(If(fold("==", place, 0), tuple(here)))
                self.assign_local(place.name, fold("-", place, 1), counted)
            scope.block.append(If(kept, tuple(counted)))
        numbers = [number for number, _ in holding]
        self.ranges.narrow(found.name, (min(numbers, default=0), max(numbers, default=0)))
        return found

    def table(self, scope: Scope, numbers: Sequence[int], index: Expr) -> Expr:
        """The number at an index that lies within."""
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
        if all(number == numbers[0] + step * at for at, number in enumerate(numbers)):
            return fold("+", fold("*", index, step), numbers[0])
        low = min(numbers)
        bits = (max(numbers) - low).bit_length()
        if bits * len(numbers) <= TABLE_BITS:
            packed = sum(number - low << at * bits for at, number in enumerate(numbers))
            shifted = fold(">>", packed, fold("*", index, bits))
            return fold("+", fold("&", shifted, (1 << bits) - 1), low)
        return self._halved(numbers, index, 0)

    def _halved(self, numbers: Sequence[int], index: Expr, first: int) -> Expr:
        if len({*numbers}) == 1:
            return numbers[0]
        middle = len(numbers) // 2
        is_below = fold("<", index, first + middle)
        before = self._halved(numbers[:middle], index, first)
        return select(is_below, before, self._halved(numbers[middle:], index, first + middle))
