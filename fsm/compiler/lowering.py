"""Lowers a closed system's guards, actions and properties, as they stand, to the intermediate form.

Each method becomes one function for each instance, so that every index is known and every cell has a
fixed place; methods that only return a value are put in line. Loops over index sets are unrolled. A
subscript that is known only at run time becomes a choice among all instances.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.compiler.ir import (
    Assign,
    Call,
    Cell,
    Cover,
    Expr,
    Fail,
    Fault,
    Function,
    If,
    Load,
    Local,
    Program,
    StepCode,
    Stmt,
    Store,
    fold,
    negate,
    select,
)
from epochgate.fsm.compiler.layout import FifoCells, Layout
from epochgate.fsm.declaration import parameters
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.machine import Machine
from epochgate.fsm.source import definition

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
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


@dataclass(frozen=True)
class Instance:
    """A machine of the system, or with name "" the system itself."""

    name: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return self.name + "".join(f"[{i}]" for i in self.index)


@dataclass(frozen=True)
class StateOf:
    """The state of an instance, to be compared with a state's name."""

    instance: Instance


@dataclass(frozen=True)
class Chosen:
    """Something picked by an index that is known at run time only."""

    index: Expr
    options: tuple[Any, ...]


SYSTEM = Instance("", ())


@dataclass
class Scope:
    """Names of one method while it is lowered."""

    instance: Instance
    method: Callable[..., Any]
    names: dict[str, Any]
    block: list[Stmt]
    prefix: str = ""


