"""Lowers statements, channels and calls of methods."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from epochgate.fsm.compiler.expressions import Expressions
from epochgate.fsm.compiler.ir import (
    Assign,
    Call,
    Expr,
    Function,
    If,
    Load,
    Local,
    Return,
    Stmt,
    Store,
    fold,
    negate,
)
from epochgate.fsm.compiler.layout import FifoCells, outside, overflow
from epochgate.fsm.compiler.scope import (
    BOOLEAN,
    SYSTEM,
    Chosen,
    Field,
    Instance,
    Place,
    Scope,
)
from epochgate.fsm.declaration import parameters
from epochgate.fsm.source import definition


class Statements(Expressions):
    """The part of the lowering that deals with the bodies of methods."""

    functions: dict[str, Function]

    @abstractmethod
    def trigger(self, instance: Instance, name: str) -> str:
        """Lower a trigger, once; returns the name of its function."""

    # Methods

    def invoke(
        self, scope: Scope, instance: Instance, name: str, arguments: tuple[Expr, ...]
    ) -> Expr:
        """Call a method or fire a trigger of an instance; its value, 0 if it has none."""
        owner: type = type(self.system)
        if instance != SYSTEM:
            machine = owner = self.machine(instance)
            if name in machine.triggers():
                count = len(machine.trigger_parameters(name))
                scope.block.append(Call(self.trigger(instance, name), arguments[:count]))
                return 0
        method = getattr(owner, name)
        names = parameters(method)
        arguments = arguments[: len(names)]
        body = [s for s in definition(method).body if not _is_docstring(s)]
        if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
            inner = Scope(instance, method, dict(zip(names, arguments, strict=True)), scope.block)
            return self.expression(inner, body[0].value)
        key = self.method(instance, method)
        if self.functions[key].result is None:
            scope.block.append(Call(key, arguments))
            return 0
        result = self.local("r", 0, [])
        is_bool = method.__annotations__.get("return") in (bool, "bool")
        self.ranges.narrow(result.name, BOOLEAN if is_bool else (-(1 << 61), 1 << 61))
        scope.block.append(Call(key, arguments, result.name))
        return result

    def method(self, instance: Instance, method: Callable[..., Any]) -> str:
        """Lower a method of an instance, once; returns the name of its function."""
        key = f"{instance}.{method.__name__}"
        if key in self.functions:
            return key
        names = parameters(method)
        tree = definition(method)
        function = self.functions[key] = Function(key, names)
        if method.__annotations__.get("return") not in (None, "None"):
            function.result = Local("result")
        scope = Scope(instance, method, {name: Local(name) for name in names})
        for name in _reassigned(tree, names):
            scope.names[name] = self.local("x", Local(name), scope.block)
        self.statements(scope, tree.body)
        function.body = tuple(scope.block)
        return key

    # Statements

    def statements(self, scope: Scope, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if _is_docstring(node) or isinstance(node, ast.Pass):
                continue
            self._statement(scope, node)
            if isinstance(node, ast.Return):
                return

    def _statement(self, scope: Scope, node: ast.stmt) -> None:
        if isinstance(node, ast.Return):
            if node.value is not None:
                scope.block.append(Assign("result", self.expression(scope, node.value)))
            scope.block.append(Return())
        elif isinstance(node, ast.If):
            self._if(scope, node)
        elif isinstance(node, ast.For):
            self._for(scope, node)
        elif isinstance(node, ast.Assert):
            self._assert(scope, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            self._assign(scope, target, self.expression(scope, node.value), node)
        elif isinstance(node, ast.AugAssign):
            self._augment(scope, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(scope, node.value)
        else:
            raise scope.refusal(node, "use assignments, `if`, `for` over a range, and calls")

    def _augment(self, scope: Scope, node: ast.AugAssign) -> None:
        """The target is found and read once, before the value is computed."""
        place = self._settled(scope, self.place(scope, node.target))
        left = self.local("k", self.read(scope, place, node.target), scope.block)
        right = self.expression(scope, node.value)
        value = self.operation(scope, node, node.op, left, right)
        if isinstance(node.target, ast.Name):
            self._assign(scope, node.target, value, node)
        else:
            self._store(scope, place, value, node)

    def _settled(self, scope: Scope, place: Place) -> Place:
        """The same place with its index kept, whatever is done before it is used."""
        if not isinstance(place, Chosen):
            return place
        index = place.index
        if not isinstance(index, int | Local):
            index = self.local("n", index, scope.block)
        return Chosen(index, tuple(self._settled(scope, option) for option in place.options))

    def _assert(self, scope: Scope, node: ast.Assert) -> None:
        holds = self.expression(scope, node.test)
        msg = node.msg
        told = str(msg.value) if isinstance(msg, ast.Constant) else ast.unparse(node.test)
        fail = self.fail(scope, "assertion", f"{scope.instance}: {told}", node)
        scope.block.append(If(negate(holds), (fail,)))

    def _if(self, scope: Scope, node: ast.If) -> None:
        condition = self.expression(scope, node.test)
        if isinstance(condition, int):
            self.statements(scope, node.body if condition else node.orelse)
            return
        with scope.captured() as then:
            self.statements(scope, node.body)
        with scope.captured() as otherwise:
            self.statements(scope, node.orelse)
        scope.block.append(If(condition, tuple(then), tuple(otherwise)))

    def _for(self, scope: Scope, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
            raise scope.refusal(node, "loop over `range(...)` or `take_all()` with one plain name")
        if isinstance(node.iter.func, ast.Attribute) and node.iter.func.attr == "take_all":
            place = self.place(scope, node.iter.func.value)
            self._take_all(scope, place, node.target.id, node)
            return
        for value in self._range(scope, node.iter):
            scope.names[node.target.id] = value
            self.statements(scope, node.body)

    def _take_all(self, scope: Scope, place: Place, name: str, node: ast.For) -> None:
        if isinstance(place, Chosen):
            for block in self._each(scope, place, "n"):
                self._take_all(scope, block, name, node)
            return
        fifo = self.field(scope, place, node.iter)
        count = self.local("count", Load(fifo.length), scope.block)
        for taken in range(fifo.capacity):
            with scope.captured() as block:
                scope.names[name] = self._take(scope, fifo)
                self.statements(scope, node.body)
            scope.block.append(If(fold("<", taken, count), tuple(block)))

    def _each(self, scope: Scope, place: Chosen, prefix: str) -> Any:
        """Each option, while statements go to its branch."""
        index = self.local(prefix, place.index, scope.block)
        for number, option in enumerate(place.options):
            with scope.captured() as block:
                yield option
            scope.block.append(If(fold("==", index, number), tuple(block)))

    def _range(self, scope: Scope, node: ast.Call) -> range:
        bounds = self.values(scope, node.args)
        if getattr(node.func, "id", "") != "range" or not all(isinstance(b, int) for b in bounds):
            raise scope.refusal(node, "loop over `range(...)` of constants of the system")
        return range(*[bound for bound in bounds if isinstance(bound, int)])

    def _assign(self, scope: Scope, target: ast.expr, value: Expr, node: ast.AST) -> None:
        if not isinstance(target, ast.Name):
            self._store(scope, self.place(scope, target), value, node)
            return
        known = scope.names.get(target.id)
        if known is not None and not (isinstance(known, Local) and known.name.startswith("x_")):
            raise scope.refusal(node, "the variable of a loop keeps its value; use another name")
        if known is None:
            # It may be given a value in several branches, the first of which decides its name.
            scope.names[target.id] = self.local("x", value, scope.block)
        else:
            assert isinstance(known, Local)
            self.assign_local(known.name, value, scope.block)

    def _store(self, scope: Scope, place: Place, value: Expr, node: ast.AST) -> None:
        if isinstance(place, Chosen):
            kept = self.local("s", value, scope.block)
            for option in self._each(scope, place, "n"):
                self._store(scope, option, kept, node)
            return
        if not isinstance(place, Field):
            raise scope.refusal(node, "only int and bool fields can be assigned to")
        cell = self.layout.cells[place.cell]
        within = self._checked(scope, value, cell.maximum, place.cell, node)
        scope.block.append(Store(place.cell, within))

    def _checked(self, scope: Scope, value: Expr, maximum: int, name: str, node: ast.AST) -> Expr:
        if self.ranges.is_within(value, 0, maximum):
            return value
        kept = self.local("c", value, scope.block)
        fail = self.fail(scope, "range", outside(name, maximum), node)
        is_outside = fold("or", fold("<", kept, 0), fold(">", kept, maximum))
        scope.block.append(If(is_outside, (fail,)))
        self.ranges.narrow(kept.name, (0, maximum))
        return kept

    # Calls

    def call(self, scope: Scope, node: ast.Call) -> Expr:
        if isinstance(node.func, ast.Name) and node.func.id in ("all", "any"):
            return self._quantified(scope, node, node.func.id == "all")
        if not isinstance(node.func, ast.Attribute):
            raise scope.refusal(node, "call methods, triggers, messages and channels only")
        base = self.place(scope, node.func.value)
        if node.func.attr == "drain":
            self._drain(scope, base, self.place(scope, node.args[0]), node)
            return 0
        if any(isinstance(part, ast.Call) for a in node.args for part in ast.walk(a)):
            base = self._settled(scope, base)
        arguments = tuple(self.values(scope, node.args))
        return self._called(scope, base, node.func.attr, arguments, node)

    def _called(
        self, scope: Scope, base: Place, name: str, arguments: tuple[Expr, ...], node: ast.Call
    ) -> Expr:
        if isinstance(base, Chosen):
            kept = tuple(
                a if isinstance(a, int) else self.local("a", a, scope.block) for a in arguments
            )
            result = self.local("v", 0, scope.block)
            for option in self._each(scope, base, "n"):
                value = self._called(scope, option, name, kept, node)
                self.assign_local(result.name, value, scope.block)
            return result
        if isinstance(base, FifoCells):
            return self._channel(scope, base, name, arguments, node)
        if isinstance(base, Instance):
            return self.invoke(scope, base, name, arguments)
        raise scope.refusal(node, "this cannot be called")

    def _quantified(self, scope: Scope, node: ast.Call, is_all: bool) -> Expr:
        generator = node.args[0] if node.args else node
        if not isinstance(generator, ast.GeneratorExp):
            raise scope.refusal(node, "write one `... for x in range(...)` in it")
        operator = "and" if is_all else "or"
        outer = dict(scope.names)

        def tested(conditions: list[ast.expr]) -> Expr:
            """The element where all conditions hold, what changes nothing elsewhere."""
            if not conditions:
                return self.expression(scope, generator.elt)
            condition = self.expression(scope, conditions[0])
            if is_all:
                condition = negate(condition)
            joint = "or" if is_all else "and"
            return self.lazily(scope, joint, condition, lambda: tested(conditions[1:]))

        def unrolled(value: Expr, remaining: list[ast.comprehension]) -> Expr:
            if not remaining:
                conditions = [c for part in generator.generators for c in part.ifs]
                return self.lazily(scope, operator, value, lambda: tested(conditions))
            target, iterated = remaining[0].target, remaining[0].iter
            if not isinstance(target, ast.Name) or not isinstance(iterated, ast.Call):
                raise scope.refusal(node, "loop over `range(...)` with one plain name")
            for number in self._range(scope, iterated):
                scope.names[target.id] = number
                value = unrolled(value, remaining[1:])
            return value

        value = unrolled(int(is_all), generator.generators)
        scope.names = outer
        return value

    # Channels

    def _take(self, scope: Scope, fifo: FifoCells) -> Local:
        """Remove the oldest item, which is there."""
        item = self.local("head", fold("&", Load(fifo.items), _ones(fifo.item_bits)), scope.block)
        self.ranges.narrow(item.name, (0, fifo.item_maximum))
        scope.block += [
            Store(fifo.items, fold(">>", Load(fifo.items), fifo.item_bits)),
            Store(fifo.length, fold("-", Load(fifo.length), 1)),
        ]
        return item

    def _channel(
        self, scope: Scope, fifo: FifoCells, name: str, arguments: tuple[Expr, ...], node: ast.Call
    ) -> Expr:
        length: Expr = Load(fifo.length)
        if name == "empty":
            return fold("==", length, 0)
        if name == "size":
            return length
        if name == "clear":
            scope.block += [Store(fifo.items, 0), Store(fifo.length, 0)]
            return 0
        if name == "push":
            self._push(scope, fifo, arguments[0], node)
            return 0
        if name not in ("pop", "head"):
            raise scope.refusal(node, f"a channel has no {name!r}")
        fail = self.fail(scope, "empty", f"{fifo.name} is empty", node)
        scope.block.append(If(fold("==", length, 0), (fail,)))
        if name == "pop":
            return self._take(scope, fifo)
        item = self.local("head", fold("&", Load(fifo.items), _ones(fifo.item_bits)), scope.block)
        self.ranges.narrow(item.name, (0, fifo.item_maximum))
        return item

    def _push(self, scope: Scope, fifo: FifoCells, item: Expr, node: ast.AST) -> None:
        length = Load(fifo.length)
        full = self.fail(scope, "overflow", overflow(fifo.name, fifo.capacity), node)
        value = self._checked(scope, item, fifo.item_maximum, fifo.name, node)
        at = fold("*", length, fifo.item_bits)
        scope.block += [
            If(fold("==", length, fifo.capacity), (full,)),
            Store(fifo.items, fold("|", Load(fifo.items), fold("<<", value, at))),
            Store(fifo.length, fold("+", length, 1)),
        ]

    def _drain(self, scope: Scope, place: Place, other: Place, node: ast.AST) -> None:
        for side in (place, other):
            if isinstance(side, Chosen):
                for option in self._each(scope, side, "n"):
                    if side is place:
                        self._drain(scope, option, other, node)
                    else:
                        self._drain(scope, place, option, node)
                return
        into, source = self.field(scope, place, node), self.field(scope, other, node)
        if into.item_bits != source.item_bits:
            raise scope.refusal(node, "drain channels with the same kind of items")
        total = fold("+", Load(into.length), Load(source.length))
        at = fold("*", Load(into.length), into.item_bits)
        full = self.fail(scope, "overflow", overflow(into.name, into.capacity), node)
        moved: tuple[Stmt, ...] = (
            Store(into.items, fold("|", Load(into.items), fold("<<", Load(source.items), at))),
            Store(into.length, total),
            Store(source.items, 0),
            Store(source.length, 0),
        )
        scope.block += [If(fold(">", total, into.capacity), (full,)), *moved]


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _reassigned(tree: ast.FunctionDef, names: tuple[str, ...]) -> list[str]:
    """The parameters that the body gives other values."""
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return [name for name in names if name in stored]
