"""Lowers statements, channels and calls of methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from epochgate.fsm.checker.compiler.containers import Containers
from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
    Expr,
    Function,
    If,
    Load,
    Local,
    Post,
    Return,
    Stmt,
    Store,
    fold,
    negate,
)
from epochgate.fsm.checker.compiler.layout import FifoCells, outside, overflow
from epochgate.fsm.checker.compiler.ranges import BOOLEAN, Bounds, returned
from epochgate.fsm.checker.compiler.scope import (
    SYSTEM,
    Chosen,
    Field,
    Instance,
    Listener,
    Place,
    Scope,
)
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import Kind


class Statements(Containers):
    """The part of the lowering that deals with the bodies of methods."""

    functions: dict[str, Function]

    @abstractmethod
    def trigger(self, instance: Instance, name: str) -> str:
        """Lower a trigger, once; returns the name of its function."""

    def _is_environment(self, instance: Instance) -> bool:
        return instance != SYSTEM and self.machine(instance).IS_ENVIRONMENT

    def _handler(self, instance: Instance, name: str) -> str:
        """The function that handles an effect."""
        if name in self.machine(instance).triggers():
            return self.trigger(instance, name)
        return self.method(instance, name)

    # Methods

    def invoke(
        self, scope: Scope, instance: Instance, name: str, arguments: tuple[Expr, ...]
    ) -> Expr:
        """Call a method or fire a trigger of an instance; its value, 0 if it has none."""
        if instance != SYSTEM and name in self.machine(instance).triggers():
            self._fire(scope, instance, name, arguments)
            return 0
        method = self._tree(instance, name)
        arguments = arguments[: len(method.parameters)]
        first = method.body[0] if len(method.body) == 1 else None
        if isinstance(first, tree.Return) and first.value is not None:
            if _acts(first.value):
                arguments = tuple(self.kept(scope, a, "k") for a in arguments)
            names: dict[str, Place] = dict(zip(method.parameters, arguments, strict=True))
            inner = Scope(instance, method.function, names, scope.block)
            return self.expression(inner, first.value)
        key = self.method(instance, name)
        if self.functions[key].result is None:
            scope.block.append(Call(key, arguments))
            return 0
        result = self.local("r", 0, [])
        if method.gives is Kind.BOOL:
            self.ranges.narrow(result.name, BOOLEAN)
        else:
            self.ranges.assign(result.name, returned(key))
        scope.block.append(Call(key, arguments, result.name))
        return result

    def _fire(
        self, scope: Scope, instance: Instance, name: str, arguments: tuple[Expr, ...]
    ) -> None:
        machine = self.machine(instance)
        function = self.trigger(instance, name)
        arguments = arguments[: len(machine.trigger_parameters(name))]
        if machine.IS_ENVIRONMENT:
            scope.block.append(Call(function, arguments))
        else:
            queue = "events" if self._is_environment(scope.instance) else "triggers"
            scope.block.append(Post(queue, function, arguments))

    def _tree(self, instance: Instance, name: str) -> tree.MethodTree:
        owner = None if instance == SYSTEM else self.machine(instance)
        return self.system.SUBSET.tree(owner, name)

    def method(self, instance: Instance, name: str) -> str:
        """Lower a method of an instance, once; returns the name of its function."""
        key = f"{instance}.{name}"
        if key in self.functions:
            return key
        method = self._tree(instance, name)
        given = self.parameters(method.parameters)
        function = self.functions[key] = Function(key, tuple(one.name for one in given))
        if method.gives is not Kind.NOTHING:
            function.result = Local("result")
        names: dict[str, Place] = dict(zip(method.parameters, given, strict=True))
        scope = Scope(instance, method.function, names, function=key)
        for parameter, local in zip(method.parameters, given, strict=True):
            if parameter in method.reassigned:
                scope.names[parameter] = self.local("x", local, scope.block)
        self.statements(scope, method.body)
        function.body = tuple(scope.block)
        return key

    def parameters(self, names: Sequence[str]) -> tuple[Local, ...]:
        """The locals that hold the arguments of a function; no other local is named like them."""
        self._fresh += 1
        return tuple(Local(f"p{self._fresh}_{name}") for name in names)

    # Statements

    def statements(self, scope: Scope, nodes: Sequence[tree.Statement]) -> None:
        for node in nodes:
            self._statement(scope, node)
            if isinstance(node, tree.Return):
                return

    def _statement(self, scope: Scope, node: tree.Statement) -> None:
        if isinstance(node, tree.Return):
            if node.value is not None:
                value = self.expression(scope, node.value)
                self.ranges.assign(returned(scope.function).name, value)
                scope.block.append(Assign("result", value))
            scope.block.append(Return())
        elif isinstance(node, tree.If):
            self._if(scope, node)
        elif isinstance(node, tree.ForRange):
            for value in self.numbers_of(scope, node.range):
                scope.names[node.name] = value
                self.statements(scope, node.body)
        elif isinstance(node, tree.ForItems):
            self._take_all(scope, self.place(scope, node.channel), node)
        elif isinstance(node, tree.Assert):
            self._assert(scope, node)
        elif isinstance(node, tree.Assign):
            self._assign(scope, node.target, self.expression(scope, node.value), node)
        elif isinstance(node, tree.Update):
            self._update(scope, node)
        else:
            self.expression(scope, node.call)

    def _update(self, scope: Scope, node: tree.Update) -> None:
        """The target is found and read once, before the value is computed."""
        place = self._settled(scope, self.place(scope, node.target))
        left = self.local("k", self.read(scope, place, node.target), scope.block)
        right = self.expression(scope, node.value)
        if node.target.kind is Kind.SET and node.operator == "-":
            value = self.without(scope, left, right)
        else:
            value = self.operation(scope, node, node.operator, left, right)
        if isinstance(node.target, tree.LocalName):
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

    def _assert(self, scope: Scope, node: tree.Assert) -> None:
        holds = self.expression(scope, node.condition)
        fail = self.fail(scope, "assertion", f"{scope.instance}: {node.told}", node)
        scope.block.append(If(negate(holds), (fail,)))

    def _if(self, scope: Scope, node: tree.If) -> None:
        condition = self.expression(scope, node.condition)
        if isinstance(condition, int):
            self.statements(scope, node.then if condition else node.otherwise)
            return
        with scope.captured() as then:
            self.statements(scope, node.then)
        with scope.captured() as otherwise:
            self.statements(scope, node.otherwise)
        scope.block.append(If(condition, tuple(then), tuple(otherwise)))

    def _take_all(self, scope: Scope, place: Place, node: tree.ForItems) -> None:
        if isinstance(place, Chosen):
            for option in self._each(scope, place, "n"):
                self._take_all(scope, option, node)
            return
        fifo = _channel(place)
        count = self.local("count", Load(fifo.length), scope.block)
        for taken in range(fifo.capacity):
            with scope.captured() as block:
                scope.names[node.name] = self._take(scope, fifo)
                self.statements(scope, node.body)
            scope.block.append(If(fold("<", taken, count), tuple(block)))

    def _each(self, scope: Scope, place: Chosen, prefix: str) -> Iterator[Place]:
        """Each option, while statements go to its branch."""
        index = self.local(prefix, place.index, scope.block)
        for number, option in enumerate(place.options):
            with scope.captured() as block:
                yield option
            scope.block.append(If(fold("==", index, number), tuple(block)))

    def _assign(self, scope: Scope, target: tree.Path, value: Expr, node: tree.Node) -> None:
        if not isinstance(target, tree.LocalName):
            if _acts(target):
                value = self.kept(scope, value, "k")
            self._store(scope, self.place(scope, target), value, node)
            return
        known = scope.names.get(target.name)
        if known is None:
            # It may be given a value in several branches, the first of which decides its name.
            scope.names[target.name] = self.local("x", value, scope.block)
        else:
            assert isinstance(known, Local)
            self.assign_local(known.name, value, scope.block)

    def _store(self, scope: Scope, place: Place, value: Expr, node: tree.Node) -> None:
        if isinstance(place, Chosen):
            kept = self.local("s", value, scope.block)
            for option in self._each(scope, place, "n"):
                self._store(scope, option, kept, node)
            return
        assert isinstance(place, Field)
        if place.cell in self.layout.sets:
            self.store_set(scope, place, value, node)
            return
        cell = self.layout.cells[place.cell]
        bounds = cell.low, cell.low + cell.span
        if place.cell in self.layout.wrapping and not self.ranges.is_within(value, *bounds):
            above = fold("%", fold("-", value, cell.low), cell.span + 1)
            value = fold("+", above, cell.low)
        within = self.checked(scope, value, bounds, place.cell, node)
        scope.block.append(Store(place.cell, fold("-", within, cell.low)))

    def checked(
        self, scope: Scope, value: Expr, bounds: Bounds, name: str, node: tree.Node
    ) -> Expr:
        if self.ranges.is_within(value, *bounds):
            return value
        kept = self.local("c", value, scope.block)
        fail = self.fail(scope, "range", outside(name, *bounds), node)
        is_outside = fold("or", fold("<", kept, bounds[0]), fold(">", kept, bounds[1]))
        scope.block.append(If(is_outside, (fail,)))
        self.ranges.narrow(kept.name, bounds)
        return kept

    # Calls

    def call(self, scope: Scope, node: tree.Call | tree.Drain) -> Expr:
        if isinstance(node, tree.Drain):
            into, source = self.place(scope, node.into), self.place(scope, node.source)
            self._drain(scope, into, source, node)
            return 0
        base = self.place(scope, node.owner)
        if _acts(node.arguments):
            base = self._settled(scope, base)
        return self._called(scope, base, tuple(self.values(scope, node.arguments)), node)

    def _called(
        self, scope: Scope, base: Place, arguments: tuple[Expr, ...], node: tree.Call
    ) -> Expr:
        name = node.callee.name
        if isinstance(base, Chosen):
            kept = tuple(
                a if isinstance(a, int) else self.local("a", a, scope.block) for a in arguments
            )
            result = self.local("v", 0, scope.block)
            for option in self._each(scope, base, "n"):
                value = self._called(scope, option, kept, node)
                self.assign_local(result.name, value, scope.block)
            return result
        if isinstance(base, FifoCells):
            return self._operate(scope, base, arguments, node)
        if isinstance(base, Field):
            return self.operate_on_set(scope, base, arguments, node)
        if isinstance(base, Listener):
            handler = self._handler(base.instance, name)
            count = len(self.functions[handler].parameters)
            scope.block.append(Post("effects", handler, arguments[:count]))
            return 0
        assert isinstance(base, Instance)
        return self.invoke(scope, base, name, arguments)

    def quantified(self, scope: Scope, node: tree.Quantified) -> Expr:
        operator, joint = ("and", "or") if node.is_all else ("or", "and")
        outer = dict(scope.names)

        def tested(conditions: Sequence[tree.Expression]) -> Expr:
            """The element where all conditions hold, what changes nothing elsewhere."""
            if not conditions:
                return self.expression(scope, node.element)
            condition = self.expression(scope, conditions[0])
            if node.is_all:
                condition = negate(condition)
            return self.lazily(scope, joint, condition, lambda: tested(conditions[1:]))

        def unrolled(value: Expr, loops: Sequence[tuple[str, tree.Range]]) -> Expr:
            if not loops:
                return self.lazily(scope, operator, value, lambda: tested(node.conditions))
            name, numbers = loops[0]
            for number in self.numbers_of(scope, numbers):
                scope.names[name] = number
                value = unrolled(value, loops[1:])
            return value

        value = unrolled(int(node.is_all), node.loops)
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

    def _operate(
        self, scope: Scope, fifo: FifoCells, arguments: tuple[Expr, ...], node: tree.Call
    ) -> Expr:
        """An operation of a channel; its value, 0 if it has none."""
        name, length = node.callee.name, Load(fifo.length)
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
        if name == "take":
            return self.take_out(scope, fifo, arguments[0], node)
        if name == "remove":
            self.remove(scope, fifo, arguments[0], node)
            return 0
        fail = self.fail(scope, "empty", f"{fifo.name} is empty", node)
        scope.block.append(If(fold("==", length, 0), (fail,)))
        if name == "pop":
            return self._take(scope, fifo)
        item = self.local("head", fold("&", Load(fifo.items), _ones(fifo.item_bits)), scope.block)
        self.ranges.narrow(item.name, (0, fifo.item_maximum))
        return item

    def _push(self, scope: Scope, fifo: FifoCells, item: Expr, node: tree.Node) -> None:
        length = Load(fifo.length)
        full = self.fail(scope, "overflow", overflow(fifo.name, fifo.capacity), node)
        value = self.checked(scope, item, (0, fifo.item_maximum), fifo.name, node)
        at = fold("*", length, fifo.item_bits)
        scope.block += [
            If(fold("==", length, fifo.capacity), (full,)),
            Store(fifo.items, fold("|", Load(fifo.items), fold("<<", value, at))),
            Store(fifo.length, fold("+", length, 1)),
        ]

    def _drain(self, scope: Scope, place: Place, other: Place, node: tree.Drain) -> None:
        for side in (place, other):
            if isinstance(side, Chosen):
                for option in self._each(scope, side, "n"):
                    if side is place:
                        self._drain(scope, option, other, node)
                    else:
                        self._drain(scope, place, option, node)
                return
        into, source = _channel(place), _channel(other)
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


def _acts(part: object) -> bool:
    """Return whether an expression may change what another one reads."""
    return any(isinstance(p, tree.Call | tree.Quantified | tree.OneOf) for p in tree.walk(part))


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _channel(place: Place) -> FifoCells:
    assert isinstance(place, FifoCells)
    return place
