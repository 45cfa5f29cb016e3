"""Lowers expressions and the paths in them.

`and`, `or` and conditional expressions evaluate what Python would evaluate, and no more: where an
operand needs statements of its own, they run under the condition that it is reached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Expr,
    Fail,
    Fault,
    If,
    Load,
    Local,
    Not,
    Op,
    Select,
    Stmt,
    fold,
    negate,
    select,
)
from epochgate.fsm.checker.compiler.layout import FifoCells, Layout
from epochgate.fsm.checker.compiler.ranges import MOST, Doubt, Ranges
from epochgate.fsm.checker.compiler.scope import (
    SYSTEM,
    AllOf,
    Chosen,
    Field,
    Instance,
    Listener,
    Place,
    Scope,
    StateName,
    StateOf,
)
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.machine import Machine
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import Kind

TOO_LARGE = (
    "64 bits may not hold it, so a check would not compute what the machines do; let what it is "
    "computed of have smaller bounds, `min(n, most)`"
)
SHIFT_MAX = 62
"""By how many bits a value is shifted at most: what it holds has no more."""


class Expressions(ABC):
    """The part of the lowering that deals with values; calls are lowered by subclasses."""

    def __init__(self, system: ClosedSystem, layout: Layout) -> None:
        self.system, self.layout = system, layout
        self.ranges = Ranges(layout.cells)
        self.faults: dict[Fault, int] = {}
        self.doubts: list[Doubt] = []
        self._fresh = 0

    @abstractmethod
    def call(self, scope: Scope, node: tree.Call | tree.Drain) -> Expr:
        """Lower a call; 0 when it gives nothing."""

    def machine(self, instance: Instance) -> type[Machine]:
        return self.system.MACHINES[instance.name]

    def local(self, prefix: str, value: Expr, block: list[Stmt]) -> Local:
        """Keep a value in a new local."""
        self._fresh += 1
        name = f"{prefix}_{self._fresh}"
        self.assign_local(name, value, block)
        return Local(name)

    def assign_local(self, name: str, value: Expr, block: list[Stmt]) -> None:
        self.ranges.assign(name, value)
        block.append(Assign(name, value))

    @abstractmethod
    def quantified(self, scope: Scope, node: tree.Quantified) -> Expr:
        """Lower `all` or `any`."""

    def fail(self, scope: Scope, kind: str, message: str, node: tree.Node) -> Fail:
        """The statement that reports a fault at a place of the source."""
        fault = Fault(kind, message, scope.method.__code__.co_filename, node.line)
        return Fail(self.faults.setdefault(fault, len(self.faults)))

    @abstractmethod
    def one_of(self, scope: Scope, node: tree.OneOf) -> Expr:
        """Lower a choice."""

    @abstractmethod
    def computed(self, scope: Scope, node: tree.Computed) -> Expr:
        """Lower `min`, `max` or `abs`."""

    @abstractmethod
    def table_item(self, scope: Scope, node: tree.TableItem) -> Expr:
        """Lower an item of a constant table."""

    @abstractmethod
    def contains(self, scope: Scope, node: tree.Contains) -> Expr:
        """Lower `in`."""

    @abstractmethod
    def length(self, scope: Scope, node: tree.Length) -> Expr:
        """Lower `len`."""

    @abstractmethod
    def without(self, scope: Scope, left: Expr, right: Expr) -> Expr:
        """Lower the difference of two sets."""

    @abstractmethod
    def compare_sets(self, scope: Scope, node: tree.Comparison) -> Expr:
        """Lower a comparison of sets."""

    @abstractmethod
    def channel_item(self, scope: Scope, fifo: FifoCells, index: Expr, node: tree.Node) -> Local:
        """Lower an item of a channel."""

    # Values

    def values(self, scope: Scope, nodes: Sequence[tree.Expression]) -> list[Expr]:
        """Several values in their order: what a later one does changes no earlier one."""
        values: list[Expr] = []
        for node in nodes:
            mark = len(scope.block)
            value = self.expression(scope, node)
            if len(scope.block) > mark:
                kept: list[Stmt] = []
                values = [
                    v if isinstance(v, int | Local) else self.local("k", v, kept) for v in values
                ]
                scope.block[mark:mark] = kept
            values.append(value)
        return values

    def expression(self, scope: Scope, node: tree.Expression) -> Expr:
        if isinstance(node, tree.Path):
            return self.read(scope, self.place(scope, node), node)
        return EXPRESSIONS[type(node)](self, scope, node)

    def _constant(self, scope: Scope, node: tree.Constant) -> Expr:
        return node.value

    def _text(self, scope: Scope, node: tree.Text) -> Expr:
        """A text that is only handed on."""
        return 0

    def _negative(self, scope: Scope, node: tree.Negative) -> Expr:
        return fold("-", 0, self.expression(scope, node.operand))

    def _inverse(self, scope: Scope, node: tree.Inverse) -> Expr:
        return negate(self.expression(scope, node.operand))

    def _arithmetic(self, scope: Scope, node: tree.Operation) -> Expr:
        left, right = self.values(scope, (node.left, node.right))
        if node.kind is Kind.SET and node.operator == "-":
            return self.without(scope, left, right)
        return self.operation(scope, node, node.operator, left, right)

    def operation(
        self, scope: Scope, node: tree.Node, symbol: str, left: Expr, right: Expr
    ) -> Expr:
        if symbol in ("//", "%") and not (isinstance(right, int) and right > 0):
            right = self._divisor(scope, node, right)
        if symbol in ("<<", ">>") and not self.ranges.is_within(right, 0, 62):
            right = self._shift(scope, node, symbol, right)
        value = fold(symbol, left, right)
        if symbol in ("+", "-", "*", "<<"):
            is_fast = symbol in ("*", "<<")
            doubt = Doubt(value, MOST, is_fast, partial(scope.refusal, node, TOO_LARGE))
            if not self.ranges.settles(doubt):
                self.doubts.append(doubt)
        return value

    def kept(self, scope: Scope, value: Expr, prefix: str) -> int | Local:
        """The value, in a local unless it is one or known; its range stays as it is."""
        return value if isinstance(value, int | Local) else self.local(prefix, value, scope.block)

    def _divisor(self, scope: Scope, node: tree.Node, right: Expr) -> Expr:
        """A divisor that is not 0, or a fault is reported."""
        bounds = self.ranges.of(right)
        if bounds is not None and not bounds[0] <= 0 <= bounds[1]:
            return right
        if right == 0:
            raise scope.refusal(node, "it always divides by 0")
        right = self.kept(scope, right, "d")
        message = f"{scope.instance}: `{node.text}` divides by 0"
        fail = self.fail(scope, "division", message, node)
        scope.block.append(If(fold("==", right, 0), (fail,)))
        if bounds is not None and isinstance(right, Local) and bounds[0] == 0:
            kept = self.local("d", right, scope.block)
            self.ranges.narrow(kept.name, (1, max(1, bounds[1])))
            return kept
        return right

    def _shift(self, scope: Scope, node: tree.Node, symbol: str, right: Expr) -> Expr:
        """A number of bits from 0 to 62; below 0 a fault is reported."""
        bounds = self.ranges.of(right)
        if symbol == "<<" and (bounds is None or bounds[1] > SHIFT_MAX):
            told = f"shift left by what is known to be at most {SHIFT_MAX}, `min(n, 62)`"
            self.doubts.append(Doubt(right, SHIFT_MAX, True, partial(scope.refusal, node, told)))
        right = self.kept(scope, right, "n")
        if bounds is None or bounds[0] < 0:
            message = f"{scope.instance}: `{node.text}` shifts by less than 0"
            fail = self.fail(scope, "shift", message, node)
            scope.block.append(If(fold("<", right, 0), (fail,)))
        most = SHIFT_MAX if bounds is None else min(bounds[1], SHIFT_MAX)
        shift = self.local("n", select(fold(">", right, SHIFT_MAX), SHIFT_MAX, right), scope.block)
        self.ranges.narrow(shift.name, (0, max(0, most)))
        return shift

    def _logic(self, scope: Scope, node: tree.Logic) -> Expr:
        first, *others = node.operands
        value = self.expression(scope, first)
        for part in others:
            test = partial(self.expression, scope, part)
            value = self.lazily(scope, node.operator, value, test)
        return value

    def lazily(self, scope: Scope, operator: str, left: Expr, right: Callable[[], Expr]) -> Expr:
        """`left and right`, or `left or right`, with the right side evaluated only if it counts."""
        is_and = operator == "and"
        if isinstance(left, int):
            return right() if bool(left) == is_and else int(not is_and)
        with scope.captured() as inner:
            value = right()
        if not inner:
            return fold(operator, left, value)
        joined = self.local("l", left, scope.block)
        self.assign_local(joined.name, value, inner)
        scope.block.append(If(joined if is_and else negate(joined), tuple(inner)))
        return joined

    def _choice(self, scope: Scope, node: tree.Choice) -> Expr:
        condition = self.expression(scope, node.condition)
        if isinstance(condition, int):
            return self.expression(scope, node.chosen if condition else node.otherwise)
        with scope.captured() as then:
            chosen = self.expression(scope, node.chosen)
        with scope.captured() as other:
            otherwise = self.expression(scope, node.otherwise)
        if not then and not other:
            return select(condition, chosen, otherwise)
        result = self.local("e", 0, scope.block)
        self.assign_local(result.name, chosen, then)
        self.assign_local(result.name, otherwise, other)
        scope.block.append(If(condition, tuple(then), tuple(other)))
        return result

    def _compare(self, scope: Scope, node: tree.Comparison) -> Expr:
        if node.is_of_states:
            return self._compare_states(scope, node)
        if any(operand.kind is Kind.SET for operand in node.operands):
            return self.compare_sets(scope, node)
        operands = self.values(scope, node.operands)
        value: Expr = 1
        for operator, left, right in zip(node.operators, operands, operands[1:], strict=False):
            value = fold("and", value, self.operation(scope, node, operator, left, right))
        return value

    def _compare_states(self, scope: Scope, node: tree.Comparison) -> Expr:
        sides = [self._side(scope, operand) for operand in node.operands]
        states = [side for side in sides if side is not None and not isinstance(side, StateName)]
        if None in sides or len(node.operators) != 1 or not states:
            raise scope.refusal(
                node, "compare the state of a machine with the name of a state, by `==` or `!=`"
            )
        numbers = [self._state_number(scope, side, states[0], node) for side in sides if side]
        return fold(node.operators[0], numbers[0], numbers[1])

    def _side(self, scope: Scope, node: tree.Expression) -> Place | None:
        """A state or the name of one; None for another operand."""
        if isinstance(node, tree.Text):
            return StateName(node.name)
        return self.place(scope, node) if isinstance(node, tree.Path) else None

    def _state_number(self, scope: Scope, side: Place, other: Place, node: tree.Comparison) -> Expr:
        if not isinstance(side, StateName):
            return self.read(scope, side, node)
        while isinstance(other, Chosen):
            other = other.options[0]
        if not isinstance(other, StateOf):
            raise scope.refusal(node, "compare the name of a state with the state of a machine")
        states = self.machine(other.instance).STATES
        if side.name not in states:
            raise scope.refusal(node, f"{side.name!r} is none of {', '.join(states)}")
        return states.index(side.name)

    # Places

    def place(self, scope: Scope, node: tree.Path) -> Place:
        """Return what a path leads to in this system and for this instance."""
        if isinstance(node, tree.Itself):
            return scope.instance
        if isinstance(node, tree.TheSystem):
            return SYSTEM
        if isinstance(node, tree.LocalName):
            if node.name not in scope.names:
                raise scope.refusal(node, "the local has no value here; assign it one before")
            return scope.names[node.name]
        if isinstance(node, tree.SystemConstant):
            return self.system.constants[node.name]
        if isinstance(node, tree.Machines):
            is_array = self.system.MACHINES[node.name].INDEX
            return AllOf(node.name) if is_array else Instance(node.name, ())
        if isinstance(node, tree.Item):
            base = self.place(scope, node.array)
            return self._item(scope, base, tuple(self.values(scope, node.index)), node)
        assert isinstance(node, tree.StateOf | tree.IndexOf | tree.FieldOf | tree.PortOf), node
        return self._of(scope, self.place(scope, node.machine), node)

    def _of(
        self,
        scope: Scope,
        base: Place,
        node: tree.StateOf | tree.IndexOf | tree.FieldOf | tree.PortOf,
    ) -> Place:
        """Return what belongs to a machine, or to one of several."""
        if isinstance(base, Chosen):
            return Chosen(base.index, tuple(self._of(scope, o, node) for o in base.options))
        assert isinstance(base, Instance)
        if isinstance(node, tree.StateOf):
            return StateOf(base)
        if isinstance(node, tree.IndexOf):
            return base.index[self.machine(base).INDEX.index(node.name)]
        if isinstance(node, tree.FieldOf):
            return _as_place(self.layout.places[base.name, base.index][node.name])
        wire = f"{base.name}.{node.name}"
        target = self.system.WIRING.get(wire)
        if target is None:
            raise scope.refusal(
                node,
                f"the port {node.name!r} has no handler: add {wire!r} to WIRING of the system",
            )
        return Listener(Instance(target, base.index))

    def _item(self, scope: Scope, base: Place, index: tuple[Expr, ...], node: tree.Item) -> Place:
        if isinstance(base, Chosen):
            options = tuple(self._item(scope, option, index, node) for option in base.options)
            return Chosen(base.index, options)
        if isinstance(base, FifoCells):
            return self.channel_item(scope, base, index[0], node)
        sizes = self._sizes(base)
        for position, part in enumerate(index):
            if isinstance(part, int):
                if not 0 <= part < sizes[position]:
                    raise scope.refusal(node, f"the index {part} is not below {sizes[position]}")
                continue
            known = self.checked_index(scope, part, sizes[position], node)
            options = tuple(
                self._item(scope, base, (*index[:position], i, *index[position + 1 :]), node)
                for i in range(sizes[position])
            )
            return Chosen(known, options)
        if isinstance(base, AllOf):
            return Instance(base.machine, tuple(part for part in index if isinstance(part, int)))
        assert isinstance(base, tuple)
        assert isinstance(index[0], int)
        return base[index[0]]

    def _sizes(self, base: Place) -> list[int]:
        if isinstance(base, tuple):
            return [len(base)]
        assert isinstance(base, AllOf)
        sets = self.system.MACHINES[base.machine].INDEX
        return [self.system.constants[self.system.INDEX_SETS[name]] for name in sets]

    def checked_index(self, scope: Scope, index: Expr, size: int, node: tree.Node) -> Expr:
        if self.ranges.is_within(index, 0, size - 1):
            return index
        kept = self.local("n", index, scope.block)
        outside = fold("or", fold("<", kept, 0), fold(">=", kept, size))
        message = f"{scope.instance}: `{node.text}` has an index outside 0 to {size - 1}"
        scope.block.append(If(outside, (self.fail(scope, "index", message, node),)))
        self.ranges.narrow(kept.name, (0, size - 1))
        return kept

    def read(self, scope: Scope, place: Place, node: tree.Node) -> Expr:
        """The value of a place."""
        if isinstance(place, int | Local | Load | Op | Not | Select):
            return place
        if isinstance(place, StateName):
            return 0  # a text that is only handed on
        if isinstance(place, Field):
            cell = self.layout.cells[place.cell]
            return fold("+", Load(place.cell), cell.low) if cell.span > 0 else cell.low
        if isinstance(place, StateOf):
            places = self.layout.places[place.instance.name, place.instance.index]
            return Load(places["state"]) if "state" in places else 0
        if isinstance(place, Chosen):
            value = self.read(scope, place.options[-1], node)
            for number, option in reversed([*enumerate(place.options[:-1])]):
                this = self.read(scope, option, node)
                value = select(fold("==", place.index, number), this, value)
            return value
        raise scope.refusal(node, "it has no value of its own")


def _as_place(found: Any) -> Place:
    if isinstance(found, str):
        return Field(found)
    if isinstance(found, list):
        return tuple(_as_place(item) for item in found)
    assert isinstance(found, FifoCells)
    return found


EXPRESSIONS: dict[type[Any], Callable[[Expressions, Scope, Any], Expr]] = {
    tree.Call: lambda self, scope, node: self.call(scope, node),
    tree.Choice: Expressions._choice,
    tree.Computed: lambda self, scope, node: self.computed(scope, node),
    tree.Comparison: Expressions._compare,
    tree.Constant: Expressions._constant,
    tree.Contains: lambda self, scope, node: self.contains(scope, node),
    tree.Length: lambda self, scope, node: self.length(scope, node),
    tree.SetOf: lambda self, scope, node: sum(1 << number for number in node.numbers),
    tree.Drain: lambda self, scope, node: self.call(scope, node),
    tree.Inverse: Expressions._inverse,
    tree.Logic: Expressions._logic,
    tree.Negative: Expressions._negative,
    tree.OneOf: lambda self, scope, node: self.one_of(scope, node),
    tree.Operation: Expressions._arithmetic,
    tree.TableItem: lambda self, scope, node: self.table_item(scope, node),
    tree.Quantified: lambda self, scope, node: self.quantified(scope, node),
    tree.Text: Expressions._text,
}