@dataclass
class Lowering:
    """One system with its constants, on its way to a program."""

    system: ClosedSystem
    layout: Layout = field(init=False)
    functions: dict[str, Function] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    _row_numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    _fresh: int = 0

    def __post_init__(self) -> None:
        self.layout = Layout(self.system)
        for name, machine in self.system.MACHINES.items():
            for number, row in enumerate(machine.ROWS):
                self._row_numbers[name, number] = len(self.rows)
                self.rows.append(f"{name}.{row.trigger} from {row.source}: {row.because}")

    def program(self) -> Program:
        steps = [
            self._step(step.machine, m.index, step.trigger)
            for step, m in self.system.step_instances()
        ]
        properties = {
            p.name: self._method(SYSTEM, getattr(type(self.system), p.name))
            for p in self.system.properties()
        }
        return Program(
            cells=self.layout.cells,
            words=self.layout.words,
            functions=self.functions,
            steps=steps,
            properties=properties,
            faults=self.faults,
            rows=self.rows,
            initial=self.layout.pack(self.layout.initial),
            initial_values=self.layout.initial,
        )

    # steps and triggers

    def _machine(self, instance: Instance) -> type[Machine]:
        return self.system.MACHINES[instance.name]

    def _step(self, name: str, index: tuple[int, ...], trigger: str) -> StepCode:
        instance = Instance(name, index)
        enabled: Expr = 0
        for source, row in self._machine(instance).expanded_rows():
            if row.trigger == trigger and not row.is_ignored:
                enabled = fold("or", enabled, self._holds(instance, source, row.literals, (), []))
        return StepCode(name, index, trigger, enabled, self._trigger(instance, trigger))

    def _holds(
        self,
        instance: Instance,
        source: str,
        literals: Iterable[tuple[str, bool]],
        arguments: tuple[Expr, ...],
        block: list[Stmt],
    ) -> Expr:
        holds = self._is_state(instance, source)
        for name, expected in literals:
            value = self._invoke(instance, name, arguments, block)
            holds = fold("and", holds, value if expected else negate(value))
        return holds

    def _is_state(self, instance: Instance, state: str) -> Expr:
        places = self.layout.places[instance.name, instance.index]
        if "state" not in places:
            return 1
        return fold("==", Load(places["state"]), self._machine(instance).STATES.index(state))

    def _trigger(self, instance: Instance, trigger: str) -> str:
        machine = self._machine(instance)
        key = f"{instance}.{trigger}"
        if key in self.functions:
            return key
        names = machine.trigger_parameters(trigger)
        function = self.functions[key] = Function(key, names)
        arguments = tuple(Local(n) for n in names)
        branches: list[tuple[Expr, tuple[Stmt, ...]]] = []
        before: list[Stmt] = []
        by_row: dict[int, Expr] = {}
        for number, row in enumerate(machine.ROWS):
            if row.trigger != trigger:
                continue
            sources = [s for s, r in machine.expanded_rows() if r is row]
            state: Expr = 0
            for source in sources:
                state = fold("or", state, self._is_state(instance, source))
            if len(sources) == len(machine.STATES):
                state = 1
            holds = state
            for name, expected in row.literals:
                value = self._invoke(instance, name, arguments, before)
                holds = fold("and", holds, value if expected else negate(value))
            by_row[number] = holds
        for number, holds in by_row.items():
            row = machine.ROWS[number]
            body: list[Stmt] = [Cover(self._row_numbers[instance.name, number])]
            if (
                row.dest is not None
                and "state" in self.layout.places[instance.name, instance.index]
            ):
                cell = self.layout.places[instance.name, instance.index]["state"]
                body.append(Store(cell, machine.STATES.index(row.dest)))
            for name in row.actions:
                self._invoke(instance, name, arguments, body)
            branches.append((holds, tuple(body)))
        refused = self._fault(
            "refused",
            f"{instance} refuses {trigger!r} in its state",
            getattr(machine, machine.ROWS[0].actions[0]) if False else machine.__init__,
            None,
            machine,
        )
        code: tuple[Stmt, ...] = (Fail(refused),)
        for holds, body_code in reversed(branches):
            code = (
                (If(holds, body_code, code),)
                if not isinstance(holds, int)
                else (body_code if holds else code)
            )
        function.body = (*before, *code)
        return key

    def _fault(
        self,
        kind: str,
        message: str,
        method: Callable[..., Any] | None,
        node: ast.AST | None,
        machine: type[Machine] | None = None,
    ) -> int:
        if machine is not None:
            file, line = inspect.getsourcefile(machine) or "", inspect.getsourcelines(machine)[1]
        else:
            file = method.__code__.co_filename if method is not None else ""
            line = getattr(node, "lineno", 0)
        fault = Fault(kind, message, file, line)
        if fault not in self.faults:
            self.faults.append(fault)
        return self.faults.index(fault)

    # methods

    def _invoke(
        self, instance: Instance, name: str, arguments: tuple[Expr, ...], block: list[Stmt]
    ) -> Expr:
        """Call a method or fire a trigger of an instance; its value, 0 if it has none."""
        machine = type(self.system) if instance == SYSTEM else self._machine(instance)
        if instance != SYSTEM and name in self._machine(instance).triggers():
            count = len(self._machine(instance).trigger_parameters(name))
            block.append(Call(self._trigger(instance, name), arguments[:count]))
            return 0
        method = getattr(machine, name)
        arguments = arguments[: len(parameters(method))]
        tree = definition(method)
        statements = [s for s in tree.body if not _is_docstring(s)]
        if (
            len(statements) == 1
            and isinstance(statements[0], ast.Return)
            and statements[0].value is not None
        ):
            names = dict(zip(parameters(method), arguments, strict=True))
            scope = Scope(instance, method, names, block, self._new("i"))
            return self._expression(scope, statements[0].value)
        key = self._method(instance, method)
        if self.functions[key].result is None:
            block.append(Call(key, arguments))
            return 0
        local = self._new("r")
        block.append(Call(key, arguments, local))
        return Local(local)

    def _method(self, instance: Instance, method: Callable[..., Any]) -> str:
        key = f"{instance}.{method.__name__}"
        if key in self.functions:
            return key
        names = parameters(method)
        tree = definition(method)
        function = self.functions[key] = Function(key, names)
        returns = _returns_value(tree)
        if returns:
            function.result = Local("result")
        scope = Scope(instance, method, {n: Local(n) for n in names}, [])
        self._statements(scope, tree.body)
        function.body = tuple(scope.block)
        return key

    def _new(self, prefix: str) -> str:
        self._fresh += 1
        return f"{prefix}_{self._fresh}"

    # statements

    def _statements(self, scope: Scope, statements: list[ast.stmt]) -> None:
        for position, node in enumerate(statements):
            if _is_docstring(node) or isinstance(node, ast.Pass):
                continue
            if isinstance(node, ast.Return):
                if node.value is not None:
                    scope.block.append(Assign("result", self._expression(scope, node.value)))
                return
            if isinstance(node, ast.If) and _leaves(node.body) and not node.orelse:
                rest = ast.If(test=node.test, body=node.body, orelse=statements[position + 1 :])
                self._if(scope, ast.copy_location(rest, node))
                return
            self._statement(scope, node)

    def _statement(self, scope: Scope, node: ast.stmt) -> None:
        if isinstance(node, ast.If):
            self._if(scope, node)
        elif isinstance(node, ast.For):
            self._for(scope, node)
        elif isinstance(node, ast.Assert):
            holds = self._expression(scope, node.test)
            message = ast.unparse(node.msg) if node.msg is not None else ast.unparse(node.test)
            if isinstance(node.msg, ast.Constant):
                message = str(node.msg.value)
            fault = self._fault("assertion", f"{scope.instance}: {message}", scope.method, node)
            scope.block.append(If(negate(holds), (Fail(fault),)))
        elif isinstance(node, ast.Assign):
            self._assign(
                scope, node.targets[0], self._value_of(scope, node.value, node.targets[0]), node
            )
        elif isinstance(node, ast.AugAssign):
            left = self._expression(scope, _as_load(node.target))
            value = fold(OPERATORS[type(node.op)], left, self._expression(scope, node.value))
            self._assign(scope, node.target, value, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call(scope, node.value)
        else:
            raise self._refuse(scope, node)

    def _if(self, scope: Scope, node: ast.If) -> None:
        condition = self._expression(scope, node.test)
        if isinstance(condition, int):
            self._statements(scope, node.body if condition else node.orelse)
            return
        then, otherwise = self._branch(scope, node.body), self._branch(scope, node.orelse)
        scope.block.append(If(condition, then, otherwise))

    def _branch(self, scope: Scope, statements: list[ast.stmt]) -> tuple[Stmt, ...]:
        outer = scope.block
        scope.block = []
        self._statements(scope, statements)
        block, scope.block = scope.block, outer
        return tuple(block)

    def _for(self, scope: Scope, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            raise self._refuse(scope, node)
        iterated = node.iter
        if isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") == "range":
            for value in self._range(scope, iterated):
                scope.names[node.target.id] = value
                self._statements(scope, node.body)
            return
        if isinstance(iterated, ast.Call) and getattr(iterated.func, "attr", "") == "take_all":
            assert isinstance(iterated.func, ast.Attribute)
            self._for_each_fifo(scope, self._place(scope, iterated.func.value), node)
            return
        raise self._refuse(scope, node)

    def _for_each_fifo(self, scope: Scope, place: Any, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        if isinstance(place, Chosen):
            for number, option in enumerate(place.options):
                outer, scope.block = scope.block, []
                self._for_each_fifo(scope, option, node)
                block, scope.block = scope.block, outer
                scope.block.append(If(fold("==", place.index, number), tuple(block)))
            return
        count = self._new("count")
        scope.block.append(Assign(count, Load(place.length)))
        for taken in range(place.capacity):
            outer, scope.block = scope.block, []
            item = self._new(node.target.id)
            scope.block.append(Assign(item, self._head(place)))
            self._drop_head(scope, place)
            scope.names[node.target.id] = Local(item)
            self._statements(scope, node.body)
            block, scope.block = scope.block, outer
            scope.block.append(If(fold("<", taken, Local(count)), tuple(block)))

    def _range(self, scope: Scope, node: ast.Call) -> range:
        bounds = [self._expression(scope, argument) for argument in node.args]
        if not all(isinstance(bound, int) for bound in bounds):
            raise self._refuse(scope, node, "loop over constants of the system")
        return range(*[b for b in bounds if isinstance(b, int)])

    # places: fields, machines, ports

    def _place(self, scope: Scope, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            if node.id == "self":
                return scope.instance
            if node.id in scope.names:
                return scope.names[node.id]
            found = scope.method.__globals__.get(node.id)
            if isinstance(found, str | int):
                return found
            raise self._refuse(scope, node, "a field, a local, or a constant of the module")
        if isinstance(node, ast.Attribute):
            return self._attribute(scope, self._place(scope, node.value), node)
        if isinstance(node, ast.Subscript):
            return self._subscript(scope, node)
        return self._expression(scope, node)

    def _attribute(self, scope: Scope, base: Any, node: ast.Attribute) -> Any:
        if isinstance(base, Chosen):
            return Chosen(base.index, tuple(self._attribute(scope, o, node) for o in base.options))
        if not isinstance(base, Instance):
            raise self._refuse(scope, node)
        name = node.attr
        if base == SYSTEM:
            if name in self.system.MACHINES:
                machine = self.system.MACHINES[name]
                return Instance(name, ()) if not machine.INDEX else ("machines", name)
            if name in self.system.constants:
                return self.system.constants[name]
            raise self._refuse(scope, node, "a machine or constant of the system")
        if name == "system":
            return SYSTEM
        machine = self._machine(base)
        if name in machine.INDEX:
            return base.index[machine.INDEX.index(name)]
        if name == "state":
            return StateOf(base)
        if name in machine.FIELDS:
            return self.layout.places[base.name, base.index][name]
        if name in machine.PORTS:
            target = self.system.WIRING.get(f"{base.name}.{name}")
            if target is None:
                raise self._refuse(
                    scope, node, f"wire the port: WIRING[{base.name + '.' + name!r}]"
                )
            return Instance(target, base.index)
        raise self._refuse(scope, node, "a field, index or port of the machine")

    def _subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        base = self._place(scope, node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._pick(scope, base, tuple(self._expression(scope, p) for p in parts), node)

    def _pick(self, scope: Scope, base: Any, index: tuple[Expr, ...], node: ast.AST) -> Any:
        if isinstance(base, Chosen):
            return Chosen(
                base.index, tuple(self._pick(scope, o, index, node) for o in base.options)
            )
        for position, part in enumerate(index):
            if not isinstance(part, int):
                size = self._size(base, position)
                options = tuple(
                    self._pick(scope, base, (*index[:position], i, *index[position + 1 :]), node)
                    for i in range(size)
                )
                return options[0] if len(options) == 1 else Chosen(part, options)
        known = tuple(p for p in index if isinstance(p, int))
        if isinstance(base, list):
            if not 0 <= known[0] < len(base):
                raise self._refuse(scope, node, f"an index below {len(base)}")
            return base[known[0]]
        if isinstance(base, tuple) and base[0] == "machines":
            return Instance(base[1], known)
        raise self._refuse(scope, node, "a subscript of an array or of machines")

    def _size(self, base: Any, position: int) -> int:
        if isinstance(base, list):
            return len(base)
        machine = self.system.MACHINES[base[1]]
        return self.system.constants[self.system.INDEX_SETS[machine.INDEX[position]]]

    # expressions

    def _read(self, place: Any) -> Expr:
        if isinstance(place, str):
            return Load(place) if self.layout.cells[place].maximum > 0 else 0
        if isinstance(place, bool | int):
            return int(place)
        if isinstance(place, StateOf):
            places = self.layout.places[place.instance.name, place.instance.index]
            return Load(places["state"]) if "state" in places else 0
        if isinstance(place, Chosen):
            value = self._read(place.options[-1])
            for number, option in reversed(list(enumerate(place.options[:-1]))):
                value = select(fold("==", place.index, number), self._read(option), value)
            return value
        if isinstance(place, list | FifoCells | Instance | tuple):
            raise DeclarationError(f"{place!r} has no value of its own")
        return place  # type: ignore[no-any-return]  # an expression

    def _expression(self, scope: Scope, node: ast.expr) -> Expr:
        if isinstance(node, ast.Constant):
            return int(node.value)  # type: ignore[arg-type]  # the subset has ints and bools only
        if isinstance(node, ast.BinOp):
            return fold(
                OPERATORS[type(node.op)],
                self._expression(scope, node.left),
                self._expression(scope, node.right),
            )
        if isinstance(node, ast.BoolOp):
            operator = "and" if isinstance(node.op, ast.And) else "or"
            value = self._expression(scope, node.values[0])
            for part in node.values[1:]:
                value = fold(operator, value, self._expression(scope, part))
            return value
        if isinstance(node, ast.UnaryOp):
            operand = self._expression(scope, node.operand)
            return negate(operand) if isinstance(node.op, ast.Not) else fold("-", 0, operand)
        if isinstance(node, ast.Compare):
            return self._compare(scope, node)
        if isinstance(node, ast.IfExp):
            return select(
                self._expression(scope, node.test),
                self._expression(scope, node.body),
                self._expression(scope, node.orelse),
            )
        if isinstance(node, ast.Call):
            return self._call(scope, node)
        return self._read(self._place(scope, node))

    def _compare(self, scope: Scope, node: ast.Compare) -> Expr:
        value: Expr = 1
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            value = fold("and", value, self._comparison(scope, left, operator, right, node))
            left = right
        return value

    def _comparison(
        self, scope: Scope, left: ast.expr, operator: ast.cmpop, right: ast.expr, node: ast.AST
    ) -> Expr:
        if type(operator) not in OPERATORS:
            raise self._refuse(scope, node)
        a, b = self._operand(scope, left), self._operand(scope, right)
        for one, other in ((a, b), (b, a)):
            if isinstance(other, str) and other not in self.layout.cells:
                return fold(
                    OPERATORS[type(operator)], self._read(one), self._state_number(one, other)
                )
        return fold(OPERATORS[type(operator)], self._read(a), self._read(b))

    def _operand(self, scope: Scope, node: ast.expr) -> Any:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return self._place(scope, node)
        return self._expression(scope, node)

    def _state_number(self, place: Any, state: str) -> int:
        while isinstance(place, Chosen):
            place = place.options[0]
        states = self._machine(place.instance).STATES
        return states.index(state)

    def _value_of(self, scope: Scope, node: ast.expr, target: ast.expr) -> Expr:
        return self._expression(scope, node)

    # calls

    def _call(self, scope: Scope, node: ast.Call) -> Expr:
        if isinstance(node.func, ast.Name) and node.func.id in ("all", "any"):
            return self._quantified(scope, node)
        if not isinstance(node.func, ast.Attribute):
            raise self._refuse(scope, node)
        base = self._place(scope, node.func.value)
        arguments: tuple[Any, ...]
        if node.func.attr == "drain":
            arguments = (self._place(scope, node.args[0]),)
        else:
            arguments = tuple(self._expression(scope, a) for a in node.args)
        return self._called(scope, base, node.func.attr, arguments, node)

    def _called(
        self, scope: Scope, base: Any, name: str, arguments: tuple[Any, ...], node: ast.Call
    ) -> Expr:
        if isinstance(base, Chosen):
            local = self._new("v")
            is_value = False
            for number, option in enumerate(base.options):
                outer, scope.block = scope.block, []
                value = self._called(scope, option, name, arguments, node)
                if value != 0:
                    is_value = True
                scope.block.append(Assign(local, value))
                block, scope.block = scope.block, outer
                scope.block.append(If(fold("==", base.index, number), tuple(block)))
            return Local(local) if is_value else 0
        if isinstance(base, FifoCells):
            return self._fifo(scope, base, name, arguments, node)
        if isinstance(base, Instance):
            return self._invoke(base, name, arguments, scope.block)
        raise self._refuse(scope, node)

    def _quantified(self, scope: Scope, node: ast.Call) -> Expr:
        generator = node.args[0]
        if not isinstance(generator, ast.GeneratorExp):
            raise self._refuse(scope, node)
        is_all = getattr(node.func, "id", "") == "all"
        values: list[Expr] = []

        def unroll(remaining: list[ast.comprehension]) -> None:
            if not remaining:
                values.append(self._expression(scope, generator.elt))
                return
            first = remaining[0]
            if not isinstance(first.target, ast.Name) or not isinstance(first.iter, ast.Call):
                raise self._refuse(scope, node)
            for number in self._range(scope, first.iter):
                scope.names[first.target.id] = number
                conditions = [self._expression(scope, c) for c in first.ifs]
                mark = len(values)
                unroll(remaining[1:])
                for condition in conditions:
                    for i in range(mark, len(values)):
                        if is_all:
                            values[i] = fold("or", negate(condition), values[i])
                        else:
                            values[i] = fold("and", condition, values[i])

        unroll(generator.generators)
        value: Expr = int(is_all)
        for part in values:
            value = fold("and" if is_all else "or", value, part)
        return value

    # channels

    def _head(self, fifo: FifoCells) -> Expr:
        return fold("&", Load(fifo.items), (1 << fifo.item_bits) - 1)

    def _drop_head(self, scope: Scope, fifo: FifoCells) -> None:
        scope.block.append(Store(fifo.items, fold(">>", Load(fifo.items), fifo.item_bits)))
        scope.block.append(Store(fifo.length, fold("-", Load(fifo.length), 1)))

    def _fifo(
        self, scope: Scope, fifo: FifoCells, name: str, arguments: tuple[Any, ...], node: ast.Call
    ) -> Expr:
        length: Expr = Load(fifo.length)
        if name == "empty":
            return fold("==", length, 0)
        if name == "size":
            return length
        if name == "head":
            return self._head(fifo)
        if name == "clear":
            scope.block += [Store(fifo.items, 0), Store(fifo.length, 0)]
        elif name == "push":
            self._push(scope, fifo, arguments[0], node)
        elif name == "pop":
            fault = self._fault("empty", f"{fifo.items[:-6]} is empty", scope.method, node)
            scope.block.append(If(fold("==", length, 0), (Fail(fault),)))
            local = self._new("head")
            scope.block.append(Assign(local, self._head(fifo)))
            self._drop_head(scope, fifo)
            return Local(local)
        elif name == "drain":
            self._drain(scope, fifo, arguments[0], node)
        else:
            raise self._refuse(scope, node)
        return 0

    def _push(self, scope: Scope, fifo: FifoCells, item: Expr, node: ast.AST) -> None:
        length = Load(fifo.length)
        full = self._fault("overflow", f"{fifo.items[:-6]} is full", scope.method, node)
        value = self._checked(scope, item, fifo.item_maximum, fifo.items[:-6], node)
        at = fold("*", length, fifo.item_bits)
        scope.block.append(
            If(
                fold("==", length, fifo.capacity),
                (Fail(full),),
                (
                    Store(fifo.items, fold("|", Load(fifo.items), fold("<<", value, at))),
                    Store(fifo.length, fold("+", length, 1)),
                ),
            )
        )

    def _drain(self, scope: Scope, fifo: FifoCells, other: Any, node: ast.AST) -> None:
        if isinstance(other, Chosen):
            for number, option in enumerate(other.options):
                outer, scope.block = scope.block, []
                self._drain(scope, fifo, option, node)
                block, scope.block = scope.block, outer
                scope.block.append(If(fold("==", other.index, number), tuple(block)))
            return
        full = self._fault("overflow", f"{fifo.items[:-6]} is full", scope.method, node)
        total = fold("+", Load(fifo.length), Load(other.length))
        at = fold("*", Load(fifo.length), fifo.item_bits)
        if fifo.item_bits != other.item_bits:
            raise self._refuse(scope, node, "channels with the same kind of items")
        moved = (
            Store(fifo.items, fold("|", Load(fifo.items), fold("<<", Load(other.items), at))),
            Store(fifo.length, total),
            Store(other.items, 0),
            Store(other.length, 0),
        )
        scope.block.append(If(fold(">", total, fifo.capacity), (Fail(full),), moved))

    # stores

    def _assign(self, scope: Scope, target: ast.expr, value: Expr, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            local = scope.names.get(target.id)
            name = (
                local.name
                if isinstance(local, Local) and local.name.startswith("x_")
                else self._new("x")
            )
            scope.block.append(Assign(name, value))
            scope.names[target.id] = Local(name)
            return
        self._store(scope, self._place(scope, target), value, node)

    def _store(self, scope: Scope, place: Any, value: Expr, node: ast.AST) -> None:
        if isinstance(place, Chosen):
            local = self._new("s")
            index = self._new("n")
            scope.block += [Assign(local, value), Assign(index, place.index)]
            for number, option in enumerate(place.options):
                outer, scope.block = scope.block, []
                self._store(scope, option, Local(local), node)
                block, scope.block = scope.block, outer
                scope.block.append(If(fold("==", Local(index), number), tuple(block)))
            return
        if not isinstance(place, str):
            raise self._refuse(scope, node, "a field to assign to")
        cell: Cell = self.layout.cells[place]
        scope.block.append(Store(place, self._checked(scope, value, cell.maximum, place, node)))

    def _checked(self, scope: Scope, value: Expr, maximum: int, name: str, node: ast.AST) -> Expr:
        if isinstance(value, int) and 0 <= value <= maximum:
            return value
        if isinstance(value, Load) and self.layout.cells[value.cell].maximum <= maximum:
            return value
        if _is_boolean(value) and maximum >= 1:
            return value
        local = self._new("c")
        fault = self._fault("range", f"{name} leaves its range 0 to {maximum}", scope.method, node)
        outside = fold("or", fold("<", Local(local), 0), fold(">", Local(local), maximum))
        scope.block += [Assign(local, value), If(outside, (Fail(fault), Assign(local, 0)))]
        return Local(local)

    def _refuse(
        self, scope: Scope, node: ast.AST, wanted: str = "something else"
    ) -> DeclarationError:
        code = scope.method.__code__
        return DeclarationError(
            f"{code.co_filename}:{getattr(node, 'lineno', code.co_firstlineno)}: "
            f"{scope.method.__qualname__}: {ast.unparse(node)!r} cannot be compiled; "
            f"expected {wanted}"
        )


def _is_boolean(value: Expr) -> bool:
    operator = getattr(value, "operator", None)
    return operator in ("==", "!=", "<", "<=", ">", ">=", "and", "or") or hasattr(value, "operand")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _leaves(statements: list[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Return)


def _returns_value(tree: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(tree))


def _as_load(node: ast.expr) -> ast.expr:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    return ast.copy_location(copied, node)


def lower(system: ClosedSystem) -> Program:
    """Lower a closed system with its constants; DeclarationError for what cannot be compiled."""
    return Lowering(system).program()
