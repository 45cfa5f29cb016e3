"""Lowers a closed system's rows, guards, actions and properties, as they stand, to the intermediate
form.

Each method becomes one function for each instance, so that every index is known and every cell has
a fixed place; methods that only return a value are put in line. Loops over index sets are unrolled.
A subscript that is known only at run time becomes a choice among all instances. What lies outside
the checked subset was refused when the machine was declared; what is refused here depends on the
system and its constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
    Choose,
    Close,
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
    ways,
)
from epochgate.fsm.checker.compiler.layout import Layout, changed
from epochgate.fsm.checker.compiler.scope import SYSTEM, Instance, Scope
from epochgate.fsm.checker.compiler.statements import Statements
from epochgate.fsm.checker.step_claims import members, not_in_each
from epochgate.fsm.choosing import CHOICES_MAX, WAYS_MAX, start_conditions
from epochgate.fsm.claims import OF_STATES, called
from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.fsm.declaration import expand
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.rows import Row
from epochgate.fsm.source import class_place, origin, row_place

CHAIN_MAX = 8
"""Rows of a trigger that are tested one after the other; more are divided by their states."""
SHARED_MAX = 1.5
"""Rows whose sources are in both halves of the states are compiled twice: at most half of them."""


class StepClaims(NamedTuple):
    """The functions that run before a step, and after one that has changed something."""

    before: list[Stmt]
    after: list[Stmt]

    def __bool__(self) -> bool:
        return bool(self.after)


Half = tuple[tuple[str, ...], list[Row]]
"""States, and the rows that may hold in them."""
CHOOSES = "a step that chooses"
CROWDED = f"a step chooses more than {CHOICES_MAX} values, or has more than {WAYS_MAX:,} ways"
ENDLESS = "the machines trigger each other without end"


class Lowering(Statements):
    """One system with its constants, on its way to a program."""

    def __init__(self, system: ClosedSystem, symmetric: str | None = None) -> None:
        super().__init__(system, Layout(system, symmetric))
        self.functions: dict[str, Function] = {}
        self.rows: list[RowCode] = []
        self._first_covers: dict[tuple[str, Row], int] = {}
        self._covers = 0
        for name, machine in system.MACHINES.items():
            for row in machine.ROWS:
                first = self._first_covers[name, row] = self._covers
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

    def program(self, methods: Iterable[str] = ()) -> Program:
        """Lower everything, and methods of the system that are to be properties beside the claimed
        ones.
        """
        steps = []
        for step, machine in self.system.step_instances():
            instance = Instance(step.machine, machine.index)
            steps.append(
                StepCode(
                    machine=step.machine,
                    index=machine.index,
                    trigger=step.trigger,
                    enabled=self._enabled(instance, step),
                    function=self._step(step, instance),
                )
            )
        statements = (s for f in self.functions.values() for s in walk(f.body))
        if any(isinstance(statement, Choose) for statement in statements):
            for code in steps:
                code.ways = ways(self.functions, code.function, WAYS_MAX)
        properties = {name: self.method(SYSTEM, name) for name in methods}
        for found in (p for p in self.system.claims() if p.kind in OF_STATES):
            for name in (found.then, found.name):
                if name:
                    properties[name] = self._claimed(name)
            if found.kind == "always" and found.then:
                properties[found.name] = self._implication(found.then, found.name, properties)
        conditions = [self.method(SYSTEM, name) for name in start_conditions(type(self.system))]
        self._refuse_cycles()
        self.ranges.settle(self.functions, self.doubts)
        owner = type(self.system)
        file, line = class_place(owner)
        endless = Fault("endless", ENDLESS, file, line)
        posts = (s for f in self.functions.values() for s in walk(f.body) if isinstance(s, Post))
        crowded = -1
        if any(code.ways for code in steps):
            fault = Fault("crowded", CROWDED, file, line)
            crowded = self.faults.setdefault(fault, len(self.faults))
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
            starts=self.layout.starts,
            start_conditions=tuple(conditions),
            crowded=crowded,
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
        if step.over:
            taken = self._choosing(step, instance, taken)
        functions = [self.functions[name] for name in reached(self.functions, taken)]
        posts = any(isinstance(stmt, Post) for f in functions for stmt in walk(f.body))
        claims = self._step_claims()
        if not (posts or step.is_stuttering or claims):
            return taken
        file, line = row_place(self.machine(instance), step.trigger)
        run: Stmt = Run(taken) if posts else Call(taken, ())
        block = [run]
        if step.is_stuttering or claims:
            stored = {s.cell for f in functions for s in walk(f.body) if isinstance(s, Store)}
            cells = [cell for cell in self.layout.cells if cell in stored]
            block = [*(Assign(f"before_{i}", Load(cell)) for i, cell in enumerate(cells)), run]
            if claims:
                block = [*claims.before, *block, Assign("changed", 0)]
            for number, cell in enumerate(cells):
                fault = Fault("changed", changed(f"{instance}.{step.trigger}", cell), file, line)
                fail: Stmt = Assign("changed", 1)
                if step.is_stuttering:
                    fail = Fail(self.faults.setdefault(fault, len(self.faults)))
                block.append(If(fold("!=", Load(cell), Local(f"before_{number}")), (fail,)))
            if claims:
                block.append(If(Local("changed"), tuple(claims.after)))
        key = f"{taken} to completion"
        self.functions[key] = Function(key, (), tuple(block))
        return key

    def _choosing(self, step: Step, instance: Instance, taken: str) -> str:
        """A function that chooses arguments with which the step is possible, and takes it."""
        key = f"{taken} with arguments"
        if not all(map(len, self.system.options(step))):
            raise DeclarationError(
                f"{type(self.system).__name__}: the step {instance}.{step.trigger} has nothing to "
                f"choose from in {step.over!r}; set the constant to 1 at least"
            )
        scope = Scope(instance, self.machine(instance).__init__, {})
        chosen = tuple(self.chosen(scope, each) for each in self.system.options(step))
        is_possible = Call(self._possible(instance, step.trigger), chosen, "possible")
        close = If(negate(Local("possible")), (Close(),))
        body = (*scope.block, is_possible, close, Call(taken, chosen))
        self.functions[key] = Function(key, (), body)
        return key

    def _step_claims(self) -> StepClaims:
        """The statements that hold a step against every each_step."""
        found = StepClaims([], [])
        for claim in (p for p in self.system.properties() if p.kind == "each_step"):
            code = getattr(type(self.system), claim.name).__code__
            fault = Fault("each_step", not_in_each(claim), code.co_filename, code.co_firstlineno)
            fail = Fail(self.faults.setdefault(fault, len(self.faults)))
            for index in members(self.system, claim):
                prefix = "_".join(["was", claim.name, *map(str, index)])
                before = []
                for name in self.system.measured(claim):
                    local = f"{prefix}_{name}"
                    found.before.append(Call(self.method(SYSTEM, name), index, local))
                    before.append(Local(local))
                held = Local(f"{prefix}_holds")
                found.after.append(
                    Call(self.method(SYSTEM, claim.name), (*index, *before), held.name)
                )
                found.after.append(If(negate(held), (fail,)))
        return found

    def _claimed(self, name: str) -> str:
        """The function of a claim's method, for one member if its name says so."""
        method, member = called(name)
        function = self.method(SYSTEM, method)
        if not member:
            return function
        key = f"{SYSTEM}.{name}"
        self.functions[key] = Function(
            key, (), (Call(function, member, "result"),), Local("result")
        )
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

    def _enabled(self, instance: Instance, step: Step) -> str:
        """A function whose result says whether the step is possible; if it chooses arguments, it
        finds that out as it chooses.
        """
        if not step.over:
            return self._possible(instance, step.trigger)
        self.functions[CHOOSES] = Function(CHOOSES, (), (), 1)
        return CHOOSES

    def _possible(self, instance: Instance, trigger: str) -> str:
        """A function whose result says whether a row of the trigger, not an ignoring one, holds."""
        key = f"{instance}.{trigger}?"
        if key in self.functions:
            return key
        machine = self.machine(instance)
        names = machine.trigger_parameters(trigger)
        scope = Scope(instance, machine.__init__, {})
        rows = [row for row in machine.ROWS if row.trigger == trigger and not row.is_ignored]
        given = self.parameters(names)
        enabled = self._any_holds(scope, machine.STATES, rows, given)
        parameters = tuple(one.name for one in given)
        self.functions[key] = Function(key, parameters, tuple(scope.block), enabled)
        return key

    def _any_holds(
        self, scope: Scope, states: tuple[str, ...], rows: list[Row], given: tuple[Expr, ...]
    ) -> Expr:
        """Return whether one of the rows holds in one of these states, with these arguments."""
        enabled: Expr = 0
        if (halves := self._halves(scope, states, rows)) is None:
            for row in rows:
                # The conditions of a row are tested only if no row before it holds; they exclude
                # each other, so the order does not matter to the result.
                holds = partial(self._holds, scope, row, given, states)
                enabled = self.lazily(scope, "or", enabled, holds)
            return enabled
        is_first, first, second = halves
        enabled = self.local("e", 0, scope.block)
        blocks = []
        for half in (first, second):
            with scope.captured() as block:
                self.assign_local(enabled.name, self._any_holds(scope, *half, given), block)
            blocks.append(tuple(block))
        scope.block.append(If(is_first, *blocks))
        return enabled

    def _halves(
        self, scope: Scope, states: tuple[str, ...], rows: list[Row]
    ) -> tuple[Expr, Half, Half] | None:
        """Divide many rows by their source states: a test for the first half of the states, and
        each half with its rows. None where a chain of tests is as good.
        """
        if len(rows) <= CHAIN_MAX or len(states) == 1:
            return None
        middle = len(states) // 2
        order = self.machine(scope.instance).STATES
        halves = []
        for half in (states[:middle], states[middle:]):
            within = set(half)
            halves.append((half, [row for row in rows if within.intersection(expand(order, row))]))
        first, second = halves
        if len(first[1]) + len(second[1]) > len(rows) * SHARED_MAX:
            return None
        cell = self.layout.places[scope.instance.name, scope.instance.index]["state"]
        return fold("<", Load(cell), order.index(states[middle])), first, second

    def _holds(
        self, scope: Scope, row: Row, arguments: tuple[Expr, ...], states: tuple[str, ...]
    ) -> Expr:
        """Return whether the source state, which is one of `states`, and all conditions of a row
        hold, tested in their order.
        """
        sources = {*expand(self.machine(scope.instance).STATES, row)}.intersection(states)
        holds: Expr = int(len(sources) == len(states))
        if not holds:
            for state in states:
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
        arguments = self.parameters(names)
        function = self.functions[key] = Function(key, tuple(one.name for one in arguments))
        scope = Scope(instance, machine.__init__, {})
        rows = [row for row in machine.ROWS if row.trigger == name]
        function.body = self._branches(scope, name, rows, arguments, machine.STATES)
        return key

    def _branches(
        self,
        scope: Scope,
        trigger: str,
        rows: list[Row],
        arguments: tuple[Expr, ...],
        states: tuple[str, ...],
    ) -> tuple[Stmt, ...]:
        """The first row that holds is taken; when none does, the trigger is refused."""
        if not rows:
            return (self._refused(scope.instance, trigger),)
        if (halves := self._halves(scope, states, rows)) is not None:
            is_first, *both = halves
            blocks = [self._branches(scope, trigger, of, arguments, half) for half, of in both]
            return (If(is_first, *blocks),)
        row, *others = rows
        with scope.captured() as block:
            holds = self._holds(scope, row, arguments, states)
            taken = self._taken(scope, row, arguments) if holds != 0 else ()
            if isinstance(holds, int) and holds:
                block += taken
            else:
                left = self._branches(scope, trigger, others, arguments, states)
                block += left if isinstance(holds, int) else (If(holds, taken, left),)
        return tuple(block)

    def _taken(self, scope: Scope, row: Row, arguments: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        instance, states = scope.instance, self.machine(scope.instance).STATES
        cell = self.layout.places[instance.name, instance.index].get("state")
        sources = expand(states, row)
        state = Load(cell) if cell and len(sources) > 1 else states.index(sources[0])
        with scope.captured() as block:
            block.append(Cover(self._first_covers[instance.name, row], state))
            if row.dest is not None and cell is not None:
                block.append(Store(cell, states.index(row.dest)))
            for name in row.actions:
                self.invoke(scope, instance, name, arguments)
        return tuple(block)

    def _refused(self, instance: Instance, trigger: str) -> Fail:
        file, line = row_place(self.machine(instance), trigger)
        fault = Fault("refused", f"{instance} refuses {trigger!r}: no row holds", file, line)
        return Fail(self.faults.setdefault(fault, len(self.faults)))
