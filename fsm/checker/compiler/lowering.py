"""Lowers a closed system's rows, guards, actions and properties, as they stand, to the intermediate
form.

Each method becomes one function for each instance, so that every index is known and every cell has
a fixed place; methods that only return a value are put in line. Loops over index sets are unrolled.
A subscript that is known only at run time becomes a choice among all instances. What lies outside
the checked subset was refused when the machine was declared; what is refused here depends on the
system and its constants.
"""

from __future__ import annotations

from functools import partial

from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
    Cover,
    Expr,
    Fail,
    Fault,
    Function,
    If,
    Load,
    Local,
    Post,
    Program,
    RowCode,
    Run,
    StepCode,
    Stmt,
    Store,
    fold,
    negate,
    reached,
    walk,
)
from epochgate.fsm.checker.compiler.layout import Layout, changed
from epochgate.fsm.checker.compiler.scope import SYSTEM, Instance, Scope
from epochgate.fsm.checker.compiler.statements import Statements
from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.fsm.declaration import expand
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.rows import Row
from epochgate.fsm.source import class_place, origin, row_place

ENDLESS = "the machines trigger each other without end"


class Lowering(Statements):
    """One system with its constants, on its way to a program."""

    def __init__(self, system: ClosedSystem, symmetric: str | None = None) -> None:
        super().__init__(system, Layout(system, symmetric))
        self.functions: dict[str, Function] = {}
        self.rows: list[RowCode] = []
        self._first_covers: dict[tuple[str, int], int] = {}
        self._covers = 0
        for name, machine in system.MACHINES.items():
            for number, row in enumerate(machine.ROWS):
                first = self._first_covers[name, number] = self._covers
                self._covers += len(machine.STATES)
                source = row.source if isinstance(row.source, str) else " or ".join(row.source)
                file, line = row_place(machine, row.trigger, row.because)
                self.rows.append(
                    RowCode(
                        machine=name,
                        trigger=row.trigger,
                        source=source,
                        because=row.because,
                        is_ignored=row.is_ignored,
                        file=file,
                        line=line,
                        is_environment=machine.IS_ENVIRONMENT,
                        origin=origin(machine, row),
                        places=tuple(
                            (state, first + machine.STATES.index(state))
                            for state in expand(machine.STATES, row)
                        ),
                    )
                )

    def program(self) -> Program:
        """Lower everything."""
        steps = []
        for step, machine in self.system.step_instances():
            instance = Instance(step.machine, machine.index)
            steps.append(
                StepCode(
                    machine=step.machine,
                    index=machine.index,
                    trigger=step.trigger,
                    is_fair=step.is_fair,
                    enabled=self._enabled(instance, step.trigger),
                    function=self._step(step, instance),
                )
            )
        properties = {}
        for found in self.system.properties():
            for name in (found.then, found.name):
                if name:
                    properties[name] = self.method(SYSTEM, name)
            if found.kind == "always" and found.then:
                properties[found.name] = self._implication(found.then, found.name, properties)
        self._refuse_cycles()
        owner = type(self.system)
        file, line = class_place(owner)
        endless = Fault("endless", ENDLESS, file, line)
        posts = (s for f in self.functions.values() for s in walk(f.body) if isinstance(s, Post))
        return Program(
            cells=self.layout.cells,
            words=self.layout.words,
            functions=self.functions,
            steps=steps,
            posted=[*dict.fromkeys(post.function for post in posts)],
            calls_max=self.system.CALLS_MAX,
            endless=self.faults.setdefault(endless, len(self.faults)),
            properties=properties,
            faults=[*self.faults],
            rows=self.rows,
            covers=self._covers,
            initial=self.layout.pack(self.layout.initial),
            blocks=self.layout.blocks,
        )

    def _refuse_cycles(self) -> None:
        """Machines of the environment fire each other's triggers at once, which has to end."""
        finished: set[str] = set()

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                cycle = " -> ".join([*path[path.index(name) :], name])
                raise DeclarationError(
                    f"{type(self.system).__name__}: these call each other in a circle: {cycle}; "
                    f"make one of the triggers a Step of its own, so that each step ends"
                )
            if name not in finished:
                for stmt in walk(self.functions[name].body):
                    if isinstance(stmt, Call):
                        visit(stmt.function, (*path, name))
                finished.add(name)

        for name in self.functions:
            visit(name, ())

    def _step(self, step: Step, instance: Instance) -> str:
        """A function that takes the step to completion; one that must change nothing compares the
        state.
        """
        taken = self.trigger(instance, step.trigger)
        functions = [self.functions[name] for name in reached(self.functions, taken)]
        posts = any(isinstance(stmt, Post) for f in functions for stmt in walk(f.body))
        if not (posts or step.is_stuttering):
            return taken
        file, line = row_place(self.machine(instance), step.trigger)
        run: Stmt = Run(taken) if posts else Call(taken, ())
        block = [run]
        if step.is_stuttering:
            stored = {s.cell for f in functions for s in walk(f.body) if isinstance(s, Store)}
            cells = [cell for cell in self.layout.cells if cell in stored]
            block = [*(Assign(f"before_{i}", Load(cell)) for i, cell in enumerate(cells)), run]
            for number, cell in enumerate(cells):
                fault = Fault("changed", changed(f"{instance}.{step.trigger}", cell), file, line)
                fail = Fail(self.faults.setdefault(fault, len(self.faults)))
                block.append(If(fold("!=", Load(cell), Local(f"before_{number}")), (fail,)))
        key = f"{taken} to completion"
        self.functions[key] = Function(key, (), tuple(block))
        return key

    def _implication(self, premise: str, name: str, properties: dict[str, str]) -> str:
        """A function that holds where the premise does not, or the property's method does."""
        key = f"{premise} implies {name}"
        test = Call(properties[name], (), "result")
        body = (
            Call(properties[premise], (), "premise"),
            Assign("result", 1),
            If(Local("premise"), (test,)),
        )
        self.functions[key] = Function(key, (), body, Local("result"))
        return key

    def _enabled(self, instance: Instance, trigger: str) -> str:
        """A function whose result says whether a row of the trigger, not an ignoring one, holds."""
        key = f"{instance}.{trigger}?"
        if key in self.functions:
            return key
        machine = self.machine(instance)
        scope = Scope(instance, machine.__init__, {})
        enabled: Expr = 0
        for row in machine.ROWS:
            if row.trigger == trigger and not row.is_ignored:
                # The conditions of a row are tested only if no row before it holds; they exclude
                # each other, so the order does not matter to the result.
                enabled = self.lazily(scope, "or", enabled, partial(self._holds, scope, row, ()))
        self.functions[key] = Function(key, (), tuple(scope.block), enabled)
        return key

    def _holds(self, scope: Scope, row: Row, arguments: tuple[Expr, ...]) -> Expr:
        """Whether the source state and all conditions of a row hold, tested in their order."""
        machine = self.machine(scope.instance)
        sources = {source for source, expanded in machine.expanded_rows() if expanded is row}
        holds: Expr = int(len(sources) == len(machine.STATES))
        if not holds:
            for state in machine.STATES:
                if state in sources:
                    holds = fold("or", holds, self._is_state(scope.instance, state))
        for name, expected in row.literals:
            test = partial(self._literal, scope, name, expected, arguments)
            holds = self.lazily(scope, "and", holds, test)
        return holds

    def _literal(
        self, scope: Scope, name: str, expected: bool, arguments: tuple[Expr, ...]
    ) -> Expr:
        value = self.invoke(scope, scope.instance, name, arguments)
        return value if expected else negate(value)

    def _is_state(self, instance: Instance, state: str) -> Expr:
        cell = self.layout.places[instance.name, instance.index]["state"]
        return fold("==", Load(cell), self.machine(instance).STATES.index(state))

    def trigger(self, instance: Instance, name: str) -> str:
        machine = self.machine(instance)
        key = f"{instance}.{name}"
        if key in self.functions:
            return key
        names = machine.trigger_parameters(name)
        function = self.functions[key] = Function(key, names)
        scope = Scope(instance, machine.__init__, {})
        arguments = tuple(Local(n) for n in names)
        rows = [(number, row) for number, row in enumerate(machine.ROWS) if row.trigger == name]
        function.body = self._branches(scope, name, rows, arguments)
        return key

    def _branches(
        self,
        scope: Scope,
        trigger: str,
        rows: list[tuple[int, Row]],
        arguments: tuple[Expr, ...],
    ) -> tuple[Stmt, ...]:
        """The first row that holds is taken; when none does, the trigger is refused."""
        if not rows:
            return (self._refused(scope.instance, trigger),)
        (number, row), *others = rows
        with scope.captured() as block:
            holds = self._holds(scope, row, arguments)
            taken = self._taken(scope, number, row, arguments) if holds != 0 else ()
            if isinstance(holds, int):
                block += taken if holds else self._branches(scope, trigger, others, arguments)
            else:
                block.append(If(holds, taken, self._branches(scope, trigger, others, arguments)))
        return tuple(block)

    def _taken(
        self, scope: Scope, number: int, row: Row, arguments: tuple[Expr, ...]
    ) -> tuple[Stmt, ...]:
        instance, states = scope.instance, self.machine(scope.instance).STATES
        cell = self.layout.places[instance.name, instance.index].get("state")
        sources = expand(states, row)
        state = Load(cell) if cell and len(sources) > 1 else states.index(sources[0])
        with scope.captured() as block:
            block.append(Cover(self._first_covers[instance.name, number], state))
            if row.dest is not None and cell is not None:
                block.append(Store(cell, states.index(row.dest)))
            for name in row.actions:
                self.invoke(scope, instance, name, arguments)
        return tuple(block)

    def _refused(self, instance: Instance, trigger: str) -> Fail:
        file, line = row_place(self.machine(instance), trigger)
        fault = Fault("refused", f"{instance} refuses {trigger!r}: no row holds", file, line)
        return Fail(self.faults.setdefault(fault, len(self.faults)))


def lower(system: ClosedSystem, symmetric: str | None = None) -> Program:
    """Lower a closed system with its constants; DeclarationError for what cannot be compiled.

    `symmetric` names an index set whose instances each get words of their own.
    """
    return Lowering(system, symmetric).program()
